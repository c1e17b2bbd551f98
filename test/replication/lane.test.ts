/** A lane by itself: its line, and where its checkpoint stands. What is done with both is told beside this. */
import { describe, expect, it } from 'vitest';
import type { SourcePosition } from '../../src/entry/index.js';
import type { LaneSend } from '../../src/replication/entry-record.js';
import { EntryWindow } from '../../src/replication/entry-window.js';
import { Lane } from '../../src/replication/lane.js';
import { FULL_RANGE } from '../../src/ring/index.js';

/** In the source. */
const at = (entryId: number): SourcePosition => ({ ledgerId: 7n, entryId: BigInt(entryId) });
/** On the remote. */
const there = (entryId: number): SourcePosition => ({ ledgerId: 1n, entryId: BigInt(entryId) });
const laneFrom = (checkpoint?: SourcePosition) => new Lane(3, FULL_RANGE, checkpoint);

function sendOf(entryId: number): LaneSend {
  const position = at(entryId);
  return {
    record: new EntryWindow().add(position, new Uint8Array()),
    rectangle: undefined,
    send: {
      position,
      previous: undefined,
      lowestHash: undefined,
      buffers: { head: new Uint8Array(), payload: new Uint8Array() },
    },
    bytes: 0,
  };
}

/** A lane with sends in flight and in the queue. */
function laneWith(inFlight: readonly number[], queued: readonly number[]): Lane {
  const lane = laneFrom();
  for (const id of [...inFlight, ...queued]) lane.enqueue(sendOf(id));
  for (const _ of inFlight) lane.inFlight.push(lane.queue.shift() ?? expect.fail('an empty queue'));
  return lane;
}

const idsOf = (sends: readonly LaneSend[]) => sends.map(({ send }) => Number(send.position.entryId));

describe('R12: the line of a lane', () => {
  it('refuses what would overtake or come twice, and names both positions', () => {
    const lane = laneWith([], [2, 4]);
    for (const id of [3, 4]) expect(() => lane.enqueue(sendOf(id))).toThrow(new RegExp(`"${id}n".*"4n".* segment 3$`));
    expect(idsOf(lane.takeAll())).toEqual([2, 4]);
  });

  it('is idle when nothing waits and nothing is in flight', () => {
    const cases = [laneWith([], []), laneWith([1], []), laneWith([], [1]), laneWith([1], [2])];
    expect(cases.map(({ isIdle }) => isIdle)).toEqual([true, false, false, false]);
  });

  it('rewound is one queue in the old order, and only what was in flight may come twice', () => {
    const lane = laneWith([1, 2], [3]);
    lane.previous = at(2);
    lane.rewind('ambiguous');
    expect(lane.previous).toBeUndefined();
    expect(lane.report()).toEqual({ segmentId: 3, state: 'gated', inFlight: 0, queued: 3 });
    const sends = lane.takeAll();
    expect(idsOf(sends)).toEqual([1, 2, 3]);
    expect(sends.map(({ record }) => record.repeated)).toEqual(['ambiguous', 'ambiguous', undefined]);
  });

  it('emptied takes again what is behind the last that is stored', () => {
    const lane = laneWith([1, 2], [3]);
    lane.stored(lane.inFlight.shift() ?? expect.fail('nothing in flight'));
    expect(idsOf(lane.takeAll())).toEqual([2, 3]);
    expect(() => lane.enqueue(sendOf(1))).toThrow();
    lane.enqueue(sendOf(2));
    expect(lane.report()).toMatchObject({ inFlight: 0, queued: 1 });
  });

  it('reports its last failure while there is one', () => {
    const lane = laneFrom();
    expect(lane.report()).toStrictEqual({ segmentId: 3, state: 'gated', inFlight: 0, queued: 0 });
    lane.failure = 'too slow';
    expect(lane.report()).toMatchObject({ failure: 'too slow' });
  });
});

describe('R15: the checkpoint of a lane', () => {
  it('passes copies in the order of the remote, as far as their entries are settled', () => {
    const lane = laneFrom(there(9));
    lane.settledTo(at(5));
    expect(lane.checkpoint).toEqual(there(9));
    for (const id of [1, 2, 3]) lane.storedAt(at(id), there(10 + id));
    lane.settledTo(at(0));
    expect(lane.checkpoint).toEqual(there(9));
    lane.settledTo(at(2));
    expect(lane.checkpoint).toEqual(there(12));
    lane.storedAt(at(1), there(14));
    lane.settledTo(at(2));
    expect(lane.checkpoint).toEqual(there(12));
    lane.settledTo(at(3));
    expect(lane.checkpoint).toEqual(there(14));
  });

  it('stops before what was read back and may be of another segment, until its entry is read here', () => {
    const lane = laneFrom();
    const copies = [
      { position: at(1), at: there(1) },
      { position: at(2), at: there(2) },
    ];
    lane.openedWith(copies, there(2), at(9));
    lane.settledTo(at(2));
    expect(lane.checkpoint).toBeUndefined();
    lane.recognize(at(1));
    lane.settledTo(at(2));
    expect(lane.checkpoint).toEqual(there(1));
    lane.recognize({ ...at(2), part: 0x7fff });
    lane.settledTo(at(2));
    expect(lane.checkpoint).toEqual(there(2));
  });

  it('takes what was not read here by the last position of the source for that of others', () => {
    const lane = laneFrom();
    lane.openedWith([{ position: at(100), at: there(1) }], there(1), at(4));
    lane.storedAt(at(4), there(2));
    lane.settledTo(at(3));
    expect(lane.checkpoint).toBeUndefined();
    lane.settledTo(at(4));
    expect(lane.checkpoint).toEqual(there(2));
    // Once is enough: what comes later is this lane's own.
    lane.storedAt(at(5), there(3));
    lane.settledTo(at(5));
    expect(lane.checkpoint).toEqual(there(3));
  });

  it('counts nothing that was read back where the source has written nothing', () => {
    const lane = laneFrom();
    lane.openedWith([{ position: at(1), at: there(1) }], there(6), undefined);
    expect(lane.checkpoint).toEqual(there(6));
  });

  it('of an idle lane without copies stands at the end of the segment, and never goes back', () => {
    const lane = laneFrom(there(3));
    const stands = (end: SourcePosition | undefined) => {
      lane.endsAt(end);
      return lane.checkpoint;
    };
    expect([undefined, there(2), there(5), there(4)].map(stands)).toEqual([there(3), there(3), there(5), there(5)]);
    lane.enqueue(sendOf(1));
    expect(stands(there(8))).toEqual(there(5));
    lane.inFlight.push(lane.queue.shift() ?? expect.fail('an empty queue'));
    expect(stands(there(8))).toEqual(there(5));
    lane.inFlight.takeAll();
    lane.storedAt(at(1), there(7));
    expect(stands(there(8))).toEqual(there(5));
    lane.settledTo(at(1));
    expect(lane.checkpoint).toEqual(there(7));
    expect(stands(there(8))).toEqual(there(8));
  });
});
