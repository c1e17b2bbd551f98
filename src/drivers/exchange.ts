/** The exchange of a whole process: which controller answers for which topic, and several topics in one call (C17). */
import type { ExchangeRequest, ExchangeResult } from '../convergence/index.js';
import type { ExchangeHandler, ExchangeReply, PeerChannel } from '../ports/index.js';
import type { LayoutController } from './layout-controller.js';

/** Answers the pushes of peers with the controllers that this process runs. One topic's failure is its own. */
export function createExchangeHandler(find: (topic: string) => LayoutController | undefined): ExchangeHandler {
  return {
    exchange: (from, requests) =>
      Promise.all(
        requests.map(async ({ topic, state }): Promise<ExchangeResult> => {
          const controller = find(topic);
          if (controller !== undefined) return controller.receive(from, state);
          return { topic, error: { code: 'unknownTopic', message: `there is no topic ${topic} here` } };
        }),
      ),
  };
}

interface Waiting {
  readonly requests: readonly ExchangeRequest[];
  readonly resolve: (reply: ExchangeReply) => void;
  readonly reject: (reason: unknown) => void;
}

/**
 * A channel that puts the topics of one turn into one call per peer: a leader of many topics whose timers fire
 * together makes one call, not one for each. A call is aborted only by the channel's own limits, not by one topic.
 */
export function batchExchanges(channel: PeerChannel, options: { readonly maxTopics?: number } = {}): PeerChannel {
  const { maxTopics = 100 } = options;
  const queues = new Map<string, Waiting[]>();

  async function call(peer: string, batch: readonly Waiting[]): Promise<void> {
    const requests = batch.flatMap((waiting) => waiting.requests);
    let reply: ExchangeReply;
    try {
      reply = await channel.exchange(peer, requests, new AbortController().signal);
    } catch (error) {
      for (const { reject } of batch) reject(error);
      return;
    }
    let at = 0;
    for (const waiting of batch) {
      const to = at + waiting.requests.length;
      waiting.resolve(reply.type === 'answered' ? { ...reply, results: reply.results.slice(at, to) } : reply);
      at = to;
    }
  }

  function flush(peer: string): void {
    const queue = queues.get(peer) ?? [];
    queues.delete(peer);
    for (let from = 0; from < queue.length; from += maxTopics) void call(peer, queue.slice(from, from + maxTopics));
  }

  return {
    exchange: (peer, requests, signal) =>
      new Promise((resolve, reject) => {
        if (signal.aborted) return reject(signal.reason);
        const onAbort = () => reject(signal.reason);
        const settled = () => signal.removeEventListener('abort', onAbort);
        signal.addEventListener('abort', onAbort, { once: true });
        let queue = queues.get(peer);
        if (queue === undefined) {
          queue = [];
          queues.set(peer, queue);
          queueMicrotask(() => flush(peer));
        }
        queue.push({
          requests,
          resolve: (reply) => {
            settled();
            resolve(reply);
          },
          reject: (reason) => {
            settled();
            reject(reason);
          },
        });
      }),
  };
}
