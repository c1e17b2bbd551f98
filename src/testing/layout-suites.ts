/**
 * Acceptance suites for the ports of a layout's host: the same tests that the adapters here pass. A suite is given the
 * test function of the runner, `it` or `test`, and a `setup` that makes a fresh host for each test; it adapts to what
 * the host says in `supports`.
 */
import { IsthmusError } from '../errors.js';
import { formatLayout, type Layout, parseLayout, shapeOf, splitSegment } from '../layout/index.js';
import type { LayoutHost } from '../ports/index.js';
import { check, checkLayouts, onFresh, type RegisterTest, type SuiteSetup } from './suite.js';

/** A fresh host of a topic with at least one active segment that can be split. */
export interface LayoutHostSetup<Host extends LayoutHost = LayoutHost> extends SuiteSetup {
  readonly host: Host;
}

/** Makes a fresh host for one test. */
export type LayoutHostFactory = () => Promise<LayoutHostSetup> | LayoutHostSetup;

/** Registers the tests of `LayoutStore`: reading and watching, and where the host writes layouts whole, the commit. */
export function testLayoutStore(setup: LayoutHostFactory, test: RegisterTest): void {
  const using = onFresh(setup);

  test(
    'LayoutStore: what is loaded is a valid layout, and loading changes nothing',
    using(async ({ host: { store } }) => {
      const layout = await store.load();
      check(sameRecord(layout, parseLayout(toJson(layout))), 'the layout is not equal to its record read back');
      check(sameRecord(layout, await store.load()), 'loading twice gives two different layouts');
    }),
  );

  test(
    'LayoutStore: a watch begins with the present layout, tells every later one in order, and ends with its signal',
    using(async ({ host }, eventually) => {
      const first = await host.store.load();
      const seen = await checkLayouts(
        (signal) => host.store.watch(signal),
        () => change(host),
        eventually,
      );
      const last = await host.store.load();
      check(seen[0].epoch === first.epoch, 'the first layout of the watch is not the present one');
      check(seen.at(-1)?.epoch === last.epoch, 'the watch tells of a layout that is not stored');
    }),
  );

  test(
    'LayoutStore: a commit is a compare-and-set on the epoch, of which one of many callers wins',
    using(async ({ host }) => {
      if (!isAtomic(host)) return;
      const { store } = host;
      const before = await store.load();
      const next = split(before);
      const stale = await store.commit(before.epoch + 1, next);
      check(stale.type === 'conflict', `a commit on an epoch that is not stored answers ${stale.type}`);
      check(sameRecord(before, await store.load()), 'a commit that lost has changed the layout');
      const results = await Promise.all([1, 2, 3, 4].map(() => store.commit(before.epoch, next)));
      const winners = results.filter(({ type }) => type === 'committed').length;
      check(winners === 1, `${winners} of four commits on one epoch have won`);
      check(sameRecord(next, await store.load()), 'what is loaded is not what was committed');
    }),
  );
}

/** Registers the tests of `SegmentHost` in the form that the host has. */
export function testSegmentHost(setup: LayoutHostFactory, test: RegisterTest): void {
  const using = onFresh(setup);

  test(
    'SegmentHost: creating, sealing and deleting may be repeated, and are told by the list',
    using(async ({ host }) => {
      if (!isAtomic(host)) return;
      const { store, segments } = host;
      const before = await store.load();
      const next = split(before);
      const created = [...next.segments.values()].filter(({ segmentId }) => !before.segments.has(segmentId));
      const sealedId = before.active[0]?.segmentId as number;
      const listed = async () => new Map((await segments.list()).map(({ segmentId, sealed }) => [segmentId, sealed]));
      for (let times = 0; times < 2; times++) await segments.create(created);
      let list = await listed();
      check(
        created.every(({ segmentId }) => list.get(segmentId) === false),
        'a created segment is not listed as open',
      );
      check(sameRecord(before, await store.load()), 'creating a segment has changed the layout');
      for (let times = 0; times < 2; times++) await segments.seal([sealedId]);
      list = await listed();
      check(list.get(sealedId) === true, 'a sealed segment is not listed as sealed');
      for (let times = 0; times < 2; times++) await segments.delete(created.map(({ segmentId }) => segmentId));
      list = await listed();
      check(!created.some(({ segmentId }) => list.has(segmentId)), 'a deleted segment is still listed');
    }),
  );

  test(
    'SegmentHost: an operation changes the layout by one epoch and answers with it; one that is refused changes nothing',
    using(async ({ host }) => {
      if (isAtomic(host)) return;
      const { store, segments } = host as Extract<
        LayoutHost,
        { segments: { supports: { atomicLayoutChange: false } } }
      >;
      const before = await store.load();
      const segmentId = before.active[0]?.segmentId as number;
      const result = await segments.perform({ type: 'split', segmentId });
      check(result.type === 'performed', 'a split of an active segment is not performed');
      check(result.layout.epoch > before.epoch, 'the answer is not a newer layout');
      check(sameRecord(result.layout, await store.load()), 'the answer is not the layout that is stored');
      check(result.layout.active.length === before.active.length + 1, 'a split does not give one segment more');
      const again = await segments.perform({ type: 'split', segmentId });
      check(again.type === 'failed', 'a split of a sealed segment is not refused: ids are the compare-and-set');
      check(sameRecord(result.layout, await store.load()), 'an operation that was refused has changed the layout');
    }),
  );
}

function isAtomic(
  host: LayoutHost,
): host is Extract<LayoutHost, { segments: { supports: { atomicLayoutChange: true } } }> {
  return host.segments.supports.atomicLayoutChange;
}

/** The layout after a split of its first segment; the host's times are kept, so that no clock is needed. */
function split(layout: Layout): Layout {
  const [first] = layout.active;
  if (first === undefined) throw new IsthmusError('invalidArgument', 'the host of a suite needs an active segment');
  return splitSegment(layout, first.segmentId, { nowMs: first.createdAtMs });
}

/** Any change, by whatever the host has. */
async function change(host: LayoutHost): Promise<void> {
  const layout = await host.store.load();
  if (isAtomic(host)) {
    const next = split(layout);
    await host.segments.create([...next.segments.values()].filter(({ segmentId }) => !layout.segments.has(segmentId)));
    check(
      (await host.store.commit(layout.epoch, next)).type === 'committed',
      'a commit on the stored epoch is refused',
    );
    return;
  }
  const { segments } = host as Extract<LayoutHost, { segments: { supports: { atomicLayoutChange: false } } }>;
  const segmentId = layout.active[0]?.segmentId as number;
  check((await segments.perform({ type: 'split', segmentId })).type === 'performed', 'a split is not performed');
  check(shapeOf(await host.store.load()).cells.length > shapeOf(layout).cells.length, 'a split has no effect');
}

function toJson(layout: Layout): unknown {
  return JSON.parse(JSON.stringify(formatLayout(layout)));
}

function sameRecord(a: Layout, b: Layout): boolean {
  return JSON.stringify(formatLayout(a)) === JSON.stringify(formatLayout(b));
}
