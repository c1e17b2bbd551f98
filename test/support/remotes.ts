/** Remotes that do what tests need, around those of a real adapter. */
import type { RemoteTopic, Send, SendResult } from '../../src/ports/index.js';

/** What becomes of a send: passed on, or answered in the remote's place. */
export type OnSend = (segmentId: number, send: Send, pass: () => void) => SendResult | undefined;

/** A remote whose producers ask first. */
export function intercepted(remote: RemoteTopic, onSend: OnSend): RemoteTopic {
  return {
    ...remote,
    async open(sourceSegmentId, segmentId, onResult) {
      const opened = await remote.open(sourceSegmentId, segmentId, onResult);
      if (opened.type !== 'opened') return opened;
      const { producer } = opened;
      return {
        ...opened,
        producer: {
          barrier: () => producer.barrier(),
          close: () => producer.close(),
          send(send) {
            const answer = onSend(segmentId, send, () => producer.send(send));
            if (answer === undefined) producer.send(send);
            else onResult(answer);
          },
        },
      };
    },
  };
}

/** A remote some of whose answers never come: what was sent is stored, and all behind it is in doubt as well. */
export function losingAnswers(remote: RemoteTopic, isLost: () => boolean): RemoteTopic {
  return {
    ...remote,
    open(sourceSegmentId, segmentId, onResult) {
      let isCut = false;
      return remote.open(sourceSegmentId, segmentId, (result) => {
        isCut ||= isLost();
        onResult(isCut ? { type: 'ambiguous', reason: 'no answer' } : result);
      });
    },
  };
}
