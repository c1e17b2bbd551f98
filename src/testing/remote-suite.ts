/**
 * Acceptance suite for `RemoteTopic`: the same tests that the adapters here pass. It is given the test function of the
 * runner, `it` or `test`, and a `setup` that makes a fresh topic for each test; it adapts to what the remote says in
 * `supports`. Each message of a failure is the rule that is broken.
 */
import { testReadBack } from './read-back-suite.js';
import {
  chain,
  checkConsumed,
  childrenOf,
  judge,
  openLane,
  type RemoteTopicFactory,
  SOURCE_SEGMENT,
  sendOf,
  store,
  twoSegments,
} from './remote-lane.js';
import { check, checkLayouts, onFresh, pause, type RegisterTest } from './suite.js';
import { testDedupWindow } from './window-suite.js';

/** Long enough for what must not come any more to come, in milliseconds. */
const A_WHILE = 40;

/** Registers the tests of `RemoteTopic`. */
export function testRemoteTopic(setup: RemoteTopicFactory, test: RegisterTest): void {
  testLayouts(setup, test);
  testOpening(setup, test);
  testSending(setup, test);
  testFailing(setup, test);
  testDedupWindow(setup, test);
  testReadBack(setup, test);
}

const name = (what: string) => `RemoteTopic: ${what}`;

function testLayouts(setup: RemoteTopicFactory, test: RegisterTest): void {
  const using = onFresh(setup);

  test(
    name('layouts begin with the present one, tell every change in order, and end with their signal'),
    using(async ({ remote, split }, eventually) => {
      const [segmentId] = await twoSegments(remote);
      const seen = await checkLayouts(
        (signal) => remote.layouts(signal),
        () => split(segmentId),
        eventually,
      );
      for (const { cluster, active, segments } of seen) {
        check(cluster === remote.cluster, 'a layout names another cluster than the topic');
        const isHeld = active.every((segment) => segments.get(segment.segmentId)?.state === 'active');
        check(isHeld, 'an active segment is not among all segments');
      }
      const last = seen.at(-1) ?? seen[0];
      check(last.segments.get(segmentId)?.state === 'sealed', 'a layout does not hold the sealed segments');
    }),
  );
}

function testOpening(setup: RemoteTopicFactory, test: RegisterTest): void {
  const using = onFresh(setup);

  test(
    name('the name of a source segment on a segment is a lock, which a close gives back (R14)'),
    using(async ({ remote, another }, eventually) => {
      const [segmentId, otherId] = await twoSegments(remote);
      const lane = await openLane(remote, segmentId, eventually);
      for (const process of [remote, await another()]) {
        const second = await process.open(SOURCE_SEGMENT, segmentId, () => undefined);
        check(second.type === 'fenced', `the name of an open producer is answered ${second.type}: it is a lock`);
      }
      const lanes = [
        await openLane(remote, segmentId, eventually, SOURCE_SEGMENT + 1),
        await openLane(remote, otherId, eventually),
      ];
      await store(lane, eventually, ['7:1']);
      await lane.producer.close();
      lanes.push(await openLane(await another(), segmentId, eventually));
      for (const { producer } of lanes) await producer.close();
    }),
  );

  test(
    name('a sealed segment cannot be opened, and its children can'),
    using(async ({ remote, split }, eventually) => {
      const [segmentId] = await twoSegments(remote);
      await split(segmentId);
      const opened = await remote.open(SOURCE_SEGMENT, segmentId, () => undefined);
      check(opened.type === 'sealed', `opening a sealed segment is answered ${opened.type}`);
      for (const childId of await childrenOf(remote, segmentId, eventually)) {
        const lane = await openLane(remote, childId, eventually);
        await store(lane, eventually, ['7:1']);
        await lane.producer.close();
      }
    }),
  );
}

function testSending(setup: RemoteTopicFactory, test: RegisterTest): void {
  const using = onFresh(setup);

  test(
    name('sends are stored as they are, in order, with one result each'),
    using(async (made, eventually) => {
      const { remote } = made;
      const [segmentId, otherId] = await twoSegments(remote);
      const lane = await openLane(remote, segmentId, eventually);
      await store(lane, eventually, ...chain(1, 5));
      await checkConsumed(made, segmentId, '7:1 7:2 7:3 7:4 7:5', 'what is stored is not what was sent, in its order');
      await checkConsumed(made, otherId, '', 'a send is stored in another segment as well');
      await pause(A_WHILE);
      check(lane.results.length === 5, 'a send gets more than one result');
      const entryIds = lane.results.flatMap((result) => {
        return result.type === 'stored' && result.at !== undefined ? [result.at.entryId] : [];
      });
      const ascends = entryIds.every((entryId, i) => i === 0 || entryId > (entryIds[i - 1] ?? -1n));
      check(ascends, 'the places that results tell do not ascend');
      await lane.producer.close();
    }),
  );

  test(
    name('nothing is told any more of sends that were closed over'),
    using(async ({ remote }, eventually) => {
      const [segmentId] = await twoSegments(remote);
      const { producer, results, failStop } = await openLane(remote, segmentId, eventually);
      for (const step of chain(1, failStop ? 20 : 1)) producer.send(sendOf(...step));
      await producer.close();
      const told = results.length;
      await pause(A_WHILE);
      check(results.length === told, 'a result is told after the close');
    }),
  );
}

function testFailing(setup: RemoteTopicFactory, test: RegisterTest): void {
  const using = onFresh(setup);

  test(
    name('an entry beyond the limit is tooLarge, and what was sent behind it fails with it'),
    using(async (made, eventually) => {
      const { remote } = made;
      const { dedup, failStop } = remote.supports;
      const [segmentId] = await twoSegments(remote);
      const lane = await openLane(remote, segmentId, eventually);
      const large = { after: '7:1', size: remote.maxEntryBytes };
      const behind = chain(3, 4).map(([position, { after = '7:2' } = {}]) => [position, { after }] as const);
      const isChecked = failStop || dedup === 'window';
      const results = await judge(lane, eventually, ['7:1'], ['7:2', large], ...(isChecked ? behind : []));
      check(results[1] === 'tooLarge', `an entry beyond the limit is answered ${results[1]}`);
      for (const result of results.slice(2)) {
        const failed = !/^(stored|duplicate|partial)/.test(result);
        check(failed, `a send behind one that failed is answered ${result}`);
      }
      await checkConsumed(made, segmentId, '7:1', 'a send that failed, or one behind it, is stored');
      await lane.producer.close();
      const anew = await openLane(remote, segmentId, eventually);
      await store(anew, eventually, ...chain(3, 4));
      await anew.producer.close();
    }),
  );

  test(
    name('a send to a segment that was sealed is answered sealed, and not stored'),
    using(async (made, eventually) => {
      const { remote, split } = made;
      const [segmentId] = await twoSegments(remote);
      const lane = await openLane(remote, segmentId, eventually);
      await store(lane, eventually, ['7:1']);
      await split(segmentId);
      const [first] = await judge(lane, eventually, ['7:2', { after: '7:1' }]);
      check(first === 'sealed', `a send to a sealed segment is answered ${first}`);
      await checkConsumed(made, segmentId, '7:1', 'a send to a sealed segment is stored');
      await lane.producer.close();
    }),
  );

  test(
    name('what is sent over a connection that was cut is not told as settled, and the name comes free'),
    using(async (made, eventually) => {
      const { remote, another, disconnect } = made;
      if (disconnect === undefined) return;
      const [segmentId] = await twoSegments(remote);
      const lane = await openLane(remote, segmentId, eventually);
      await store(lane, eventually, ['7:1']);
      await disconnect();
      const [cut] = await judge(lane, eventually, ['7:2', { after: '7:1' }]);
      check(cut === 'ambiguous' || cut === 'unavailable', `a send over a cut connection is answered ${cut}`);
      const next = await openLane(await another(), segmentId, eventually);
      await lane.producer.close();
      const second = await remote.open(SOURCE_SEGMENT, segmentId, () => undefined);
      check(second.type === 'fenced', 'the close of a producer that was cut gives back a name that another holds');
      await next.producer.close();
    }),
  );
}
