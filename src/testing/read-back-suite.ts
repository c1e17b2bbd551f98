/** The part of the suite of `RemoteTopic` for remotes that are read back (R15): barriers, read-backs and the pin. */
import { comparePositions } from '../dedup/index.js';
import { parseEntry, type SourcePosition } from '../entry/index.js';
import type { RemoteTopic, StoredEntry } from '../ports/index.js';
import {
  bodiesOf,
  chain,
  checkConsumed,
  openLane,
  type RemoteTopicFactory,
  type RemoteTopicSetup,
  sendOf,
  store,
  textOf,
  twoSegments,
} from './remote-lane.js';
import { check, type Eventually, onFresh, pause, type RegisterTest, rejects } from './suite.js';

type Range = Parameters<RemoteTopic['readBack']>[1];

/** Long enough for an entry of an old connection to be stored, in milliseconds. */
const A_WHILE = 40;

export function testReadBack(setup: RemoteTopicFactory, test: RegisterTest): void {
  const name = (what: string) => `RemoteTopic that is read back: ${what}`;
  const onAny = onFresh(setup);
  const using = (work: (made: RemoteTopicSetup, eventually: Eventually) => Promise<void>) =>
    onAny(async (made, eventually) => {
      if (made.remote.supports.dedup === 'readBack') await work(made, eventually);
    });

  test(
    name('a barrier lies behind what was sent before it, and consumers never see it'),
    using(async (made, eventually) => {
      const { remote } = made;
      const [segmentId] = await twoSegments(remote);
      const lane = await openLane(remote, segmentId, eventually);
      const first = await lane.producer.barrier();
      await store(lane, eventually, ...chain(1, 3));
      const second = await lane.producer.barrier();
      await store(lane, eventually, ['7:4', { after: '7:3' }]);
      await checkConsumed(made, segmentId, '7:1 7:2 7:3 7:4', 'what consumers get is not what was sent');
      const before = await read(remote, segmentId, { after: undefined, through: first });
      check(bodiesOf(bytesOf(before)) === '', 'an entry lies before a barrier that was stored before it');
      const between = await read(remote, segmentId, { after: first, through: second });
      check(
        bodiesOf(bytesOf(between)) === '7:1 7:2 7:3',
        'what was sent between two barriers does not lie between them',
      );
      await lane.producer.close();
    }),
  );

  test(
    name('reading back brings the stored entries of a range, in order and as they are'),
    using(async ({ remote, stored, another }, eventually) => {
      const [segmentId, otherId] = await twoSegments(remote);
      const lane = await openLane(remote, segmentId, eventually);
      const other = await openLane(remote, otherId, eventually);
      await store(lane, eventually, ...chain(1, 4));
      await store(other, eventually, ['8:1']);
      const through = await lane.producer.barrier();
      await store(lane, eventually, ['7:5', { after: '7:4' }]);
      const all = await read(await another(), segmentId, { after: undefined, through });
      check(bodiesOf(bytesOf(all)) === '7:1 7:2 7:3 7:4', 'a read-back does not bring what is stored up to its end');
      const consumed = (await stored(segmentId)).map((bytes) => parseEntry(bytes));
      const areWhole = all.every(({ bytes }, i) => textOfEntry(bytes) === consumed[i]?.metadata.sourcePosition);
      check(areWhole, 'what is read back is not the entry as it is stored');
      checkPlaces(
        all,
        lane.results.flatMap((result) => (result.type === 'stored' ? [result.at] : [])),
      );
      for (const [i, { position }] of all.entries()) {
        const behind = await read(remote, segmentId, { after: position, through });
        const isBehind = bodiesOf(bytesOf(behind)) === bodiesOf(bytesOf(all.slice(i + 1)));
        check(isBehind, 'a read-back does not begin directly behind its position');
        const upTo = await read(remote, segmentId, { after: undefined, through: position });
        const isUpTo = bodiesOf(bytesOf(upTo)) === bodiesOf(bytesOf(all.slice(0, i + 1)));
        check(isUpTo, 'a read-back does not end with the entry at its end');
      }
      for (const { producer } of [lane, other]) await producer.close();
    }),
  );

  test(
    name('whatever an older connection had sent lies before the barrier'),
    using(async ({ remote, another, stored, disconnect }, eventually) => {
      const [segmentId] = await twoSegments(remote);
      const old = await openLane(remote, segmentId, eventually);
      for (const step of chain(1, old.failStop ? 50 : 1)) old.producer.send(sendOf(...step));
      await (disconnect === undefined ? old.producer.close() : disconnect());
      const next = await openLane(await another(), segmentId, eventually);
      const through = await next.producer.barrier();
      const found = bodiesOf(bytesOf(await read(remote, segmentId, { after: undefined, through })));
      await pause(A_WHILE);
      const all = bodiesOf(await stored(segmentId));
      check(all === found, 'an entry of an older connection is stored behind the barrier');
      await next.producer.close();
      if (disconnect !== undefined)
        check(await rejects(old.producer.barrier()), 'a barrier is told over a cut connection');
    }),
  );

  test(
    name('a sealed segment is read back to its final end without a barrier'),
    using(async ({ remote, split }, eventually) => {
      const [segmentId, emptyId] = await twoSegments(remote);
      const lane = await openLane(remote, segmentId, eventually);
      await store(lane, eventually, ...chain(1, 3));
      for (const id of [segmentId, emptyId]) await split(id);
      await lane.producer.close();
      const all = await read(remote, segmentId, { after: undefined, through: 'end' });
      check(bodiesOf(bytesOf(all)) === '7:1 7:2 7:3', 'a sealed segment is not read back to its end');
      const behind = await read(remote, segmentId, { after: all.at(-1)?.position, through: 'end' });
      check(behind.length === 0, 'something is read back behind the end of a sealed segment');
      const none = await read(remote, emptyId, { after: undefined, through: 'end' });
      check(bodiesOf(bytesOf(none)) === '', 'something is read back of a segment that was sealed empty');
    }),
  );

  test(
    name('a read-back rejects when it cannot go on'),
    using(async ({ remote, split, prune }, eventually) => {
      const [segmentId] = await twoSegments(remote);
      const lane = await openLane(remote, segmentId, eventually);
      await store(lane, eventually, ...chain(1, 3));
      const through = await lane.producer.barrier();
      await lane.producer.close();
      const range = { after: undefined, through };
      const aborted = rejects(read(remote, segmentId, range, AbortSignal.abort()));
      check(await aborted, 'a read-back does not reject when its signal aborts');
      if (prune === undefined) return;
      await split(segmentId);
      await prune(segmentId);
      const pruned = rejects(read(remote, segmentId, { after: undefined, through: 'end' }));
      check(await pruned, 'a read-back of a segment that is gone ends as if nothing had been stored');
    }),
  );

  test(
    name('the pin stands where it was moved to, never goes back, and holds what lies behind it'),
    using(async ({ remote, another, trim }, eventually) => {
      const { pin } = remote;
      if (pin === undefined) return;
      const [segmentId, otherId] = await twoSegments(remote);
      check((await pin.position(segmentId)) === undefined, 'a fresh pin does not stand at the start of a segment');
      const lane = await openLane(remote, segmentId, eventually);
      await store(lane, eventually, ...chain(1, 4));
      const through = await lane.producer.barrier();
      const all = await read(remote, segmentId, { after: undefined, through });
      const [first, second] = all.map(({ position }) => position) as [SourcePosition, SourcePosition];
      await pin.move(segmentId, second);
      const standsAt = async (of: RemoteTopic) => textOf(await of.pin?.position(segmentId)) === textOf(second);
      check(await standsAt(remote), 'a pin does not stand where it was moved to');
      check(await standsAt(await another()), 'a pin that was moved is not durable: another process finds it elsewhere');
      check((await pin.position(otherId)) === undefined, 'a move of the pin on one segment counts on another');
      await pin.move(segmentId, first);
      check(await standsAt(remote), 'a pin goes back');
      await trim?.(segmentId, through);
      const kept = await read(remote, segmentId, { after: second, through });
      check(bodiesOf(bytesOf(kept)) === '7:3 7:4', 'what lies behind the pin is trimmed');
      await lane.producer.close();
    }),
  );
}

/** All entries of a range but barriers, whose positions ascend. */
async function read(
  remote: RemoteTopic,
  segmentId: number,
  range: Range,
  signal: AbortSignal = new AbortController().signal,
): Promise<StoredEntry[]> {
  const all: StoredEntry[] = [];
  for await (const piece of remote.readBack(segmentId, range, signal)) all.push(...piece);
  for (const [i, { position }] of all.entries()) {
    const before = all[i - 1]?.position;
    const ascends = before === undefined || comparePositions(before, position) < 0;
    check(ascends, 'the positions of what is read back do not ascend');
  }
  return all.filter(({ bytes }) => parseEntry(bytes).metadata.markerType === undefined);
}

function bytesOf(entries: readonly StoredEntry[]): Uint8Array[] {
  return entries.map(({ bytes }) => bytes);
}

function textOfEntry(bytes: Uint8Array): string | undefined {
  return parseEntry(bytes).metadata.sourcePosition;
}

/** Where the results of sends told their places, they are those under which the entries are read back. */
function checkPlaces(entries: readonly StoredEntry[], told: readonly (SourcePosition | undefined)[]): void {
  for (const [i, { position }] of entries.entries()) {
    const place = told[i];
    const isSame = place === undefined || comparePositions(place, position) === 0;
    check(isSame, 'an entry is read back at another place than its result told');
  }
}
