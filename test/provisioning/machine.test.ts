/**
 * The machine: transcripts of what happens to it and what it wants done, and laws over random courses. Time stands in
 * the transcripts as milliseconds since the beginning; nothing is drawn but 0, so that waits last their whole time.
 */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  type ProvisioningEffect,
  type ProvisioningEvent,
  type ProvisioningOptions,
  type ProvisioningState,
  startProvisioning,
  stepProvisioning,
  type TopicShape,
} from '../../src/provisioning/index.js';
import { refusal } from '../support/expect.js';
import {
  arbPolicy,
  arbTopicShape,
  missing,
  noNamespace,
  orphans,
  partitioned,
  plain,
  policy,
  scalable,
  unreachable,
} from './shapes.js';

/** A machine that writes down what it wants done. */
class Course {
  nowMs = 0;
  state: ProvisioningState;
  readonly said: string[] = [];

  constructor(options: Partial<ProvisioningOptions> = {}) {
    const { state, effects } = startProvisioning({ policy: policy(), ...options });
    this.state = state;
    this.write(effects);
  }

  /** What one event leads to. */
  tell(event: ProvisioningEvent): string[] {
    const { state, effects } = stepProvisioning(this.state, event);
    this.state = state;
    return this.write(effects);
  }

  /** The answer to the look under way. */
  looked(local: TopicShape, remote: TopicShape, random = 0): string[] {
    return this.tell({ type: 'looked', lookId: this.state.lookId, local, remote, nowMs: this.nowMs, random });
  }

  /** The time that was set, and the answer to the look that follows. */
  again(local: TopicShape, remote: TopicShape): string[] {
    const { wakeAtMs } = this;
    if (wakeAtMs === undefined) throw new Error('no time was set');
    this.nowMs = wakeAtMs;
    this.tell({ type: 'tick' });
    return this.looked(local, remote);
  }

  wakeAtMs: number | undefined;

  private write(effects: readonly ProvisioningEffect[]): string[] {
    const lines = effects.map((effect) => {
      if (effect.type === 'wake') this.wakeAtMs = effect.atMs;
      return lineOf(effect);
    });
    this.said.push(...lines);
    return lines;
  }
}

function lineOf(effect: ProvisioningEffect): string {
  switch (effect.type) {
    case 'look':
      return `look ${effect.lookId}`;
    case 'create':
      return 'partitions' in effect.creation
        ? `${effect.creation.type} ${effect.creation.partitions}`
        : effect.creation.type;
    case 'start':
      return effect.scope.type === 'partitioned' ? `start [${effect.scope.partitions}]` : `start ${effect.scope.type}`;
    case 'stop':
      return 'stop';
    case 'wake':
      return `wake at ${effect.atMs}`;
    case 'log':
      return `log ${effect.change.outcome} ${effect.change.reason} in ${effect.change.phase}`;
  }
}

const drawn = { nowMs: 0, random: 0 };
const off = { policy: policy({ createTopicToRemoteCluster: false }) };

describe('a course', () => {
  it('creates, reads what came of it, and starts once', () => {
    const course = new Course();
    expect(course.looked(partitioned(2), missing)).toEqual([
      'log createPartitioned topicMissing in waiting',
      'createPartitioned 2',
    ]);
    expect(course.tell({ type: 'created' })).toEqual(['look 2']);
    expect(course.looked(partitioned(2), partitioned(2))).toEqual([
      'log replicate sameShape in waiting',
      'start [0,1]',
      'wake at 60000',
    ]);
    expect(course.again(partitioned(2), partitioned(2))).toEqual(['wake at 120000']);
  });

  it('with creation off polls from 0.1 s, doubling to 60 s, and says so once', () => {
    const course = new Course(off);
    course.looked(plain, missing);
    for (let i = 0; i < 11; i++) course.again(plain, missing);
    course.again(plain, plain);
    const times = [100, 300, 700, 1_500, 3_100, 6_300, 12_700, 25_500, 51_100, 102_300, 162_300, 222_300];
    expect(course.said.filter((line) => line.startsWith('wake'))).toEqual(
      [...times, 282_300].map((atMs) => `wake at ${atMs}`),
    );
    expect(course.said.filter((line) => line.startsWith('log'))).toEqual([
      'log wait topicMissing in waiting',
      'log replicate sameShape in waiting',
    ]);
    expect(course.said.filter((line) => line.startsWith('start'))).toEqual(['start nonPartitioned']);
    expect(course.state.counters).toEqual({
      decisions: { topicMissing: 12, sameShape: 1 },
      creations: {},
      starts: 1,
      stops: 0,
    });
  });

  it('waits a little less than the whole time, as was drawn', () => {
    const law = (random: number) => {
      const course = new Course(off);
      course.looked(plain, missing, random);
      return course.wakeAtMs !== undefined && course.wakeAtMs > 79 && course.wakeAtMs <= 100;
    };
    fc.assert(fc.property(fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }), law));
  });

  it('after a creating call another one has to wait', () => {
    const course = new Course();
    course.looked(plain, missing);
    course.tell({ type: 'created' });
    expect(course.looked(plain, missing)).toEqual(['wake at 100']);
    expect(course.again(plain, missing)).toEqual(['createPlain']);
    course.tell({ type: 'created' });
    expect(course.looked(plain, missing)).toEqual(['wake at 300']);
    expect(course.state.counters.creations).toEqual({ createPlain: 2 });
  });

  it('expands when the operator has expanded, reads both counts again, and starts anew for all partitions', () => {
    const course = new Course();
    course.looked(partitioned(3), partitioned(3));
    expect(course.tell({ type: 'updated' })).toEqual(['look 2']);
    expect(course.looked(partitioned(5), partitioned(3))).toEqual([
      'log expandPartitions partitionMismatch in updated',
      'expandPartitions 5',
    ]);
    expect(course.tell({ type: 'created' })).toEqual(['look 3']);
    expect(course.looked(partitioned(5), partitioned(5))).toEqual([
      'log replicate sameShape in updated',
      'stop',
      'wake at 100',
    ]);
    course.tell({ type: 'stopped', ...drawn });
    expect(course.again(partitioned(5), partitioned(5))).toContain('start [0,1,2,3,4]');
  });

  it('does not take a look that was begun before for an answer to the operator', () => {
    const course = new Course();
    course.looked(partitioned(3), partitioned(3));
    course.tell({ type: 'ask' });
    course.tell({ type: 'updated' });
    expect(course.looked(partitioned(3), partitioned(3))).toContain('look 3');
    expect(course.looked(partitioned(5), partitioned(3))).toContain('expandPartitions 5');
  });

  it('a look that fails leaves the operator without an answer, and not for good', () => {
    const course = new Course();
    course.tell({ type: 'updated' });
    course.looked(partitioned(5), unreachable);
    course.looked(partitioned(5), unreachable);
    expect(course.again(partitioned(5), partitioned(3))).toContain('expandPartitions 5');
  });

  it('stops when the counts come apart under a running replicator, and goes on when they meet', () => {
    const course = new Course();
    course.looked(partitioned(3), partitioned(3));
    expect(course.again(partitioned(3), partitioned(5))).toEqual([
      'log stop partitionMismatch in running',
      'stop',
      'wake at 60100',
    ]);
    course.tell({ type: 'stopped', ...drawn });
    course.tell({ type: 'tick' });
    expect(course.looked(partitioned(5), partitioned(5))).toContain('start [0,1,2,3,4]');
  });

  it('goes back to waiting when the destination is lost, and starts again when it is back', () => {
    const course = new Course(off);
    course.looked(plain, plain);
    expect(course.tell({ type: 'lost' })).toEqual(['log wait topicLost in running', 'stop']);
    expect(course.tell({ type: 'lost' })).toEqual([]);
    expect(course.tell({ type: 'stopped', ...drawn })).toEqual(['wake at 100']);
    expect(course.again(plain, missing)).toEqual(['log wait topicMissing in waiting', 'wake at 300']);
    expect(course.again(plain, plain)).toContain('start nonPartitioned');
  });

  it('starts nothing while the replicator before comes to rest', () => {
    const course = new Course();
    course.looked(plain, plain);
    course.tell({ type: 'lost' });
    course.tell({ type: 'tick' });
    expect(course.looked(plain, plain)).toEqual(['log replicate sameShape in waiting', 'wake at 100']);
    course.tell({ type: 'stopped', ...drawn });
    expect(course.again(plain, plain)).toContain('start nonPartitioned');
  });

  it('a replicator that is lost as soon as it runs is started at longer and longer intervals', () => {
    const course = new Course();
    course.looked(plain, plain);
    const times = Array.from({ length: 5 }, () => {
      course.tell({ type: 'lost' });
      course.tell({ type: 'stopped', nowMs: course.nowMs, random: 0 });
      const waited = (course.wakeAtMs ?? 0) - course.nowMs;
      course.again(plain, plain);
      return waited;
    });
    expect(times).toEqual([100, 200, 400, 800, 1_600]);
  });

  it.each<[string, TopicShape]>([
    ['a missing topic', missing],
    ['a missing partition', partitioned(2, 1)],
    ['a missing record', orphans(0, 1)],
  ])('%s under a running replicator is a loss, even where it may be created', (_, remote) => {
    const course = new Course();
    course.looked(partitioned(2), partitioned(2));
    expect(course.again(partitioned(2), remote).slice(0, 2)).toEqual(['log wait topicLost in running', 'stop']);
  });

  it.each<[string, TopicShape, TopicShape]>([
    ['remote', plain, unreachable],
    ['local topic', unreachable, plain],
  ])('an unknown %s stops nothing that runs', (_, local, remote) => {
    const course = new Course();
    course.looked(plain, plain);
    expect(course.again(local, remote).at(-1)).toBe('wake at 60100');
    expect(course.state.replicator.type).toBe('running');
    expect(course.said).not.toContain('stop');
  });

  it('says once what goes on in the same way, whatever words a failure has', () => {
    const course = new Course();
    course.looked(plain, noNamespace);
    course.again(plain, noNamespace);
    for (const reason of ['no route', 'still no route']) {
      course.again(plain, { type: 'unknown', failure: 'unavailable', reason });
    }
    course.again(plain, { type: 'unknown', failure: 'unauthorized', reason: '401' });
    expect(course.said.filter((line) => line.startsWith('log'))).toEqual([
      'log wait namespaceMissing in waiting',
      'log hold remoteUnknown in waiting',
      'log hold remoteUnknown in waiting',
    ]);
  });

  it('ends with the replicator, and nothing comes after', () => {
    const course = new Course();
    course.looked(plain, plain);
    expect(course.tell({ type: 'end' })).toEqual(['stop']);
    expect(course.tell({ type: 'stopped', ...drawn })).toEqual([]);
    expect(course.tell({ type: 'tick' })).toEqual([]);
    expect(course.state.replicator.type).toBe('none');
  });

  it.each([
    { retryInitialMs: 0 },
    { retryMaxMs: Number.POSITIVE_INFINITY },
    { watchMs: Number.NaN },
    { retryInitialMs: 200, retryMaxMs: 100 },
  ])('refuses %o', (times) => {
    expect(refusal(() => startProvisioning({ policy: policy(), ...times }))).toBe('invalidArgument');
  });
});

type Told =
  | { readonly type: 'tick' | 'ask' | 'updated' | 'created' | 'lost' | 'stopped' }
  | { readonly type: 'looked'; readonly stale: boolean; readonly local: TopicShape; readonly remote: TopicShape };

/** Mostly shapes that fit, so that replicators are started and lost. */
const arbSide = fc.oneof(
  { weight: 6, arbitrary: fc.constant(partitioned(2)) },
  { weight: 2, arbitrary: fc.constantFrom(plain, partitioned(3), scalable(0), missing) },
  { weight: 1, arbitrary: arbTopicShape },
);
const arbTold: fc.Arbitrary<Told> = fc.oneof(
  { weight: 2, arbitrary: fc.record({ type: fc.constant('tick' as const) }) },
  {
    weight: 3,
    arbitrary: fc.record({ type: fc.constantFrom('ask' as const, 'updated', 'created', 'lost', 'stopped') }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      type: fc.constant('looked' as const),
      stale: fc.nat(9).map((n) => n === 0),
      local: arbSide,
      remote: arbSide,
    }),
  },
);

describe('over random courses', () => {
  /** Tells a machine what may be told, and what may not be at the time, and checks every step. */
  function follow(told: readonly Told[], options: ProvisioningOptions): Course {
    const course = new Course(options);
    let live = 0;
    let resting = false;
    let isSet = false;
    const check = (lines: string[]) => {
      for (const line of lines) {
        if (line.startsWith('start')) {
          if (live > 0 || resting) throw new Error('a second replicator was started');
          live++;
        }
        if (line === 'stop') {
          if (live === 0 || resting) throw new Error('nothing is there to stop');
          resting = true;
        }
      }
      if (lines.some((line) => line.startsWith('wake'))) isSet = true;
      if (course.state.asking === 'nothing' && !isSet && !resting) throw new Error('nothing follows');
    };
    for (const event of told) {
      const at = { nowMs: course.nowMs++, random: 0.5 };
      if (event.type === 'looked') {
        const { local, remote, stale } = event;
        const lookId = course.state.lookId - (stale ? 1 : 0);
        check(course.tell({ type: 'looked', lookId, local, remote, ...at }));
      } else if (event.type === 'stopped') {
        if (!resting) continue;
        [live, resting] = [0, false];
        check(course.tell({ type: 'stopped', ...at }));
      } else {
        if (event.type === 'tick') isSet = false;
        check(course.tell({ type: event.type }));
      }
    }
    return course;
  }

  it('there is never a second replicator, and always something that follows', () => {
    const law = (told: readonly Told[], allowed: ProvisioningOptions['policy']) => {
      follow(told, { policy: allowed });
    };
    fc.assert(fc.property(fc.array(arbTold, { maxLength: 60 }), arbPolicy, law), { numRuns: 500 });
  });

  it('B61: with creation off not one creating call is asked for', () => {
    const law = (told: readonly Told[], allowed: ProvisioningOptions['policy']) => {
      const { state } = follow(told, { policy: { ...allowed, createTopicToRemoteCluster: false } });
      return Object.keys(state.counters.creations).length === 0;
    };
    fc.assert(fc.property(fc.array(arbTold, { maxLength: 60 }), arbPolicy, law), { numRuns: 500 });
  });
});
