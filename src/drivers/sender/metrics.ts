/**
 * The metrics of a sender, under the names that Narad gives them behind a prefix of our own, so that its dashboards are
 * soon made to fit. Counts and states are read when somebody collects; how long requests take is told as they end.
 */
import {
  type InstrumentOptions,
  type MetricMeter,
  type MetricTable,
  type ObservableInstrument,
  observeMetrics,
} from '../metrics.js';
import type { RemoteSender } from './remote-sender.js';
import type { CursorStanding, LinkStanding, RemoteSenderStatus, RemoteStanding } from './status.js';

/** What is recorded to as things happen. */
export interface MetricHistogram {
  record(value: number, attributes: Record<string, string | number>): void;
}

/** What is used of a `Meter` of `@opentelemetry/api`. */
export interface SenderMeter<Instrument extends ObservableInstrument = ObservableInstrument>
  extends MetricMeter<Instrument> {
  createHistogram(
    name: string,
    options: InstrumentOptions & { readonly advice: { readonly explicitBucketBoundaries: number[] } },
  ): MetricHistogram;
}

/** Every metric that is read: its kind, its unit and what it says. Their names begin with `isthmus.`. */
const METRICS = {
  fanout_remote_state: ['gauge', '1', '1 for the state that a cursor is in.'],
  fanout_remote_lag_seconds: ['gauge', 's', 'The age of the oldest record that is not sent; 0 when all are.'],
  fanout_remote_retention_headroom_seconds: ['gauge', 's', 'How long the parent still keeps the oldest unsent record.'],
  fanout_remote_last_success_timestamp_seconds: ['gauge', 's', 'When a target last accepted records.'],
  fanout_remote_check_failures_total: ['counter', '{check}', 'Checks of a target that failed.'],
  fanout_remote_skipped_records_total: ['counter', '{record}', 'Records that were skipped on request.'],
  fanout_remote_rereads_total: ['counter', '{slab}', 'Slabs that could not be held and were read again.'],
  fanout_child_dropped_messages: ['counter', '{record}', 'Records that the parent dropped before they were sent.'],
  fanout_lag_messages: ['gauge', '{record}', 'Records that are not sent yet.'],
  remote_errors_total: ['counter', '{error}', 'Failed requests with records and failed checks, by class.'],
  remote_resent_records_total: [
    'counter',
    '{record}',
    'Records of requests that failed without telling whether they were stored.',
  ],
  remote_gate_backoff_seconds: ['gauge', 's', 'The most that the next probe waits; 0 when the gate is open.'],
  remote_held_bytes: ['gauge', 'By', 'What waiting lanes keep in memory.'],
  remote_chunk_bytes_limit: ['gauge', 'By', 'The smallest cap of a request body over all lanes.'],
  remote_wire_bytes_total: ['counter', 'By', 'Bytes of request bodies as sent.'],
  remote_body_bytes_total: ['counter', 'By', 'Bytes of request bodies before compression.'],
  remote_requests_total: ['counter', '{request}', 'Requests, by status or error.'],
  remote_rtt_seconds: ['gauge', 's', 'How long the last dial took.'],
  remote_credential_state: ['gauge', '1', '1 for the state of a credential on this node.'],
  remote_credential_version: ['gauge', '1', 'The version of a credential.'],
  remote_credential_decrypts_total: ['counter', '{credential}', 'Sealed credentials that were opened, or tried to.'],
  remote_credential_age_seconds: ['gauge', 's', 'How long ago the password of a remote was set.'],
  remote_credential_key_current: ['gauge', '1', '1 when the current key sealed a credential.'],
  remote_seals_total: ['counter', '{credential}', 'Passwords that were sealed, re-encryptions included.'],
  remote_reseal_opens_total: ['counter', '{credential}', 'Sealed credentials that were opened to be sealed anew.'],
  remote_key_seals: ['gauge', '{seal}', 'How often a key has sealed in the cluster; rotate the secret from 2^29 on.'],
  remote_key_age_seconds: ['gauge', 's', 'How long ago a key has sealed first.'],
  remote_destination_refused_total: [
    'counter',
    '{dial}',
    'Dials and answers that the address guard refused, by reason.',
  ],
  remotes_allowlist_configured: ['gauge', '1', '1 when the hosts that may be reached are listed.'],
} as const satisfies MetricTable;

type MetricName = keyof typeof METRICS;
type Attributes = Record<string, string | number>;
type Observe = (name: MetricName, value: number, attributes: Attributes) => void;

const steps = (first: number, factor: number, count: number) =>
  Array.from({ length: count }, (_, i) => first * factor ** i);

/** Registers the metrics with a meter; the function returned takes them back. */
export function observeRemoteSender<Instrument extends ObservableInstrument>(
  meter: SenderMeter<Instrument>,
  sender: Pick<RemoteSender, 'status' | 'watchRequests'>,
): () => void {
  const unobserve = observeMetrics(meter, METRICS, (observe) => collect(sender.status(), observe));
  const unwatch = watch(meter, sender);
  return () => {
    unwatch();
    unobserve();
  };
}

function watch(meter: SenderMeter, sender: Pick<RemoteSender, 'watchRequests'>): () => void {
  const histogram = (name: string, description: string, explicitBucketBoundaries: number[]) =>
    meter.createHistogram(`isthmus.${name}`, { description, unit: 's', advice: { explicitBucketBoundaries } });
  const waited = histogram(
    'remote_inflight_wait_seconds',
    'How long requests with records waited for a slot.',
    steps(0.0005, 4, 10),
  );
  const took = histogram('remote_request_seconds', 'How long requests took.', steps(0.001, 2, 16));
  return sender.watchRequests({
    waited: (remote, seconds) => waited.record(seconds, { remote }),
    took: (remote, seconds) => took.record(seconds, { remote }),
  });
}

function collect(status: RemoteSenderStatus, observe: Observe): void {
  observe('remote_held_bytes', status.heldBytes, {});
  observe('remote_credential_decrypts_total', status.credentialDecrypts, {});
  observe('remotes_allowlist_configured', status.hasAllowedHosts ? 1 : 0, {});
  observe('remote_seals_total', status.credentialSeals, {});
  observe('remote_reseal_opens_total', status.resealOpens, {});
  for (const { key, seals, firstSealMs } of status.keys) {
    observe('remote_key_seals', seals, { key });
    if (firstSealMs !== undefined) observe('remote_key_age_seconds', ageSeconds(firstSealMs, status), { key });
  }
  for (const remote of status.remotes) {
    observeRemote(remote, observe);
    const { passwordSetMs } = remote;
    if (passwordSetMs === undefined) continue;
    observe('remote_credential_age_seconds', ageSeconds(passwordSetMs, status), { remote: remote.remote });
  }
  for (const link of status.links) {
    observeLink(link, observe);
    for (const cursor of link.cursors) observeCursor(link, cursor, status.nowMs, observe);
  }
}

function ageSeconds(thenMs: number, { nowMs }: RemoteSenderStatus): number {
  return Math.max(0, nowMs - thenMs) / 1000;
}

function observeRemote(
  { remote, state, credentialVersion, isKeyCurrent, dials, report }: RemoteStanding,
  observe: Observe,
): void {
  const at = { remote };
  observe('remote_credential_state', 1, { ...at, state });
  observe('remote_credential_key_current', isKeyCurrent ? 1 : 0, at);
  if (credentialVersion !== undefined) observe('remote_credential_version', credentialVersion, at);
  if (dials.lastDialMs !== undefined) observe('remote_rtt_seconds', dials.lastDialMs / 1000, at);
  for (const [reason, times] of Object.entries(dials.refused)) {
    observe('remote_destination_refused_total', times, { ...at, reason });
  }
  if (report === undefined) return;
  observe('remote_resent_records_total', report.remoteResentRecordsTotal, at);
  observe('remote_wire_bytes_total', report.remoteWireBytesTotal, at);
  observe('remote_body_bytes_total', report.remoteBodyBytesTotal, at);
  observe('remote_gate_backoff_seconds', report.remoteGateBackoffSeconds, at);
  const { remoteChunkBytesLimit } = report;
  if (remoteChunkBytesLimit !== undefined) observe('remote_chunk_bytes_limit', remoteChunkBytesLimit, at);
  for (const [name, times] of Object.entries(report.remoteErrorsTotal)) {
    observe('remote_errors_total', times, { ...at, class: name });
  }
  for (const [code, times] of Object.entries(report.remoteRequestsTotal)) {
    observe('remote_requests_total', times, { ...at, code });
  }
}

function observeLink({ parent, child, report }: LinkStanding, observe: Observe): void {
  if (report === undefined) return;
  const at = { parent, child };
  observe('fanout_remote_check_failures_total', report.fanoutRemoteCheckFailuresTotal, at);
  observe('fanout_remote_skipped_records_total', report.fanoutRemoteSkippedRecordsTotal, at);
  observe('fanout_remote_rereads_total', report.fanoutRemoteRereadsTotal, at);
  observe('fanout_child_dropped_messages', report.fanoutChildDroppedMessages, at);
  const { lastSuccessMs } = report;
  if (lastSuccessMs !== undefined) observe('fanout_remote_last_success_timestamp_seconds', lastSuccessMs / 1000, at);
}

function observeCursor(
  { parent, child, retentionMs }: LinkStanding,
  { partition, state, oldestUnsentMs, lagMessages }: CursorStanding,
  nowMs: number,
  observe: Observe,
): void {
  const at = { parent, child, partition };
  const lagMs = oldestUnsentMs === undefined ? 0 : Math.max(0, nowMs - oldestUnsentMs);
  observe('fanout_remote_state', 1, { ...at, state });
  observe('fanout_remote_lag_seconds', lagMs / 1000, at);
  if (retentionMs > 0) observe('fanout_remote_retention_headroom_seconds', (retentionMs - lagMs) / 1000, at);
  if (lagMessages !== undefined) observe('fanout_lag_messages', lagMessages, at);
}
