/** Every metric of a sender under its name and labels, collected by a real OpenTelemetry SDK. */
import {
  AggregationTemporality,
  type ExponentialHistogram,
  type Histogram,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from '@opentelemetry/sdk-metrics';
import { expect, it, onTestFinished } from 'vitest';
import { Secret } from '../../src/credentials/index.js';
import { observeRemoteSender, systemClock } from '../../src/drivers/index.js';
import { BINDING, keysOf } from '../credentials/fixture.js';
import { until } from '../support/until.js';
import { PARENT, Stage } from './sender-stage.js';

function boundaries(value: Histogram | ExponentialHistogram): number {
  return 'buckets' in value ? value.buckets.boundaries.length : 0;
}

async function metered(stage: Stage): Promise<() => Promise<string[]>> {
  const exporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE);
  const reader = new PeriodicExportingMetricReader({ exporter, exportIntervalMillis: 3_600_000 });
  const provider = new MeterProvider({ readers: [reader] });
  const unobserve = observeRemoteSender(provider.getMeter('test'), stage.sender);
  onTestFinished(async () => {
    unobserve();
    await provider.shutdown();
  });
  return async () => {
    exporter.reset();
    await reader.forceFlush();
    const metrics = exporter.getMetrics().flatMap(({ scopeMetrics }) => scopeMetrics.flatMap((scope) => scope.metrics));
    return metrics.flatMap(({ descriptor, dataPoints }) =>
      dataPoints.map(({ attributes, value }) => {
        const labels = Object.entries(attributes).map(([name, label]) => `${name}=${label}`);
        const shown = typeof value === 'number' ? `${value}` : `${value.count} in ${boundaries(value)}`;
        return `${descriptor.name}{${labels.join(',')}} ${shown}`;
      }),
    );
  };
}

it('names, labels and values are those of what happened', async () => {
  const stage = await Stage.start();
  const collect = await metered(stage);
  stage.parents.topics.set('orders', { ...PARENT, retentionMs: 86_400_000 });
  stage.target.fault = ({ messages }) => (messages === 2 ? { type: 'reset', stores: true } : undefined);
  stage.parents.append(0, 'a=1', 'a=2');
  stage.link({ retentionMs: 86_400_000 });
  await until(() => stage.stored().length >= 2);
  stage.target.fault = undefined;
  await until(() => stage.cursors.offsets.get('copy/1/0') === 2);
  await until(() => stage.state() === 'running');
  const lines = await collect();
  const at = 'parent=orders,child=copy';
  expect(lines).toEqual(
    expect.arrayContaining([
      `isthmus.fanout_remote_state{${at},partition=0,state=running} 1`,
      `isthmus.fanout_remote_check_failures_total{${at}} 0`,
      `isthmus.fanout_remote_skipped_records_total{${at}} 0`,
      `isthmus.fanout_remote_rereads_total{${at}} 0`,
      `isthmus.fanout_child_dropped_messages{${at}} 0`,
      'isthmus.remote_errors_total{remote=b,class=unavailable} 1',
      'isthmus.remote_resent_records_total{remote=b} 2',
      'isthmus.remote_gate_backoff_seconds{remote=b} 0',
      'isthmus.remote_held_bytes{} 0',
      'isthmus.remote_chunk_bytes_limit{remote=b} 983040',
      'isthmus.remote_requests_total{remote=b,code=error} 1',
      'isthmus.remote_requests_total{remote=b,code=202} 1',
      'isthmus.remote_credential_state{remote=b,state=ready} 1',
      'isthmus.remote_credential_version{remote=b} 1',
      'isthmus.remote_credential_key_current{remote=b} 1',
      'isthmus.remote_credential_decrypts_total{} 1',
      'isthmus.remotes_allowlist_configured{} 1',
      'isthmus.remote_inflight_wait_seconds{remote=b} 2 in 10',
    ]),
  );
  const names = new Set(lines.map((line) => line.split('{')[0]?.replace('isthmus.', '')));
  for (const name of [
    ...['fanout_remote_lag_seconds', 'fanout_remote_retention_headroom_seconds', 'fanout_lag_messages'],
    ...['fanout_remote_last_success_timestamp_seconds', 'remote_wire_bytes_total', 'remote_body_bytes_total'],
    ...['remote_rtt_seconds', 'remote_request_seconds'],
  ]) {
    expect(names).toContain(name);
  }
});

it('refused dials and redirects are counted by reason; what is gone is told no more', async () => {
  const stage = await Stage.start();
  const collect = await metered(stage);
  stage.target.fault = {
    type: 'answer',
    answer: { status: 302, headers: { location: '/' }, body: Buffer.alloc(0) },
  };
  stage.parents.append(0, 'a=1');
  stage.link();
  await until(() => stage.state() === 'redirect_refused');
  const lines = await collect();
  expect(lines.filter((line) => line.includes('destination_refused'))).toEqual([
    expect.stringMatching(/^isthmus\.remote_destination_refused_total\{remote=b,reason=redirect\} [1-9]/),
  ]);
  stage.metadata.links.clear();
  stage.metadata.moved();
  await until(() => stage.sender.status().links.length === 0);
  // This SDK goes on telling what it was told once, so another one listens.
  const collectAgain = await metered(stage);
  expect((await collectAgain()).filter((line) => line.includes('child=copy'))).toEqual([]);
});

it('keys and passwords: how often they sealed, and how long ago', async () => {
  const nowMs = 1_800_000_000_000;
  const keys = keysOf('next', 'hex');
  const sealCounts = () => ({ [keys.current.kv]: { count: 7, firstSealMs: nowMs - 90_000 } });
  const clock = { ...systemClock, now: () => nowMs };
  const stage = await Stage.start({ ports: { sealCounts, clock }, options: { keys } });
  const stored = await stage.addRemote('b');
  const age = Date.now() - (stored.passwordSetMs ?? 0);
  expect(age).toBeLessThan(60_000);
  stage.metadata.setRemote({ ...stored, passwordSetMs: nowMs - 60_000 });
  await until(() => stage.sender.status().remotes[0]?.passwordSetMs === nowMs - 60_000);

  const { envelope } = keysOf('hex').seal(BINDING, new Secret('of the key that was before'));
  keys.seal(BINDING, new Secret('of the key that is current'));
  keys.reseal(BINDING, envelope);
  keys.reseal(BINDING, { ...envelope, ct: 'AAAA' });
  const lines = await (await metered(stage))();
  expect(lines.filter((line) => /key_(?:seals|age)|credential_age|seals_total|reseal/.test(line)).sort()).toEqual([
    'isthmus.remote_credential_age_seconds{remote=b} 60',
    'isthmus.remote_key_age_seconds{key=current} 90',
    'isthmus.remote_key_seals{key=current} 7',
    'isthmus.remote_key_seals{key=previous} 0',
    'isthmus.remote_reseal_opens_total{} 2',
    'isthmus.remote_seals_total{} 2',
  ]);
});
