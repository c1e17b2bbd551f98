/** The suite of `RemoteTopic` fails on remotes that are broken, each for the rule that it breaks. */
import { expect, it } from 'vitest';
import type { RemoteTopicLayout, Send } from '../../src/ports/index.js';
import { type Defect, inProducers, inResults, inSending, verdictOn } from '../support/broken-remote.js';

/** A defect in what layouts say. */
const inLayouts =
  (change: (layout: RemoteTopicLayout) => RemoteTopicLayout): Defect =>
  ({ layouts }) => ({
    async *layouts(signal) {
      for await (const layout of layouts(signal)) yield change(layout);
    },
  });

const later = (work: () => void) => setTimeout(work, 5);
const WINDOW = { dedup: 'window' } as const;
const STORED = { type: 'stored' } as const;

it.each<[string, Defect, RegExp]>([
  [
    'that tells of no change',
    ({ layouts }) => ({
      async *layouts(signal) {
        for await (const layout of layouts(signal)) if (layout.epoch === 0) yield layout;
      },
    }),
    /the watch does not tell of a change/,
  ],
  ['that is called by another name', inLayouts((layout) => ({ ...layout, cluster: 'z' })), /names another cluster/],
  ['that tells no segments', inLayouts((layout) => ({ ...layout, segments: new Map() })), /not among all segments/],
  [
    'that forgets sealed segments',
    inLayouts((layout) => ({
      ...layout,
      segments: new Map(layout.active.map((active) => [active.segmentId, active])),
    })),
    /does not hold the sealed segments/,
  ],
  [
    'that tells sealed segments as active ones',
    inLayouts((layout) => ({ ...layout, active: [...layout.segments.values()] })),
    /an active segment is not among all segments/,
  ],
  [
    'whose names lock nothing',
    ({ open }) => {
      let opened = 0;
      return { open: (source, segmentId, tell) => open(source + 1_000 * opened++, segmentId, tell) };
    },
    /the name of an open producer is answered opened/,
  ],
  [
    'whose names lock within one process',
    ({ open }) => {
      const process = Math.random();
      return { open: (source, segmentId, tell) => open(source + process, segmentId, tell) };
    },
    /the name of an open producer is answered opened/,
  ],
  [
    'whose name is that of the source cluster',
    ({ open }) => ({ open: (_, segmentId, tell) => open(0, segmentId, tell) }),
    /a name that nobody holds cannot be opened/,
  ],
  [
    'whose name is that of the source segment alone',
    ({ open }) => {
      let holder: number | undefined;
      return {
        open: async (source, segmentId, tell) => {
          if (source === 5 && holder !== undefined && holder !== segmentId) return { type: 'fenced', reason: 'taken' };
          if (source === 5) holder = segmentId;
          return open(source, segmentId, tell);
        },
      };
    },
    /a name that nobody holds cannot be opened/,
  ],
  [
    'that keeps names for ever',
    inProducers(() => ({ close: async () => undefined })),
    /a name that nobody holds cannot/,
  ],
  [
    'that cannot tell a seal from a cut',
    ({ open }) => ({
      open: async (...call) => {
        const opened = await open(...call);
        return opened.type === 'sealed' ? { type: 'unavailable', reason: opened.reason } : opened;
      },
    }),
    /opening a sealed segment is answered unavailable/,
  ],
  [
    'that opens the segments that it began with',
    ({ open }) => ({
      open: async (source, segmentId, tell) =>
        segmentId > 1 ? { type: 'sealed', reason: 'unknown' } : open(source, segmentId, tell),
    }),
    /a name that nobody holds cannot be opened/,
  ],
  [
    'that tells a result before a send',
    ({ open }) => ({
      open: (source, segmentId, tell) => {
        tell(STORED);
        return open(source, segmentId, tell);
      },
    }),
    /before anything was sent/,
  ],
  ['that stores nothing', inSending((_, __, { tell }) => tell(STORED)), /what is stored is not what was sent/],
  [
    'that stores in another order',
    inSending((producer, sent) => {
      if (sent.position.entryId === 2n) later(() => producer.send({ ...sent, previous: undefined }));
      else producer.send(sent);
    }),
    /a new entry is answered gap/,
  ],
  [
    'that stores another body',
    inSending((producer, sent) => {
      const payload = sent.buffers.payload.map((byte) => byte ^ 1);
      producer.send({ ...sent, buffers: { head: sent.buffers.head, payload } });
    }),
    /what is stored is not what was sent/,
  ],
  [
    'that stores in every segment',
    inSending((producer, sent, { topic, segmentId }) => {
      producer.send(sent);
      if (sent.previous !== undefined) topic.append(1 - segmentId, sent.buffers);
    }),
    /stored in another segment as well/,
  ],
  [
    'that takes new entries for old ones',
    inResults(() => ({ type: 'duplicate' })),
    /a new entry is answered duplicate/,
  ],
  ['that tells nothing', inResults(() => undefined), /a send gets no result/],
  [
    'that tells every result twice',
    ({ open }) => ({
      open: (source, segmentId, tell) =>
        open(source, segmentId, (result) => {
          tell(result);
          tell(result);
        }),
    }),
    /more results than sends/,
  ],
  [
    'that tells every result again',
    ({ open }) => ({
      open: (source, segmentId, tell) =>
        open(source, segmentId, (result) => {
          tell(result);
          later(() => tell(result));
        }),
    }),
    /a send gets more than one result/,
  ],
  [
    'that tells wrong places',
    inResults((result, count) => ({ ...result, at: { ledgerId: 0n, entryId: BigInt(100 - count) } })),
    /places that results tell do not ascend/,
  ],
  [
    'that tells results after the close',
    ({ open }) => ({
      open: (source, segmentId, tell) => open(source, segmentId, (result) => later(() => tell(result))),
    }),
    /a result is told after the close/,
  ],
  [
    'that takes a large entry for a bad one',
    inResults((result) => (result.type === 'tooLarge' ? { ...result, type: 'rejected' } : result)),
    /an entry beyond the limit is answered rejected/,
  ],
  [
    'that forgets a failure',
    inSending((producer, { previous, ...sent }) => producer.send({ ...sent, previous: undefined })),
    /behind one that failed is answered stored/,
  ],
  [
    'that stores what it refuses',
    inSending((producer, sent, { topic, segmentId }) => {
      const before = topic.entries(segmentId).length;
      producer.send(sent);
      const isRefused = topic.entries(segmentId).length === before;
      if (isRefused && sent.previous?.entryId === 2n) topic.append(segmentId, sent.buffers);
    }),
    /that failed, or one behind it, is stored/,
  ],
  [
    'that is lame after a failure',
    ({ open }) => {
      let isLame = false;
      return {
        open: (source, segmentId, tell) =>
          open(source, segmentId, (result) => {
            const isGap = isLame && result.type === 'stored';
            isLame ||= result.type === 'tooLarge';
            tell(isGap ? { type: 'gap' } : result);
          }),
      };
    },
    /a new entry is answered gap/,
  ],
  [
    'that takes a sealed segment for a lost connection',
    inResults((result) => (result.type === 'sealed' ? { ...result, type: 'unavailable' } : result)),
    /a send to a sealed segment is answered unavailable/,
  ],
  [
    'that settles what it sent over a cut connection',
    inResults((result) => (result.type === 'ambiguous' ? STORED : result)),
    /over a cut connection is answered stored/,
  ],
])('it refuses a remote %s', async (_, defect, rule) => {
  expect(await verdictOn(WINDOW, defect)).toMatch(rule);
});

it('it refuses a remote that stores in a sealed segment', async () => {
  const late: Send[] = [];
  const defect = inSending((producer, sent, { topic, segmentId }) => {
    if (topic.layout.segments.get(segmentId)?.state === 'sealed') late.push(sent);
    producer.send(sent);
  });
  const verdict = verdictOn(WINDOW, defect, ({ stored }) => ({
    stored: async (segmentId) => [...(await stored(segmentId)), ...late.map(({ buffers }) => bytesOf(buffers))],
  }));
  expect(await verdict).toMatch(/a send to a sealed segment is stored/);
});

it('it refuses a remote whose names outlive their connection', async () => {
  const verdict = verdictOn(
    WINDOW,
    inResults((result) => result),
    (_, topic) => ({
      disconnect: async () => {
        topic.disconnect('s');
        await topic.remote('s').open(5, 0, () => undefined);
      },
    }),
  );
  expect(await verdict).toMatch(/a name that nobody holds cannot be opened/);
});

it('it refuses a remote where a producer that was cut gives back the name of its successor', async () => {
  const defect = inProducers((producer, { topic }) => ({
    close: async () => {
      topic.disconnect('s');
      await producer.close();
    },
  }));
  expect(await verdictOn(WINDOW, defect)).toMatch(/gives back a name that another holds/);
});

it('it refuses a remote that stores behind a failure although it promises not to', async () => {
  const defect: Defect = () => ({ supports: { dedup: 'readBack', failStop: true } });
  const verdict = await verdictOn({ dedup: 'readBack', failStop: false }, defect);
  expect(verdict).toMatch(/behind one that failed is answered stored/);
});

function bytesOf({ head, payload }: Send['buffers']): Uint8Array {
  return Buffer.concat([head, payload]);
}
