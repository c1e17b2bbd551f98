/**
 * Random values of a remote child: a parent's records, what a link and a remote are, what a credential is bound to, what a
 * transport tells; and the settings of limits.
 */
import fc from 'fast-check';
import type { Binding } from '../credentials/index.js';
import type { BudgetSettings, RateLimitSettings } from '../replication/index.js';
import {
  type HttpOutcome,
  type LinkRecord,
  REMOTE_LIMITS,
  type RemoteLimits,
  type SkipEntry,
  type Slab,
  type SourceRecord,
} from '../sender/index.js';

/** A record of a parent's partition: with and without a key, a payload that is JSON, text, nothing, or any bytes. */
export function arbSourceRecord(offset: fc.Arbitrary<number> = fc.nat({ max: 20 })): fc.Arbitrary<SourceRecord> {
  const text = (list: readonly string[]) => fc.constantFrom(...list).map((each) => new TextEncoder().encode(each));
  return fc.record({
    offset,
    key: fc.oneof({ withCrossShrink: true }, text(['', 'k1', 'größe']), fc.uint8Array({ maxLength: 4 })),
    payload: fc.oneof(
      { withCrossShrink: true },
      text(['', '{"a":1}', '"x"', '1e3', '{"a":', 'plain']),
      fc.uint8Array({ maxLength: 8 }),
    ),
    storedAtMs: fc.constantFrom(0, 1_700_000_000_000),
  });
}

/** What one read brings, from this offset on: records with holes between them, and perhaps some lost before the first. */
export function arbSlab(from = 0): fc.Arbitrary<Slab> {
  return fc
    .record({
      lost: fc.option(fc.nat({ max: 3 }), { nil: undefined, freq: 4 }),
      records: fc.array(fc.tuple(fc.nat({ max: 2 }), arbSourceRecord()), { maxLength: 5 }),
      behind: fc.nat({ max: 2 }),
    })
    .map(({ lost, records, behind }): Slab => {
      let next = lost === undefined ? from : from + lost + 1;
      const ascending = records.map(([hole, record]) => {
        const offset = next + hole;
        next = offset + 1;
        return { ...record, offset };
      });
      const gone = lost === undefined ? {} : { lost: { from, to: from + lost } };
      return { records: ascending, nextOffset: next + behind, ...gone };
    });
}

/** An attachment of a parent to a topic of a remote. */
export function arbLinkRecord(): fc.Arbitrary<LinkRecord> {
  const name = fc.constantFrom('orders', 'a', 'eu.orders_2-x');
  return fc.record(
    {
      parent: name,
      child: name,
      attachEpoch: fc.nat({ max: 3 }),
      remote: fc.constantFrom('eu', 'us-east'),
      topic: name,
      targetId: fc.constantFrom('', '00000000000000a1'),
      lanes: fc.integer({ min: 1, max: 8 }),
      paused: fc.boolean(),
      skips: fc.array(arbSkipEntry(), { maxLength: 2 }),
    },
    { requiredKeys: ['parent', 'child', 'attachEpoch', 'remote', 'topic', 'targetId', 'paused', 'skips'] },
  );
}

/** A record that an administrator lets pass. */
export function arbSkipEntry(): fc.Arbitrary<SkipEntry> {
  return fc.record({ partition: fc.nat({ max: 3 }), offset: fc.nat({ max: 20 }) });
}

/** The limits of a remote, each in its range and often at its ends. */
export function arbRemoteLimits(): fc.Arbitrary<RemoteLimits> {
  const within = ({ least, most, default: usual }: { least: number; most: number; default: number }) =>
    fc.oneof({ withCrossShrink: true }, fc.constantFrom(least, usual, most), fc.integer({ min: least, max: most }));
  return fc.record({
    maxInFlight: within(REMOTE_LIMITS.maxInFlight),
    requestTimeoutMs: within(REMOTE_LIMITS.requestTimeoutMs),
    checkIntervalMs: within(REMOTE_LIMITS.checkIntervalMs),
    compression: fc.constantFrom('none', 'zstd'),
  });
}

/** What became of a request: an answer of the target or of something in between, or none. */
export function arbHttpOutcome(): fc.Arbitrary<HttpOutcome> {
  const body = fc.constantFrom('', '{}', '{"error":"topic not found"}', '<html>', '404 page not found\n');
  const answer = fc.record({
    type: fc.constant('answer' as const),
    status: fc.constantFrom(200, 202, 301, 400, 401, 403, 404, 408, 413, 429, 500, 502, 503),
    contentType: fc.constantFrom(undefined, 'application/json', 'text/html'),
    retryAfter: fc.constantFrom(undefined, '1', '0', 'soon'),
    body: body.map((text) => new TextEncoder().encode(text)),
  });
  return fc.oneof(
    { withCrossShrink: true },
    { weight: 6, arbitrary: answer },
    { weight: 1, arbitrary: fc.constantFrom<HttpOutcome>({ type: 'notSent' }, { type: 'refused' }, { type: 'tls' }) },
    { weight: 1, arbitrary: fc.boolean().map((timeout): HttpOutcome => ({ type: 'failed', timeout })) },
  );
}

/** What a sealed password is bound to. */
export function arbBinding(): fc.Arbitrary<Binding> {
  return fc.record({
    name: fc.constantFrom('a', 'eu-west', 'r2'),
    id: fc.nat({ max: 0xffff }).map((n) => n.toString(16).padStart(16, '0')),
    url: fc.constantFrom('https://a.example', 'https://eu.example:8443/base'),
    username: fc.constantFrom('a', 'svc_1', 'User.Name-2'),
    trustAnchor: fc.constantFrom('system-roots', '0f'.repeat(64)),
  });
}

/** Settings of a slow-path budget, down to one byte a second and one slot. */
export function arbBudgetSettings(): fc.Arbitrary<BudgetSettings> {
  return fc.record(
    {
      bytesPerSecond: fc.oneof(
        { withCrossShrink: true },
        fc.integer({ min: 1, max: 100 }),
        fc.constant(16 * 1024 * 1024),
      ),
      burstBytes: fc.integer({ min: 1, max: 1_000 }),
      slots: fc.integer({ min: 1, max: 4 }),
    },
    { requiredKeys: [] },
  );
}

/** Settings of a rate limit: none, one, or both. */
export function arbRateLimitSettings(): fc.Arbitrary<RateLimitSettings> {
  return fc.record(
    { bytesPerSecond: fc.integer({ min: 1, max: 10_000 }), messagesPerSecond: fc.integer({ min: 1, max: 100 }) },
    { requiredKeys: [] },
  );
}
