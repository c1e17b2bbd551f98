/**
 * What a cluster's answers say of the existence of topics, and how creating calls are made: against servers on loopback
 * that answer with the words of Pulsar 5.0.1.
 */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type AdminOptions, pulsarTopicAdmin } from '../../../../src/adapters/pulsar/admin/index.js';
import { createLayout, formatLayout } from '../../../../src/layout/index.js';
import type { TopicCreations, TopicLookUps, TopicName } from '../../../../src/ports/index.js';
import { serve } from '../../../support/http.js';

const { signal } = new AbortController();
const topic: TopicName = { tenant: 't', namespace: 'n', name: 'x' };

/** A server with one answer to everything; without one it takes the request and closes the connection. */
async function answering(status?: number, body: unknown = '') {
  const calls: string[] = [];
  const url = await serve((request, response) => {
    let sent = '';
    request.on('data', (piece: Buffer) => {
      sent += piece.toString();
    });
    request.on('end', () => {
      calls.push(`${request.method} ${request.url?.replace('/admin/v2/', '')} ${sent}`.trim());
      if (status === undefined) request.socket.destroy();
      else response.writeHead(status).end(typeof body === 'string' ? body : JSON.stringify(body));
    });
  });
  return { url, calls };
}

function adminOf(urls: readonly string[], options: Partial<AdminOptions> = {}) {
  return pulsarTopicAdmin({ urls, ...options });
}

const layout = formatLayout(createLayout({ segments: 3, nowMs: 0 }));
const reason = (text: string) => ({ reason: text });

type LookUp = (lookUps: TopicLookUps, named?: TopicName) => Promise<unknown>;
const LOOK_UPS: Readonly<Record<string, LookUp>> = {
  namespace: (lookUps, named = topic) => lookUps.namespace(named, signal),
  partitions: (lookUps, named = topic) => lookUps.partitions(named, signal),
  names: (lookUps, named = topic) => lookUps.names(named, signal),
  segments: (lookUps, named = topic) => lookUps.segments(named, signal),
  segment: (lookUps, named = topic) => lookUps.segment(named, { segmentId: 7, start: 0 }, signal),
};

const found = (value: unknown) => ({ type: 'found', value });
const MISSING = { type: 'missing' };
const failed = (failure: string) => ({ type: 'failed', failure });

describe('a look-up', () => {
  it.each<[keyof typeof LOOK_UPS, string, number, unknown, object]>([
    ['namespace', 'GET namespaces/t/n', 200, { bundles: {} }, found(true)],
    ['namespace', 'GET namespaces/t/n', 404, reason('Namespace does not exist'), MISSING],
    ['namespace', 'GET namespaces/t/n', 404, reason('Tenant not found'), MISSING],
    ['namespace', 'GET namespaces/t/n', 404, '<html><h2>HTTP ERROR 404 Not Found</h2></html>', failed('refused')],
    ['partitions', 'GET persistent/t/n/x/partitions', 200, { partitions: 3, deleted: false }, found(3)],
    ['partitions', 'GET persistent/t/n/x/partitions', 200, { partitions: 0, deleted: false }, found(0)],
    ['partitions', 'GET persistent/t/n/x/partitions', 200, { partitions: 3, deleted: true }, failed('unclear')],
    ['partitions', 'GET persistent/t/n/x/partitions', 200, { partitions: '3' }, failed('unclear')],
    ['partitions', 'GET persistent/t/n/x/partitions', 404, reason('Topic persistent://t/n/x not found'), MISSING],
    [
      'partitions',
      'GET persistent/t/n/x/partitions',
      404,
      reason('Topic persistent://t/n/xx not found'),
      failed('refused'),
    ],
    ['partitions', 'GET persistent/t/n/x/partitions', 404, reason('Namespace not found'), failed('refused')],
    ['names', 'GET namespaces/t/n/topics?mode=ALL', 404, reason('Namespace does not exist'), MISSING],
    [
      'names',
      'GET namespaces/t/n/topics?mode=ALL',
      200,
      ['persistent://t/n/x-partition-0', 'persistent://t/nn/x', 'non-persistent://t/n/x', 'persistent://t/n/ä b'],
      found(['x-partition-0', 'ä b']),
    ],
    [
      'segments',
      'GET scalable/t/n/x',
      200,
      layout,
      found([0, 1, 2].map((segmentId) => ({ segmentId, start: segmentId * 0x5555 }))),
    ],
    ['segments', 'GET scalable/t/n/x', 200, { ...layout, deleted: true }, failed('unclear')],
    ['segments', 'GET scalable/t/n/x', 404, reason('Scalable topic not found: topic://t/n/x'), MISSING],
    ['segments', 'GET scalable/t/n/x', 404, reason('Scalable topic not found: topic://t/n/x2'), failed('refused')],
    ['segments', 'GET scalable/t/n/x', 500, reason('Scalable topic not found: topic://t/n/x'), failed('unavailable')],
    ['segment', 'GET scalable/t/n/x/segments/7/stats', 200, { terminated: false }, found(true)],
    [
      'segment',
      'GET scalable/t/n/x/segments/7/stats',
      404,
      reason('Segment topic not found: segment://t/n/x/0000-7fff-7'),
      MISSING,
    ],
    [
      'segment',
      'GET scalable/t/n/x/segments/7/stats',
      404,
      reason('Segment 7 not found in scalable topic topic://t/n/x'),
      failed('refused'),
    ],
  ])('%s, %s answered with %i %j', async (lookUp, call, status, body, expected) => {
    const { url, calls } = await answering(status, body);
    expect(await LOOK_UPS[lookUp]?.(adminOf([url]).lookUps)).toMatchObject(expected);
    expect(calls).toEqual([call]);
  });

  it('of a namespace that a role may not read: its topics show that it is there, and nothing else does', async () => {
    for (const [status, expected] of [
      [200, found(true)],
      [401, failed('unauthorized')],
      [404, failed('unauthorized')],
      [500, failed('unauthorized')],
    ] as const) {
      const url = await serve((request, response) => {
        const isList = request.url?.endsWith('/topics?mode=ALL');
        response.writeHead(isList ? status : 403).end(isList && status === 200 ? '[]' : '{"reason":"no"}');
      });
      expect(await LOOK_UPS.namespace?.(adminOf([url]).lookUps)).toMatchObject(expected);
    }
  });

  const arbFailure = fc.record({
    lookUp: fc.constantFrom(...Object.keys(LOOK_UPS)),
    status: fc.constantFrom(400, 401, 403, 404, 406, 408, 409, 412, 429, 500, 502, 503, 504),
    body: fc.constantFrom(
      '',
      '<html>Not Found</html>',
      '{}',
      'null',
      '{"reason":"not found"}',
      '{"reason":"Unauthorized"}',
    ),
  });

  it('that fails in any other way is never taken for missing', async () => {
    const law = async ({ lookUp, status, body }: { lookUp: string; status: number; body: string }) => {
      const { url } = await answering(status, body);
      const failure =
        status === 401 || status === 403
          ? 'unauthorized'
          : [408, 429].includes(status) || status >= 500
            ? 'unavailable'
            : 'refused';
      expect(await LOOK_UPS[lookUp]?.(adminOf([url]).lookUps)).toMatchObject(failed(failure));
    };
    await fc.assert(fc.asyncProperty(arbFailure, law), { numRuns: 60, seed: 404 });
  });

  it('goes to the next URL without an answer, and is late when that takes too long', async () => {
    const [dead, living] = [await answering(), await answering(200, { partitions: 1, deleted: false })];
    expect(await LOOK_UPS.partitions?.(adminOf([dead.url, living.url]).lookUps)).toEqual(found(1));
    expect(await LOOK_UPS.partitions?.(adminOf([dead.url]).lookUps)).toMatchObject(failed('unavailable'));
    const silent = await serve(() => undefined);
    expect(await LOOK_UPS.partitions?.(adminOf([silent], { timeoutMs: 50 }).lookUps)).toMatchObject(failed('timedOut'));
  });

  it('of a scalable topic whose name a broker does not decode: missing only where it is not listed', async () => {
    const odd = { ...topic, name: 'ä b' };
    const { url, calls } = await answering(200, ['topic://t/n/ä', 'topic://t/n/ä b']);
    expect(await LOOK_UPS.segments?.(adminOf([url]).lookUps, odd)).toMatchObject(failed('unsupported'));
    expect(await LOOK_UPS.segments?.(adminOf([url]).lookUps, { ...odd, name: 'b ä' })).toEqual(MISSING);
    expect(calls).toEqual(['GET scalable/t/n', 'GET scalable/t/n']);
    const { creations } = adminOf([url]);
    const wanted = { starts: [0], segments: 1 };
    expect(await creations.createScalable(odd, wanted, signal)).toMatchObject({ type: 'refused' });
    expect(calls).toHaveLength(2);
  });

  it('keeps what a path may hold as it is, and refuses a name that would lead elsewhere before any call', async () => {
    const { url, calls } = await answering(404);
    await LOOK_UPS.segments?.(adminOf([url]).lookUps, { ...topic, name: 'a:b=c,d@e' });
    expect(calls).toEqual(['GET scalable/t/n/a:b=c,d@e']);
    for (const name of ['', '.', '..', 'a/b', '../../x']) {
      for (const lookUp of [LOOK_UPS.partitions, LOOK_UPS.segment]) {
        // Some throw and some reject: the driver takes both for no answer.
        const asked = async () => lookUp?.(adminOf([url]).lookUps, { ...topic, name });
        await expect(asked()).rejects.toMatchObject({ code: 'invalidArgument' });
      }
    }
    expect(calls).toHaveLength(1);
  });
});

type Create = (creations: TopicCreations) => Promise<unknown>;
const CREATIONS: readonly [string, Create][] = [
  ['PUT persistent/t/n/x', (creations) => creations.createPlain(topic, signal)],
  ['PUT persistent/t/n/x/partitions 3', (creations) => creations.createPartitioned(topic, 3, signal)],
  ['POST persistent/t/n/x/createMissedPartitions', (creations) => creations.completePartitions(topic, signal)],
  ['POST persistent/t/n/x/partitions 5', (creations) => creations.expandPartitions(topic, 5, signal)],
  [
    'PUT scalable/t/n/x?numInitialSegments=2 {}',
    (creations) => creations.createScalable(topic, { starts: [0, 0x4000, 0x8000], segments: 2 }, signal),
  ],
  [
    // A broker that is told three makes just these.
    'PUT scalable/t/n/x?numInitialSegments=3 {}',
    (creations) => creations.createScalable(topic, { starts: [0, 0x5555, 0xaaaa], segments: 1 }, signal),
  ],
  [
    // A broker that is told more stalls.
    'PUT scalable/t/n/x?numInitialSegments=1024 {}',
    (creations) => {
      const starts = Array.from({ length: 2_048 }, (_, i) => i * 32);
      return creations.createScalable(topic, { starts, segments: 1_024 }, signal);
    },
  ],
];

describe('a creating call', () => {
  it.each(CREATIONS)('%s is one request, whatever comes of it', async (call, create) => {
    for (const [status, type] of [
      [204, 'done'],
      [409, 'conflict'],
      [400, 'refused'],
      [401, 'refused'],
      [403, 'refused'],
      [404, 'refused'],
      [412, 'refused'],
      [422, 'refused'],
      [429, 'failed'],
      [500, 'failed'],
      [503, 'failed'],
      [undefined, 'failed'],
    ] as const) {
      const [one, other] = [await answering(status), await answering(204)];
      expect(await create(adminOf([one.url, other.url]).creations)).toMatchObject({ type });
      expect([one.calls, other.calls]).toEqual([[call], []]);
    }
  });

  it('goes to the URL that answered the look-ups', async () => {
    const [dead, living] = [await answering(), await answering(404)];
    const { lookUps, creations } = adminOf([dead.url, living.url]);
    await lookUps.partitions(topic, signal);
    await creations.createPlain(topic, signal);
    expect(living.calls.at(-1)).toBe('PUT persistent/t/n/x');
    expect(dead.calls).toEqual(['GET persistent/t/n/x/partitions']);
  });
});
