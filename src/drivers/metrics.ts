/**
 * The metrics of PIP-495 (Metrics, Monitoring), read when somebody collects: nothing is counted twice, and without a
 * collector nothing happens at all. The meter is one of `@opentelemetry/api`, or anything of its form.
 */
import type { ControllerStatus } from '../convergence/index.js';
import type { ProvisioningCounters } from '../provisioning/index.js';
import type { LayoutController } from './layout-controller.js';
import type { RemoteRate } from './remote-rate.js';
import type { Replicator, ReplicatorStatus } from './replicator.js';
import type { SlowPath } from './slow-path.js';

/** An instrument that is read by a callback. */
export type ObservableInstrument = object;

/** How an instrument is described. */
export interface InstrumentOptions {
  readonly description: string;
  readonly unit: string;
}

/** What the callback writes to. */
export interface MetricObserver<Instrument> {
  observe(instrument: Instrument, value: number, attributes: Record<string, string | number>): void;
}

/** What is used of a `Meter` of `@opentelemetry/api`. */
export interface MetricMeter<Instrument extends ObservableInstrument = ObservableInstrument> {
  createObservableCounter(name: string, options: InstrumentOptions): Instrument;
  createObservableGauge(name: string, options: InstrumentOptions): Instrument;
  addBatchObservableCallback(callback: (observer: MetricObserver<Instrument>) => void, instruments: Instrument[]): void;
  removeBatchObservableCallback(
    callback: (observer: MetricObserver<Instrument>) => void,
    instruments: Instrument[],
  ): void;
}

/** What is observed, asked for at every collection, so that topics may come and go. */
export interface ObservedReplication {
  /** Running replicators, with the topic of each. */
  replicators(): Iterable<{ readonly topic: string; readonly replicator: Pick<Replicator, 'status'> }>;
  /** Running controllers. */
  controllers?(): Iterable<Pick<LayoutController, 'topic' | 'status' | 'exchanges'>>;
  /** Topics whose existence on a remote is seen to: `status().provisioning.counters` of a provisioner, or one's own. */
  provisioning?(): Iterable<{
    readonly topic: string;
    readonly remote: string;
    readonly counters: ProvisioningCounters;
  }>;
  readonly slowPath?: Pick<SlowPath, 'report'>;
  /** By remote cluster. */
  readonly rates?: ReadonlyMap<string, Pick<RemoteRate, 'waiting'>>;
}

/** Every metric: its kind, its unit and what it says. Their names begin with `isthmus.`. */
const METRICS = {
  'replication.entries': ['counter', '{entry}', 'Source entries stored on the remote, by path: verbatim or rebatched.'],
  'replication.parts': ['counter', '{entry}', 'Entries that re-batched source entries became.'],
  'replication.bytes': ['counter', 'By', 'Bytes stored on the remote, by path.'],
  'replication.inspected': ['counter', '{entry}', 'Batches opened to look for keys.'],
  'replication.skipped': ['counter', '{entry}', 'Entries passed without a send, by reason.'],
  'replication.held': ['counter', '{entry}', 'Times that an entry was held, by reason.'],
  'replication.duplicates': ['counter', '{entry}', 'Sends that the remote had stored already, by cause.'],
  'replication.found_stored': [
    'counter',
    '{entry}',
    'Entries that were found on the remote before they were sent again.',
  ],
  'replication.chunks_given_up': ['counter', '{message}', 'Chunked messages that stayed incomplete.'],
  'replication.lost_at_source': [
    'counter',
    '{event}',
    'Times that the source had let go of entries that were not replicated.',
  ],
  'replication.backlog': ['gauge', '{entry}', 'Entries of a source segment that are not settled on the remote.'],
  'replication.unsettled': ['gauge', '{entry}', 'Entries of a source segment that are read and not settled.'],
  'replication.waiting': ['gauge', '{segment}', 'Source segments, by what they wait for.'],
  'replication.sealed_segments_pinned': [
    'gauge',
    '{segment}',
    'Sealed source segments that the remote has not drained.',
  ],
  'provisioning.decisions': ['counter', '{decision}', 'Looks at a topic on both sides, by the reason decided on.'],
  'provisioning.creations': ['counter', '{call}', 'Creating calls, by kind.'],
  'provisioning.starts': ['counter', '{event}', 'Times that a replicator was started because its topic was there.'],
  'provisioning.stops': ['counter', '{event}', 'Times that a running replicator was stopped for want of its topic.'],
  'convergence.diverged_ranges': ['gauge', '{range}', 'Ranges on which the own layout and the one of a peer differ.'],
  'convergence.lag': ['gauge', 's', 'How long the layouts of two clusters differ, or did last.'],
  'convergence.peer_state_age': ['gauge', 's', 'The age of the last state received from a peer.'],
  'exchange.requests': ['counter', '{request}', 'Pushes to a peer, by result: success or failure.'],
  'slow_path.utilization': ['gauge', '1', 'The share of the slow-path byte rate that was used.'],
  'slow_path.slot_utilization': ['gauge', '1', 'The mean share of the slow-path slots that were taken.'],
  'slow_path.throttled_time': ['counter', 's', 'How long the slow-path budget has kept a segment waiting.'],
  'rate_limit.waiting': ['gauge', '{segment}', 'Source segments that wait for the rate limit towards a remote.'],
} as const satisfies MetricTable;

type MetricName = keyof typeof METRICS;
type Observe = (name: MetricName, value: number, attributes: Record<string, string | number>) => void;

/** Registers the metrics with a meter; the function returned takes them back. */
export function observeReplication<Instrument extends ObservableInstrument>(
  meter: MetricMeter<Instrument>,
  observed: ObservedReplication,
): () => void {
  return observeMetrics(meter, METRICS, (observe) => collect(observed, observe));
}

/** Metrics by name, without the prefix `isthmus.`: the kind, the unit and what it says. */
export type MetricTable = Readonly<Record<string, readonly ['counter' | 'gauge', string, string]>>;

/** Registers a table of metrics that `collect` reads at every collection; the function returned takes them back. */
export function observeMetrics<Instrument extends ObservableInstrument, Table extends MetricTable>(
  meter: MetricMeter<Instrument>,
  table: Table,
  collect: (observe: (name: keyof Table, value: number, attributes: Record<string, string | number>) => void) => void,
): () => void {
  const instruments = new Map<keyof Table, Instrument>();
  for (const [name, [kind, unit, description]] of Object.entries(table)) {
    const create = kind === 'counter' ? meter.createObservableCounter : meter.createObservableGauge;
    instruments.set(name, create.call(meter, `isthmus.${name}`, { description, unit }));
  }
  const callback = (observer: MetricObserver<Instrument>): void => {
    collect((name, value, attributes) => {
      const instrument = instruments.get(name);
      if (instrument !== undefined) observer.observe(instrument, value, attributes);
    });
  };
  const all = [...instruments.values()];
  meter.addBatchObservableCallback(callback, all);
  return () => meter.removeBatchObservableCallback(callback, all);
}

function collect(observed: ObservedReplication, observe: Observe): void {
  const { replicators, controllers, provisioning, slowPath, rates } = observed;
  for (const { topic, replicator } of replicators()) observeReplicator(topic, replicator.status(), observe);
  for (const controller of controllers?.() ?? []) {
    const { topic } = controller;
    for (const [peer, { succeeded, failed }] of controller.exchanges()) {
      observe('exchange.requests', succeeded, { topic, peer, result: 'success' });
      observe('exchange.requests', failed, { topic, peer, result: 'failure' });
    }
    const status = controller.status();
    if (status !== undefined) observeController(topic, status, observe);
  }
  for (const { topic, remote, counters } of provisioning?.() ?? []) {
    observeProvisioning({ topic, remote }, counters, observe);
  }
  const budget = slowPath?.report();
  if (budget !== undefined) {
    observe('slow_path.utilization', budget.utilisation, {});
    observe('slow_path.slot_utilization', budget.slotUtilisation, {});
    for (const [segment, { totalMs }] of budget.throttled) {
      observe('slow_path.throttled_time', totalMs / 1000, { segment });
    }
  }
  for (const [remote, { waiting }] of rates ?? []) observe('rate_limit.waiting', waiting, { remote });
}

function observeReplicator(topic: string, status: ReplicatorStatus, observe: Observe): void {
  const { remote, counters, segments, pinnedSegments } = status;
  const at = { topic, remote };
  observe('replication.entries', counters.verbatimEntries, { ...at, path: 'verbatim' });
  observe('replication.entries', counters.rebatchedEntries, { ...at, path: 'rebatched' });
  observe('replication.parts', counters.parts, at);
  observe('replication.bytes', counters.verbatimBytes, { ...at, path: 'verbatim' });
  observe('replication.bytes', counters.rebatchedBytes, { ...at, path: 'rebatched' });
  observe('replication.inspected', counters.inspected, at);
  observe('replication.found_stored', counters.foundStored, at);
  observe('replication.chunks_given_up', counters.chunksGivenUp, at);
  observe('replication.lost_at_source', counters.lostAtSource, at);
  for (const [reason, times] of Object.entries(counters.skipped))
    observe('replication.skipped', times, { ...at, reason });
  for (const [reason, times] of Object.entries(counters.held)) observe('replication.held', times, { ...at, reason });
  for (const [cause, times] of Object.entries(counters.duplicates)) {
    observe('replication.duplicates', times, { ...at, cause });
  }
  observe('replication.sealed_segments_pinned', pinnedSegments.length, at);
  const waiting = new Map<string, number>();
  for (const { segmentId, waitingFor, backlog, unsettledEntries } of segments) {
    const reason = waitingFor.for === 'operator' ? waitingFor.reason : waitingFor.for;
    waiting.set(reason, (waiting.get(reason) ?? 0) + 1);
    observe('replication.unsettled', unsettledEntries, { ...at, segment: segmentId });
    if (backlog !== undefined) observe('replication.backlog', backlog, { ...at, segment: segmentId });
  }
  for (const [reason, number] of waiting) observe('replication.waiting', number, { ...at, reason });
}

function observeProvisioning(
  at: { readonly topic: string; readonly remote: string },
  { decisions, creations, starts, stops }: ProvisioningCounters,
  observe: Observe,
): void {
  for (const [reason, times] of Object.entries(decisions)) observe('provisioning.decisions', times, { ...at, reason });
  for (const [creation, times] of Object.entries(creations)) {
    observe('provisioning.creations', times, { ...at, creation });
  }
  observe('provisioning.starts', starts, at);
  observe('provisioning.stops', stops, at);
}

function observeController(topic: string, { peers }: ControllerStatus, observe: Observe): void {
  for (const { cluster, diverged, lagMs, ageMs } of peers) {
    const at = { topic, peer: cluster };
    observe('convergence.diverged_ranges', diverged.length, at);
    if (lagMs !== undefined) observe('convergence.lag', lagMs / 1000, at);
    if (ageMs !== undefined) observe('convergence.peer_state_age', ageMs / 1000, at);
  }
}
