/** Layouts of a Pulsar cluster, on a client and an admin REST that the test plays: sessions, and operations by id. */
import { createLayout, type Layout, rebucketSegment, splitSegment } from 'isthmus';
import { afterEach, describe, expect, it } from 'vitest';
import type { AdminResult, PulsarAdmin } from '../../../src/adapters/pulsar/admin/index.js';
import { PulsarLayouts, pulsarHost, stopAutomaticMerges } from '../../../src/adapters/pulsar/layout/index.js';
import type {
  LayoutEvents,
  LayoutSessionResult,
  LayoutUpdate,
  PulsarClient,
} from '../../../src/adapters/pulsar/protocol/index.js';
import { HandClock } from '../../support/hand-clock.js';
import { until } from '../../support/until.js';

const TOPIC = 'topic://t/n/x';
const NOW = { nowMs: 1_700_000_000_000 };
const FIRST = createLayout({ segments: 2, ...NOW });
const SPLIT = splitSegment(FIRST, 0, NOW);

/** The broker's side of layout sessions. */
class Sessions {
  readonly opened: { readonly topic: string; readonly events: LayoutEvents; closed: boolean }[] = [];
  /** What the next openings answer instead of a session. */
  readonly refusals: LayoutSessionResult[] = [];

  constructor(public layout: Layout) {}

  readonly client = {
    openLayoutSession: async (topic: string, events: LayoutEvents): Promise<LayoutSessionResult> => {
      const refusal = this.refusals.shift();
      if (refusal !== undefined) return refusal;
      const session = { topic, events, closed: false };
      this.opened.push(session);
      const close = () => {
        session.closed = true;
      };
      return { type: 'opened', session: { lastHeardMs: 0, close }, first: this.update() };
    },
  } as Partial<PulsarClient> as PulsarClient;

  update(): LayoutUpdate {
    const { epoch, segments } = this.layout;
    return { epoch, segments: [...segments.values()], brokers: new Map(), controllerUrl: undefined, topic: TOPIC };
  }

  /** Tells the layout to all open sessions. */
  tell(layout: Layout): void {
    this.layout = layout;
    for (const { events, closed } of this.opened) if (!closed) events.onUpdate(this.update());
  }

  cut(): void {
    const session = this.opened.at(-1);
    session?.events.onClosed({ type: 'disconnected', cause: 'lost', reason: 'cut' });
  }
}

const ends: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0)) await end();
});

function layoutsOf(sessions: Sessions, clock = new HandClock()): PulsarLayouts {
  const layouts = new PulsarLayouts({ client: sessions.client, topic: TOPIC, clock });
  ends.push(() => layouts.close());
  return layouts;
}

/** Follows a watch; ends with the test. */
function following(layouts: PulsarLayouts): number[] {
  const stop = new AbortController();
  const epochs: number[] = [];
  const done = (async () => {
    for await (const { epoch } of layouts.watch(stop.signal)) epochs.push(epoch);
  })();
  ends.push(() => {
    stop.abort();
    return done;
  });
  return epochs;
}

describe('a layout session', () => {
  it('is one for all that read and watch, and closed with them', async () => {
    const sessions = new Sessions(FIRST);
    const layouts = layoutsOf(sessions);
    const epochs = following(layouts);
    expect((await layouts.load()).active.map(({ segmentId }) => segmentId)).toEqual([0, 1]);
    await until(() => epochs.length === 1);
    expect(sessions.opened.map(({ topic, closed }) => [topic, closed])).toEqual([[TOPIC, false]]);
    await layouts.close();
    expect(sessions.opened.map(({ closed }) => closed)).toEqual([true]);
    await expect(layouts.load()).rejects.toThrow(/not known/);
  });

  it('tells each epoch once and never an older one, however often the broker does', async () => {
    const sessions = new Sessions(FIRST);
    const epochs = following(layoutsOf(sessions));
    await until(() => epochs.length === 1);
    for (const layout of [FIRST, SPLIT, SPLIT, FIRST]) sessions.tell(layout);
    await until(() => epochs.length === 2);
    sessions.tell(rebucketSegment(SPLIT, 2, [0x4000], NOW));
    await until(() => epochs.length === 3);
    expect(epochs).toEqual([0, 1, 2]);
  });

  it('is opened anew after a cut, with a backoff; what is told meanwhile is not lost', async () => {
    const sessions = new Sessions(FIRST);
    const clock = new HandClock();
    const layouts = layoutsOf(sessions, clock);
    const epochs = following(layouts);
    await layouts.load();
    sessions.refusals.push({ type: 'unreachable', reason: 'nobody there' });
    sessions.cut();
    sessions.layout = SPLIT;
    for (const waited of [100, 200]) {
      await until(() => clock.awaited.length === 1);
      expect(clock.awaited).toEqual([clock.now() + waited]);
      clock.advance(waited);
    }
    expect((await layouts.load()).epoch).toBe(1);
    await until(() => epochs.length === 2);
  });

  it('that cannot be had lets loading reject, with the reason', async () => {
    const sessions = new Sessions(FIRST);
    const clock = new HandClock();
    const layouts = layoutsOf(sessions, clock);
    sessions.refusals.push({ type: 'refused', code: 11, message: 'Topic not found' });
    const loading = expect(layouts.load()).rejects.toThrow(/Topic not found \(error 11\)/);
    await until(() => clock.awaited.length === 2);
    sessions.refusals.push({ type: 'refused', code: 11, message: 'Topic not found' });
    clock.advance(20_000);
    await loading;
  });

  it('goes on when a topic is deleted and created again, from its first epoch', async () => {
    const sessions = new Sessions(FIRST);
    const epochs = following(layoutsOf(sessions));
    await until(() => epochs.length === 1);
    sessions.tell(createLayout({ segments: 3, nowMs: NOW.nowMs + 1 }));
    await until(() => epochs.length === 2);
    sessions.tell(SPLIT);
    await until(() => epochs.length === 3);
    sessions.tell(createLayout({ segments: 1, nowMs: NOW.nowMs + 2 }));
    await until(() => epochs.length === 4);
    expect(epochs).toEqual([0, 0, 1, 0]);
  });

  it('that ends with the topic begins anew with another of its name', async () => {
    const sessions = new Sessions(SPLIT);
    const clock = new HandClock();
    const layouts = layoutsOf(sessions, clock);
    expect((await layouts.load()).epoch).toBe(1);
    sessions.layout = FIRST;
    sessions.refusals.push({ type: 'refused', code: 11, message: 'Topic not found' });
    sessions.cut();
    for (let i = 0; i < 2; i++) {
      await until(() => clock.awaited.length === 1);
      clock.advance(1_000);
    }
    expect((await layouts.load()).epoch).toBe(0);
  });
});

/** The admin's side: an operation answers with `result`, and reading gives these layouts one after the other. */
function adminWith(result: AdminResult<void>, ...reads: (Layout | AdminResult<Layout>)[]) {
  const calls: string[] = [];
  const say = (what: string) => {
    calls.push(what);
    return Promise.resolve(result);
  };
  const admin = {
    split: (_, id) => say(`split ${id}`),
    merge: (_, left, right) => say(`merge ${left} ${right}`),
    rebucket: (_, id, buckets) => say(`rebucket ${id} to ${buckets}`),
    scalableLayout: async () => {
      const read = (reads.length > 1 ? reads.shift() : reads[0]) as Layout | AdminResult<Layout>;
      return 'type' in read ? read : { type: 'ok', value: read };
    },
  } as Partial<PulsarAdmin> as PulsarAdmin;
  return { admin, calls };
}

const OK = { type: 'ok', value: undefined } as const;

describe('an operation', () => {
  const hostWith = (admin: PulsarAdmin, sessions = new Sessions(FIRST)) =>
    pulsarHost({ admin, layouts: layoutsOf(sessions), topic: TOPIC });

  it('answers with the layout afterwards, which reading then gives as well, told or not', async () => {
    const { admin, calls } = adminWith(OK, SPLIT);
    const { store, segments } = hostWith(admin);
    expect((await store.load()).epoch).toBe(0);
    const result = await segments.perform({ type: 'split', segmentId: 0 });
    expect(result).toEqual({ type: 'performed', layout: await store.load() });
    expect((await store.load()).active.map(({ segmentId }) => segmentId)).toEqual([2, 3, 1]);
    expect(calls).toEqual(['split 0']);
  });

  it('waits for a broker that has not heard of it, and over one that does not answer', async () => {
    const { admin } = adminWith(OK, FIRST, { type: 'unavailable', reason: 'no' }, SPLIT);
    const result = await hostWith(admin).segments.perform({ type: 'split', segmentId: 0 });
    expect(result).toMatchObject({ type: 'performed', layout: { epoch: 1 } });
  });

  it('that never shows has failed: it is decided again from what is read', async () => {
    const { admin } = adminWith(OK, FIRST);
    const result = await hostWith(admin).segments.perform({ type: 'merge', leftId: 0, rightId: 1 });
    expect(result).toMatchObject({ type: 'failed', reason: expect.stringMatching(/segment 0 or 1 is still active/) });
  });

  it('that is refused has failed, with what the broker says', async () => {
    const { admin, calls } = adminWith({ type: 'refused', reason: 'Cannot split non-active segment: 0' }, FIRST);
    const { segments } = hostWith(admin);
    const result = await segments.perform({ type: 'rebucket', segmentId: 0, buckets: 3 });
    expect(result).toEqual({ type: 'failed', reason: 'refused: Cannot split non-active segment: 0' });
    expect(calls).toEqual(['rebucket 0 to 3']);
  });

  it('with boundaries of its own is not asked for', async () => {
    const { admin, calls } = adminWith(OK, SPLIT);
    const { segments } = hostWith(admin);
    expect(await segments.perform({ type: 'split', segmentId: 0, at: [5] })).toMatchObject({ type: 'failed' });
    const rebucket = { type: 'rebucket', segmentId: 0, buckets: 2, splits: [5] } as const;
    expect(await segments.perform(rebucket)).toMatchObject({ type: 'failed' });
    expect(calls).toEqual([]);
  });
});

describe('automatic merges', () => {
  const policies = (present: AdminResult<Readonly<Record<string, number | boolean>> | undefined>) => {
    const set: unknown[] = [];
    const admin = {
      autoScalePolicy: async () => present,
      setAutoScalePolicy: async (_, policy) => {
        set.push(policy);
        return OK;
      },
    } as Partial<PulsarAdmin> as PulsarAdmin;
    return { admin, set };
  };
  const stopped = {
    ...{ mergeMsgRateInThreshold: 0, mergeBytesRateInThreshold: 0 },
    ...{ mergeMsgRateOutThreshold: 0, mergeBytesRateOutThreshold: 0 },
  };

  it('are stopped, and what else is set stays', async () => {
    const { admin, set } = policies({ type: 'ok', value: { enabled: false, mergeMsgRateInThreshold: 7 } });
    expect(await stopAutomaticMerges(admin, TOPIC)).toEqual({ type: 'ok', value: true });
    expect(set).toEqual([{ enabled: false, ...stopped }]);
  });

  it('are left alone when they are stopped, or when the policy cannot be read', async () => {
    const done = policies({ type: 'ok', value: stopped });
    expect(await stopAutomaticMerges(done.admin, TOPIC)).toEqual({ type: 'ok', value: false });
    const unauthorized = { type: 'unauthorized', reason: 'no' } as const;
    const forbidden = policies(unauthorized);
    expect(await stopAutomaticMerges(forbidden.admin, TOPIC)).toEqual(unauthorized);
    expect([...done.set, ...forbidden.set]).toEqual([]);
  });
});
