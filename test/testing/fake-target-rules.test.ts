/** What the fake target answers, row by row of the broker's API: its texts are what a sender goes by. */
import { gzipSync } from 'node:zlib';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { cutChunk, sendItem } from '../../src/sender/index.js';
import { TARGET_RELEASES, type TargetAnswer, TargetBroker, topicOf } from '../../src/testing/index.js';
import { codecs } from '../support/codecs.js';

const MIB = 1024 * 1024;
const GO_404 = '404 text/plain; charset=utf-8 404 page not found\n';

/** A target with a topic `orders`, a delay child, a stub, and a user for each of what users may be. */
function newBroker(change: (broker: TargetBroker) => void = () => undefined): TargetBroker {
  const broker = new TargetBroker((body, maxBytes) => codecs.zstd.decompress(body, undefined, maxBytes));
  broker.topics.set('orders', topicOf('orders'));
  broker.topics.set('later', topicOf('later', { fanoutDelayMs: 5, parent: 'orders' }));
  broker.topics.set('stub', topicOf('stub', { remote: { name: 'b', topic: 'orders' } }));
  const produce = { action: 'produce', topic: '*' } as const;
  broker.users.set('sender', { password: 'good', isAdmin: false, grants: [produce] });
  broker.users.set('reader', { password: 'good', isAdmin: false, grants: [{ action: 'consume', topic: 'orders' }] });
  broker.users.set('admin', { password: 'good', isAdmin: true, grants: [] });
  change(broker);
  return broker;
}

interface Ask {
  readonly method?: string;
  readonly path?: string;
  readonly user?: string;
  readonly password?: string;
  readonly headers?: Record<string, string | undefined>;
  readonly body?: string | Uint8Array;
}

const BATCH = '/v1/topics/orders/produce/batch';

function ask(broker: TargetBroker, given: Ask, nowMs = 0): TargetAnswer {
  const { path = BATCH, method = path.includes('batch') ? 'POST' : 'GET', user = 'sender', password = 'good' } = given;
  const authorization = `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`;
  const headers = { authorization, 'content-type': 'application/json', ...given.headers };
  return broker.handle({ method, path, headers }, Buffer.from(given.body ?? '{"messages":[]}'), nowMs);
}

/** `status type text`, the text being that of the error, if it is one. */
function shown({ status, headers, body }: TargetAnswer): string {
  const text = Buffer.from(body).toString();
  const isJson = headers['content-type'] === 'application/json';
  return isJson
    ? `${status} ${(JSON.parse(text) as { error?: string }).error ?? text.trim()}`
    : `${status} ${headers['content-type']} ${text}`;
}

const messages = (...texts: string[]) => `{"messages":[${texts.join(',')}]}`;
const times = (count: number, text: string) => Array<string>(count).fill(text);
const small = (settings: object) => (broker: TargetBroker) => void Object.assign(broker.settings, settings);
const release = (name: '3.0' | '3.1') => small(TARGET_RELEASES[name]);

describe('batch produce', () => {
  const rows: [what: string, given: Ask, expected: string, change?: (broker: TargetBroker) => void][] = [
    ['all stored', { body: messages('{"payload":1}', '{"payload":2}') }, '202 {"accepted":2}'],
    ['no message', {}, '400 messages required'],
    ['no list', { body: '{}' }, '400 messages required'],
    ['null for a list', { body: '{"messages":null}' }, '400 messages required'],
    ['the name in capitals', { body: '{"MESSAGES":[{"Payload":1}]}' }, '202 {"accepted":1}'],
    ['1,000 messages', { body: messages(...times(1000, '{"payload":1}')) }, '202 {"accepted":1000}'],
    ['1,001 messages', { body: messages(...times(1001, '{"payload":1}')) }, '400 too many messages: at most 1000'],
    ['101 empty ones: 1,000 are taken', { body: messages(...times(101, '{}')) }, '400 message 0: message required'],
    ['101 on 3.1', { body: messages(...times(101, '{}')) }, '400 too many messages: at most 100', release('3.1')],
    [
      'an empty base64 text',
      { body: messages('{"payload":"","payload_encoding":"base64"}') },
      '400 message 0: message required',
    ],
    [
      'bad base64',
      { body: messages('{"payload":"YQ","payload_encoding":"base64"}') },
      '400 message 0: invalid payload',
    ],
    [
      'another encoding',
      { body: messages('{"payload":"YQ==","payload_encoding":"hex"}') },
      '400 message 0: invalid payload_encoding',
    ],
    [
      'a bad key',
      { body: messages('{"payload":1}', '{"key":"?","key_encoding":"base64","payload":1}') },
      '400 message 1: invalid key',
    ],
    [
      'another key encoding',
      { body: messages('{"key":"a","key_encoding":"x","payload":1}') },
      '400 message 0: invalid key_encoding',
    ],
    ['a partition below 0', { body: messages('{"partition":-1,"payload":1}') }, '400 message 0: invalid partition'],
    ['a partition too high', { body: messages('{"partition":3,"payload":1}') }, '400 message 0: invalid argument'],
    ['nested 256 deep', { body: messages(`{"payload":${'['.repeat(256)}${']'.repeat(256)}}`) }, '202 {"accepted":1}'],
    [
      'nested 257 deep',
      { body: messages(`{"payload":${'['.repeat(257)}${']'.repeat(257)}}`) },
      '400 message 0: invalid argument',
    ],
    ['no JSON', { body: '{"messages":[' }, '400 invalid json: it does not parse'],
    ['two values', { body: '{"messages":[]}{}' }, '400 invalid json: it does not parse'],
    ['an unknown field', { body: '{"messages":[],"more":1}' }, '400 invalid json: unknown field "more"'],
    [
      'an unknown field of a message',
      { body: messages('{"x":1}') },
      '400 invalid json: field "x" is unknown or of another type',
    ],
    [
      'a key that is a number',
      { body: messages('{"key":1}') },
      '400 invalid json: field "key" is unknown or of another type',
    ],
    ['a body that is too large', { body: ' '.repeat(16 * MIB + 1) }, '413 request body too large'],
    [
      'one that opens too large',
      { headers: { 'content-encoding': 'gzip' }, body: gzipSync(' '.repeat(16 * MIB + 1)) },
      '413 request body too large',
    ],
    [
      'the same as zstd',
      { headers: { 'content-encoding': 'zstd' }, body: codecs.zstd.compress(Buffer.alloc(16 * MIB + 1)) },
      '413 request body too large',
    ],
    [
      'a payload that is too large',
      { body: messages('{"payload":1}', `{"payload":"${'x'.repeat(MIB)}"}`) },
      '413 message 1: message too large',
    ],
    [
      'zstd',
      { headers: { 'content-encoding': 'zstd' }, body: codecs.zstd.compress(Buffer.from(messages('{"payload":1}'))) },
      '202 {"accepted":1}',
    ],
    [
      'zstd that does not open',
      { headers: { 'content-encoding': 'zstd' }, body: 'no' },
      '400 invalid json: the body does not decode',
    ],
    [
      'zstd on 3.1',
      { headers: { 'content-encoding': 'zstd' }, body: 'no' },
      '400 invalid json: it does not parse',
      release('3.1'),
    ],
    ['an unknown content encoding', { headers: { 'content-encoding': 'br' } }, '415 unsupported content encoding'],
    ['no content type', { headers: { 'content-type': undefined } }, '415 content type required'],
    [
      'a client in its place',
      { headers: { 'content-type': undefined, 'x-narad-client': 'me' } },
      '400 messages required',
    ],
    ['the key in the query', { path: `${BATCH}?key=a` }, '400 key and partition belong in the messages'],
    ['no credential', { headers: { authorization: undefined } }, '401 authentication required'],
    ['a bad one', { password: 'bad' }, '401 authentication required'],
    ['no grant', { user: 'reader' }, '403 produce not allowed on topic'],
    ['no topic, but a probe', { path: BATCH.replace('orders', 'none') }, '400 messages required'],
    ['no topic', { path: BATCH.replace('orders', 'none'), body: messages('{"payload":1}') }, '404 topic not found'],
    [
      'a delay child',
      { path: BATCH.replace('orders', 'later'), body: messages('{"payload":1}') },
      '409 topic is a delay child',
    ],
    [
      'a stub',
      { path: BATCH.replace('orders', 'stub'), body: messages('{"payload":1}') },
      '409 topic is a remote child',
    ],
    ['another method', { method: 'GET' }, '405 text/plain; charset=utf-8 Method Not Allowed\n'],
    ['no such route before 3.1', {}, GO_404, release('3.0')],
  ];
  it.each(rows)('%s', (_, given, expected, change) => {
    const broker = newBroker(change);
    expect(shown(ask(broker, given))).toBe(expected);
    expect(broker.stored('orders')).toHaveLength(
      expected.startsWith('202') ? JSON.parse(expected.slice(4)).accepted : 0,
    );
  });

  it('what its schema refuses, and nothing of the batch is stored', () => {
    const broker = newBroker();
    const orders = broker.topics.get('orders');
    if (orders !== undefined) orders.refuses = ({ payload }) => Buffer.from(payload).toString() === '2';
    expect(shown(ask(broker, { body: messages('{"payload":1}', '{"payload":2}') }))).toBe(
      '400 message 1: invalid argument',
    );
    expect(broker.stored('orders')).toEqual([]);
  });

  it('batches in flight: a cap for each user, and one for the bytes of large bodies', () => {
    const broker = newBroker(small({ maxInFlightPerUser: 1, maxBodyBytesInFlight: 3 * MIB }));
    const open = (user: string, bytes: number) => {
      const authorization = `Basic ${Buffer.from(`${user}:good`).toString('base64')}`;
      const headers = { authorization, 'content-type': 'application/json', 'content-length': `${bytes}` };
      return broker.open({ method: 'POST', path: BATCH, headers }, 0);
    };
    const first = open('sender', 2 * MIB);
    expect(shown(open('sender', 10) as TargetAnswer)).toBe('429 too many requests in flight');
    const full = open('admin', 2 * MIB) as TargetAnswer;
    expect([shown(full), full.headers['retry-after']]).toEqual(['503 too many bytes in flight', '1']);
    expect('finish' in open('admin', MIB)).toBe(true);
    if ('finish' in first) expect(shown(first.finish(undefined))).toBe('400 read body: i/o timeout');
    expect('finish' in open('sender', 2 * MIB)).toBe(true);
  });

  it('whatever a record holds, what a sender makes of it is stored as it was', () => {
    const json = fc.json().map((text) => Buffer.from(text));
    const bytes = fc.uint8Array({ minLength: 1, maxLength: 40 });
    const key = fc.oneof(
      fc.uint8Array({ maxLength: 8 }),
      fc.string({ unit: 'binary' }).map((text) => Buffer.from(text)),
    );
    const record = fc.record({ key, payload: fc.oneof(json, bytes) });
    fc.assert(
      fc.property(fc.array(record, { minLength: 1, maxLength: 20 }), (records) => {
        const broker = newBroker();
        const items = records.map((one, offset) => sendItem({ ...one, offset, storedAtMs: 0 }));
        const { body } = cutChunk(items, { maxMessages: 100, maxBytes: MIB });
        expect(ask(broker, { body }).status).toBe(202);
        const hex = (one: { key: Uint8Array; payload: Uint8Array }) =>
          [one.key, one.payload].map((b) => Buffer.from(b).toString('hex'));
        expect(broker.stored('orders').map(hex)).toEqual(records.map(hex));
      }),
      { seed: 8, numRuns: 300 },
    );
  });

  it('a key stays on its partition, and offsets count there', () => {
    const broker = newBroker();
    ask(broker, { body: messages(...['a', 'b', 'a', 'b', 'a'].map((key) => `{"key":"${key}","payload":1}`)) });
    ask(broker, { body: messages('{"payload":2,"partition":2}') });
    const places = broker
      .stored('orders')
      .map(({ key, partition, offset }) => `${Buffer.from(key)} ${partition}/${offset}`);
    expect(new Set(places.filter((p) => p.startsWith('a')).map((p) => p.split('/')[0])).size).toBe(1);
    expect(new Set(places).size).toBe(6);
    expect(places[5]).toMatch(/^ 2\//);
  });
});

describe('what is read', () => {
  const children = [
    { name: 'c', remote: { name: 'b', topic: 'orders' } },
    { name: 'd', delayMs: 5 },
  ];
  const listing = (user: string, change?: (broker: TargetBroker) => void) => {
    const broker = newBroker(change);
    broker.topics.set('orders', topicOf('orders', { children }));
    const { status, body } = ask(broker, { path: '/v1/topics/orders/children', user });
    return { status, ...(JSON.parse(Buffer.from(body).toString()) as { children: Record<string, unknown>[] }) };
  };

  it('a topic, with every field', () => {
    const { status, body } = ask(newBroker(), { path: '/v1/topics/later', user: 'admin' });
    expect(status).toBe(200);
    expect(JSON.parse(Buffer.from(body).toString())).toMatchObject({
      name: 'later',
      id: '00000000000000aa',
      partitions: 3,
      retention_ms: 0,
      created_at: 1_700_000_000,
      role: 'child',
      parent: 'orders',
      children: [],
      fanout_delay_ms: 5,
      partial: false,
    });
  });

  it('the children, remote ones as such, and who made them for administrators only', () => {
    const found = listing('admin');
    expect(found).toMatchObject({ status: 200, parent: 'orders', parent_id: '00000000000000aa' });
    expect(found.children).toMatchObject([
      { name: 'c', remote: { name: 'b', created_by: 'admin' } },
      { name: 'd', delay_ms: 5 },
    ]);
    expect(JSON.stringify(listing('sender'))).not.toMatch(/created_by|paused_by/);
    expect(Object.keys(found.children[1] ?? {})).not.toContain('remote');
  });

  it('the children of 3.1: no ID, and nothing that tells a remote one', () => {
    const found = listing('sender', release('3.1'));
    expect(Object.keys(found)).not.toContain('parent_id');
    expect(found.children.map((child) => Object.keys(child))).toEqual(
      times(2, '').map(() => ['name', 'delay_ms', 'lag_messages', 'lag_complete']),
    );
  });

  const rows: [what: string, given: Ask, expected: string, change?: (broker: TargetBroker) => void][] = [
    ['users, for others', { path: '/v1/users' }, '403 not allowed'],
    ['users, of a target without them', { path: '/v1/users' }, GO_404, small({ hasUsers: false })],
    ['users, for an administrator', { path: '/v1/users', user: 'admin' }, '200 '],
    ['a topic that is not there', { path: '/v1/topics/none' }, '404 topic not found'],
    ['a topic without any grant', { path: '/v1/topics/later', user: 'reader' }, '403 not allowed on topic'],
    [
      'a topic without a credential',
      { path: '/v1/topics/orders', headers: { authorization: undefined } },
      '401 authentication required',
    ],
    [
      'the same where security is off',
      { path: '/v1/topics/orders', headers: { authorization: undefined } },
      '200 ',
      small({ isSecure: false }),
    ],
    ['no listing', { path: '/v1/topics/orders/children' }, GO_404, small({ hasListing: false })],
    ['no such route', { path: '/v1/nothing' }, GO_404],
  ];
  it.each(rows)('%s', (_, given, expected, change) => {
    expect(shown(ask(newBroker(change), given)).slice(0, expected === '200 ' ? 4 : undefined)).toBe(expected);
  });

  it('wrong passwords: five, then one in 12 s; a right one passes, and who is unknown is not counted', () => {
    const broker = newBroker();
    const login = (nowMs: number, user = 'sender', password = 'bad') =>
      ask(broker, { path: '/v1/topics/orders', user, password }, nowMs).status;
    expect(times(6, '').map(() => login(1_000))).toEqual([401, 401, 401, 401, 401, 429]);
    expect([login(1_000, 'sender', 'good'), login(1_000, 'nobody'), login(12_999), login(13_000)]).toEqual([
      200, 401, 429, 401,
    ]);
  });
});
