/** The part of the suite of `RemoteTopic` for remotes that keep a dedup window with each segment (R11 to R13). */
import type { RemoteTopic } from '../ports/index.js';
import {
  chain,
  checkConsumed,
  childrenOf,
  judge,
  openLane,
  type RemoteTopicFactory,
  type RemoteTopicSetup,
  SOURCE_SEGMENT,
  store,
  textOf,
  twoSegments,
} from './remote-lane.js';
import { check, type Eventually, onFresh, type RegisterTest } from './suite.js';

export function testDedupWindow(setup: RemoteTopicFactory, test: RegisterTest): void {
  const name = (what: string) => `RemoteTopic with a window: ${what}`;
  const onAny = onFresh(setup);
  const using = (work: (made: RemoteTopicSetup, eventually: Eventually) => Promise<void>) =>
    onAny(async (made, eventually) => {
      if (made.remote.supports.dedup === 'window') await work(made, eventually);
    });

  test(
    name('a send that is stored already is a duplicate, whoever sends it again (R12)'),
    using(async (made, eventually) => {
      const { remote, another } = made;
      const [segmentId] = await twoSegments(remote);
      const lane = await openLane(remote, segmentId, eventually);
      check(lane.watermark === undefined, 'a producer that never sent has a watermark');
      await store(lane, eventually, ...chain(1, 2));
      await lane.producer.close();
      const next = await openLane(await another(), segmentId, eventually);
      check(next.watermark === '7:2', 'the watermark of an opening is not the last position that was stored');
      const replay = (await judge(next, eventually, ...chain(1, 3))).join(' ');
      check(replay === 'duplicate duplicate stored', `a replay of two entries and a new one is answered ${replay}`);
      await checkConsumed(made, segmentId, '7:1 7:2 7:3', 'an entry that was sent twice is not stored once');
      const [other] = await judge(await openLane(remote, segmentId, eventually, 9), eventually, ['7:1']);
      check(other === 'stored', `a position of another source segment is answered ${other}`);
    }),
  );

  test(
    name('a send whose previous one is missing is a gap, and not stored (R12b)'),
    using(async (made, eventually) => {
      const { remote } = made;
      const [segmentId] = await twoSegments(remote);
      const lane = await openLane(remote, segmentId, eventually);
      const gap = (await judge(lane, eventually, ['7:2', { after: '7:1' }], ['7:3', { after: '7:2' }])).join(' ');
      check(gap === 'gap gap', `sends behind one that is missing are answered ${gap}`);
      await checkConsumed(made, segmentId, '', 'a send behind a gap is stored');
      await store(lane, eventually, ...chain(1, 3));
      await checkConsumed(made, segmentId, '7:1 7:2 7:3', 'a lane that begins anew behind a gap is not stored');
      await lane.producer.close();
    }),
  );

  test(
    name('a send of which a part is stored is answered partial, and not stored (R11)'),
    using(async (made, eventually) => {
      const { remote } = made;
      const [segmentId] = await twoSegments(remote);
      const lane = await openLane(remote, segmentId, eventually);
      await store(lane, eventually, ['7:3:16383', { lowestHash: 0x100 }]);
      const known = await watermarkOf(remote, segmentId);
      check(known === '7:3:16383', `the watermark of a part is ${known}`);
      const [whole] = await judge(lane, eventually, ['7:3', { lowestHash: 0x100 }]);
      check(whole === 'partial 16383', `an entry of which a part is stored is answered ${whole}`);
      await checkConsumed(made, segmentId, '7:3:16383', 'a send that was answered partial is stored');
      const [rest] = await judge(lane, eventually, ['7:3', { lowestHash: 0x4000 }]);
      check(rest === 'stored', `the rest of an entry is answered ${rest}`);
      await lane.producer.close();
    }),
  );

  test(
    name('the watermark is the last position stored, of one source segment in one segment'),
    using(async ({ remote, another, split, prune }, eventually) => {
      const [segmentId, otherId] = await twoSegments(remote);
      check((await watermarkOf(remote, segmentId)) === undefined, 'a segment that has nothing has a watermark');
      const lane = await openLane(remote, segmentId, eventually);
      await store(lane, eventually, ...chain(1, 3), ['9007199254740993:9007199254740993', { after: '7:3' }]);
      const last = '9007199254740993:9007199254740993';
      check((await watermarkOf(await another(), segmentId)) === last, 'the watermark is not the last position stored');
      check((await watermarkOf(remote, otherId)) === undefined, 'a watermark counts in another segment');
      const other = await watermarkOf(remote, segmentId, SOURCE_SEGMENT + 1);
      check(other === undefined, 'a watermark counts for another source segment');
      await split(segmentId);
      check((await watermarkOf(remote, segmentId)) === last, 'the watermark is another once the segment is sealed');
      if (prune === undefined) return;
      await prune(segmentId);
      const { type } = await remote.watermark(SOURCE_SEGMENT, segmentId);
      check(type === 'pruned', `the watermark of a pruned segment is answered ${type}`);
    }),
  );

  test(
    name('the children of a sealed segment know what it has (R13)'),
    using(async (made, eventually) => {
      const { remote, split } = made;
      const [segmentId] = await twoSegments(remote);
      const lane = await openLane(remote, segmentId, eventually);
      await store(lane, eventually, ...chain(1, 2));
      await split(segmentId);
      await lane.producer.close();
      for (const childId of await childrenOf(remote, segmentId, eventually)) {
        const child = await openLane(remote, childId, eventually);
        check(child.watermark === '7:2', 'a child does not know what its sealed parent has');
        const replay = (await judge(child, eventually, ...chain(2, 3))).join(' ');
        check(replay === 'duplicate stored', `a replay in a child of the segment that has it is answered ${replay}`);
        await checkConsumed(made, childId, '7:3', 'an entry that a sealed parent has is stored again');
        await child.producer.close();
      }
    }),
  );

  test(
    name('the watermark stays below an incomplete chunked message, the segment itself keeps its chunks (R6)'),
    using(async ({ remote }, eventually) => {
      const [segmentId] = await twoSegments(remote);
      const lane = await openLane(remote, segmentId, eventually);
      await store(lane, eventually, ['7:1', { completeTo: null }]);
      const rule = 'the watermark is not below the first chunk of an incomplete message';
      check((await watermarkOf(remote, segmentId)) === undefined, rule);
      await store(lane, eventually, ['7:2', { after: '7:1' }], ['7:3', { after: '7:2', completeTo: '7:2' }]);
      await store(lane, eventually, ['7:4', { after: '7:3', completeTo: '7:2' }]);
      check((await watermarkOf(remote, segmentId)) === '7:2', rule);
      const [again] = await judge(lane, eventually, ['7:3', { completeTo: '7:2' }]);
      check(again === 'duplicate', `a chunk that is stored in an active segment is answered ${again}`);
      check((await watermarkOf(remote, segmentId)) === '7:2', rule);
      await store(lane, eventually, ['7:5', { after: '7:4' }]);
      check((await watermarkOf(remote, segmentId)) === '7:5', 'the watermark stays below a message that is complete');
      await lane.producer.close();
    }),
  );

  test(
    name('a segment sealed in the middle of a chunked message hands on no more than precedes it (R6, R13)'),
    using(async (made, eventually) => {
      const { remote, split } = made;
      for (const [i, segmentId] of (await twoSegments(remote)).entries()) {
        // Once something precedes the message in the source segment, once nothing does.
        const completeTo = i === 0 ? '7:1' : null;
        const lane = await openLane(remote, segmentId, eventually);
        if (completeTo !== null) await store(lane, eventually, [completeTo]);
        await store(lane, eventually, ['7:2', { completeTo }], ['7:3', { after: '7:2', completeTo }]);
        await split(segmentId);
        await lane.producer.close();
        const rule = 'a segment sealed in the middle of a chunked message hands on its chunks';
        check((await watermarkOf(remote, segmentId)) === (completeTo ?? undefined), rule);
        for (const childId of await childrenOf(remote, segmentId, eventually)) {
          const child = await openLane(remote, childId, eventually);
          check(child.watermark === (completeTo ?? undefined), rule);
          await store(child, eventually, ...chain(2, 4));
          await checkConsumed(made, childId, '7:2 7:3 7:4', 'a chunked message is not stored whole in a child');
          await child.producer.close();
        }
      }
    }),
  );
}

async function watermarkOf(
  remote: RemoteTopic,
  segmentId: number,
  sourceSegmentId: number = SOURCE_SEGMENT,
): Promise<string | undefined> {
  const result = await remote.watermark(sourceSegmentId, segmentId);
  check(result.type === 'known', `the watermark of a segment that exists is answered ${result.type}`);
  return textOf(result.watermark);
}
