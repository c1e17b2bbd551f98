/** The line between two clusters, which the demo cuts for a while. */
import type { PeerChannel, RemoteTopic, SendResult } from 'isthmus';

const UNREACHABLE = { type: 'unavailable', reason: 'the line is cut' } as const;
const NO_ANSWER: SendResult = { type: 'ambiguous', reason: 'the line was cut' };

export class Link {
  private cut = false;
  private readonly waiting = new Set<() => void>();

  get isCut(): boolean {
    return this.cut;
  }

  set isCut(cut: boolean) {
    this.cut = cut;
    if (cut) return;
    for (const wake of this.waiting) wake();
    this.waiting.clear();
  }

  /** A remote topic at the other end: while the line is cut nothing gets there, and what was on its way has no answer. */
  remote(remote: RemoteTopic): RemoteTopic {
    const link = this;
    return {
      ...remote,
      async *layouts(signal) {
        for await (const layout of remote.layouts(signal)) {
          await link.restored(signal);
          yield layout;
        }
      },
      async open(sourceSegmentId, segmentId, onResult) {
        if (link.cut) return UNREACHABLE;
        const answer = (result: SendResult) => onResult(link.cut ? NO_ANSWER : result);
        const opened = await remote.open(sourceSegmentId, segmentId, answer);
        if (opened.type !== 'opened') return opened;
        const { producer } = opened;
        return {
          ...opened,
          producer: {
            barrier: () => producer.barrier(),
            close: () => producer.close(),
            send: (send) => (link.cut ? onResult(UNREACHABLE) : producer.send(send)),
          },
        };
      },
      watermark: async (sourceSegmentId, segmentId) =>
        link.cut ? UNREACHABLE : remote.watermark(sourceSegmentId, segmentId),
    };
  }

  private async restored(signal: AbortSignal): Promise<void> {
    while (this.cut) {
      signal.throwIfAborted();
      await new Promise<void>((resolve) => {
        this.waiting.add(resolve);
        signal.addEventListener('abort', () => resolve(), { once: true });
      });
    }
  }
}

/** A channel whose calls fail while the line to a peer is cut. */
export function channelOver(channel: PeerChannel, linkTo: (peer: string) => Link): PeerChannel {
  return {
    exchange: async (peer, requests, signal) =>
      linkTo(peer).isCut ? { type: 'failed', reason: 'the line is cut' } : channel.exchange(peer, requests, signal),
  };
}
