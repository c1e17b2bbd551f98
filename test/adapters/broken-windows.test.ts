/** The suite of `RemoteTopic` fails on dedup windows that are broken, each for the rule that it breaks. */
import { expect, it } from 'vitest';
import type { Send } from '../../src/ports/index.js';
import { type Defect, inResults, inSending, verdictOn } from '../support/broken-remote.js';

/** A defect in what the window is told of a send. */
const offering = (change: (sent: Send) => Send): Defect => inSending((producer, sent) => producer.send(change(sent)));

const without = <K extends keyof Send>(sent: Send, ...names: K[]): Omit<Send, K> => {
  const rest = { ...sent };
  for (const name of names) delete rest[name];
  return rest;
};

it.each<[string, Defect, RegExp]>([
  [
    'that opens with an invented watermark',
    ({ open }) => ({
      open: async (...call) => ({ watermark: { ledgerId: 0n, entryId: 0n }, ...(await open(...call)) }),
    }),
    /never sent has a watermark/,
  ],
  [
    'that opens without a watermark',
    ({ open }) => ({
      open: async (...call) => {
        const opened = await open(...call);
        return opened.type === 'opened' ? { type: 'opened', producer: opened.producer } : opened;
      },
    }),
    /the watermark of an opening is not the last position/,
  ],
  [
    'that lives as long as its process',
    ({ open }) => {
      const process = Math.random();
      return { open: (source, segmentId, tell) => open(source === 5 ? source + process : source, segmentId, tell) };
    },
    /answered opened/,
  ],
  [
    'that stores duplicates',
    inSending((producer, sent, { topic, segmentId }) => {
      const before = topic.entries(segmentId).length;
      producer.send(sent);
      if (before > 0 && topic.entries(segmentId).length === before && sent.previous === undefined) {
        topic.append(segmentId, sent.buffers);
      }
    }),
    /sent twice is not stored once/,
  ],
  [
    'that says stored to what it drops',
    inResults((result) => (result.type === 'duplicate' ? { type: 'stored' } : result)),
    /a replay of two entries and a new one is answered stored/,
  ],
  [
    'that drops all that is replayed, and more',
    inSending((producer, sent, { tell }) => {
      if (sent.position.entryId === 3n && sent.buffers.payload.length === 3) tell({ type: 'duplicate' });
      else producer.send(sent);
    }),
    /answered duplicate/,
  ],
  [
    'that is one for all source segments',
    ({ open }) => ({
      open: (source, segmentId, tell) =>
        open(source, segmentId, source === 9 ? () => tell({ type: 'duplicate' }) : tell),
    }),
    /of another source segment is answered duplicate/,
  ],
  [
    'that sees no gap',
    offering((sent) => ({ ...sent, previous: undefined })),
    /behind one that failed is answered stored/,
  ],
  [
    'that takes the first send for settled',
    offering((sent) => ({ ...sent, previous: sent.previous?.entryId === 1n ? undefined : sent.previous })),
    /behind one that is missing are answered stored/,
  ],
  [
    'that does not know a gap from a duplicate',
    inSending((producer, sent, { topic, segmentId }) => {
      producer.send(sent);
      const isFirstGap = sent.previous?.entryId === 1n && topic.entries(segmentId).length === 0;
      if (isFirstGap) topic.append(segmentId, sent.buffers);
    }),
    /a send behind a gap is stored/,
  ],
  [
    'that stores nothing behind a gap',
    ({ open }) => ({
      open: async (source, segmentId, tell) => {
        let gaps = 0;
        const opened = await open(source, segmentId, (result) => {
          if (result.type === 'gap') gaps++;
          tell(result);
        });
        if (opened.type !== 'opened') return opened;
        const { producer } = opened;
        const send = (sent: Send) => (gaps > 1 ? tell({ type: 'stored' }) : producer.send(sent));
        return { ...opened, producer: { send, barrier: () => producer.barrier(), close: () => producer.close() } };
      },
    }),
    /a lane that begins anew behind a gap is not stored/,
  ],
  [
    'that knows no parts',
    offering(({ position: { ledgerId, entryId }, ...sent }) => ({ ...sent, position: { ledgerId, entryId } })),
    /the watermark of a part is 7:3$/,
  ],
  [
    'that stores an entry of which it has a part',
    offering((sent) => ({ ...sent, lowestHash: 0xffff })),
    /an entry of which a part is stored is answered stored/,
  ],
  [
    'that counts every send as one that may hold any message',
    offering((sent) => ({ ...sent, lowestHash: undefined })),
    /the rest of an entry is answered partial/,
  ],
  [
    'that stores what it answers partial',
    inSending((producer, sent, { topic, segmentId }) => {
      const before = topic.entries(segmentId).length;
      producer.send(sent);
      if (sent.lowestHash === 0x100 && topic.entries(segmentId).length === before)
        topic.append(segmentId, sent.buffers);
    }),
    /answered partial is stored/,
  ],
  [
    'that does not tell its watermark',
    () => ({ watermark: async () => ({ type: 'unavailable', reason: 'not now' }) }),
    /the watermark of a segment that exists is answered unavailable/,
  ],
  [
    'whose watermark is never empty',
    ({ watermark }) => ({
      watermark: async (...call) => {
        const answer = await watermark(...call);
        return answer.type === 'known' ? { watermark: { ledgerId: 0n, entryId: 0n }, ...answer } : answer;
      },
    }),
    /a segment that has nothing has a watermark/,
  ],
  [
    'whose watermark is a double',
    ({ watermark }) => ({
      watermark: async (...call) => {
        const answer = await watermark(...call);
        if (answer.type !== 'known' || answer.watermark === undefined) return answer;
        const { ledgerId, entryId, ...part } = answer.watermark;
        return {
          type: 'known',
          watermark: { ledgerId: BigInt(Number(ledgerId)), entryId: BigInt(Number(entryId)), ...part },
        };
      },
    }),
    /the watermark is not the last position stored/,
  ],
  [
    'that answers for every segment',
    ({ watermark }) => ({ watermark: (source, segmentId) => watermark(source, segmentId === 1 ? 0 : segmentId) }),
    /a watermark counts in another segment/,
  ],
  [
    'that answers for every source segment',
    ({ watermark }) => ({ watermark: (_, segmentId) => watermark(5, segmentId) }),
    /a watermark counts for another source segment/,
  ],
  [
    'that is lost at the seal',
    ({ watermark }, { topic }) => ({
      watermark: async (source, segmentId) =>
        topic.layout.segments.get(segmentId)?.state === 'sealed' ? { type: 'known' } : watermark(source, segmentId),
    }),
    /another once the segment is sealed/,
  ],
  [
    'that cannot tell pruned from empty',
    ({ watermark }) => ({
      watermark: async (...call) => {
        const answer = await watermark(...call);
        return answer.type === 'pruned' ? { type: 'known' } : answer;
      },
    }),
    /the watermark of a pruned segment is answered known/,
  ],
  [
    'that hands nothing on',
    ({ open }) => ({
      open: (source, segmentId, tell) => open(segmentId > 1 ? source + 1_000 : source, segmentId, tell),
    }),
    /a child does not know what its sealed parent has/,
  ],
  [
    'that tells what was handed on, and does not heed it',
    inSending((producer, sent, { topic, segmentId, tell }) => {
      if (segmentId < 2 || sent.position.entryId !== 2n || sent.completeTo !== undefined) return producer.send(sent);
      topic.append(segmentId, sent.buffers);
      tell({ type: 'stored' });
    }),
    /a replay in a child of the segment that has it is answered stored/,
  ],
  [
    'that stores again what was handed on',
    inSending((producer, sent, { topic, segmentId }) => {
      if (segmentId > 1 && sent.position.entryId === 2n) topic.append(segmentId, sent.buffers);
      producer.send(sent);
    }),
    /that a sealed parent has is stored again/,
  ],
  [
    'that does not know chunks',
    offering((sent) => without(sent, 'completeTo')),
    /not below the first chunk of an incomplete message/,
  ],
  [
    'for which every message is incomplete for ever',
    ({ open }) => ({
      open: async (source, segmentId, tell) => {
        const opened = await open(source, segmentId, tell);
        if (opened.type !== 'opened') return opened;
        const { producer } = opened;
        let completeTo: Send['completeTo'];
        return {
          ...opened,
          producer: {
            send: (sent) => {
              if (sent.completeTo !== undefined) completeTo = sent.completeTo;
              producer.send(completeTo === undefined ? sent : { ...sent, completeTo });
            },
            barrier: () => producer.barrier(),
            close: () => producer.close(),
          },
        };
      },
    }),
    /stays below a message that is complete/,
  ],
  [
    'that forgets the chunks that it has',
    inSending((producer, sent, { tell, topic, segmentId }) => {
      const isAgain = sent.completeTo?.entryId === 2n && topic.entries(segmentId).length === 4;
      if (isAgain) tell({ type: 'stored' });
      else producer.send(sent);
    }),
    /a chunk that is stored in an active segment is answered stored/,
  ],
  [
    'that hands on its chunks',
    ({ watermark }, { topic }) => ({
      watermark: async (source, segmentId) => {
        const isSealed = topic.layout.segments.get(segmentId)?.state === 'sealed';
        if (!isSealed || topic.entries(segmentId).length !== 2) return watermark(source, segmentId);
        return { type: 'known', watermark: { ledgerId: 7n, entryId: 3n } };
      },
    }),
    /sealed in the middle of a chunked message hands on its chunks/,
  ],
  [
    'whose children know of chunks that are not whole',
    ({ open }) => ({
      open: async (source, segmentId, tell) => {
        const opened = await open(source, segmentId, tell);
        if (opened.type !== 'opened' || segmentId < 2 || opened.watermark?.entryId !== 1n) return opened;
        return { ...opened, watermark: { ledgerId: 7n, entryId: 3n } };
      },
    }),
    /sealed in the middle of a chunked message hands on its chunks/,
  ],
  [
    'whose children lose the last chunk',
    inSending((producer, sent, { segmentId, tell }) => {
      if (segmentId > 1 && sent.position.entryId === 4n) tell({ type: 'stored' });
      else producer.send(sent);
    }),
    /a chunked message is not stored whole in a child/,
  ],
])('it refuses a window %s', async (_, defect, rule) => {
  expect(await verdictOn({ dedup: 'window' }, defect)).toMatch(rule);
});
