/** The state topic against a broker in memory: the acceptance suite, and what compaction, cuts and deaths do to it. */
import { type CursorRecord, encodeMessage, IsthmusError, parseSourcePosition } from 'isthmus';
import { testCursorStore } from 'isthmus/testing';
import { describe, expect, it } from 'vitest';
import type { PulsarClient } from '../../../src/adapters/pulsar/protocol/index.js';
import { processClock } from '../../../src/adapters/pulsar/protocol/time.js';
import { StateTopic } from '../../../src/adapters/pulsar/state/index.js';
import { joinBuffers } from '../../../src/entry/index.js';
import { MemoryBroker } from './memory-broker.js';

const TOPIC = 'persistent://public/isthmus/state';
const NAME = { topic: 'topic://public/default/x|y', remote: 'b%' };
const STORE = 'topic://public/default/x%7Cy|b%25';

function newBroker(): MemoryBroker {
  const broker = new MemoryBroker();
  broker.create(TOPIC);
  return broker;
}

const stateOn = (client: PulsarClient, options: object = {}) =>
  new StateTopic({ client, topic: TOPIC, clock: processClock, ...options });

const storeOn = (broker: MemoryBroker, options: object = {}) => stateOn(broker.client(), options).cursors(NAME);

function record(session: number, settled: string): CursorRecord {
  return { session, settled: parseSourcePosition(settled), drained: false, skipped: [], checkpoints: new Map() };
}

function put(broker: MemoryBroker, partitionKey: string, value: string): void {
  const outer = { producerName: 'another', sequenceId: 0n, publishTimeMs: 0, partitionKey };
  broker.append(TOPIC, joinBuffers(encodeMessage(new TextEncoder().encode(value), { outer, stamp: false })));
}

const cursorKeys = (broker: MemoryBroker) => broker.keys(TOPIC).filter((key) => !key?.startsWith('member|'));

describe('the acceptance suite', () => {
  testCursorStore(() => {
    const broker = newBroker();
    return {
      store: storeOn(broker),
      reopen() {
        broker.compact(TOPIC);
        return storeOn(broker);
      },
    };
  }, it);
});

describe('compaction', () => {
  it('never puts a replaced owner in the place of its successor', async () => {
    const broker = newBroker();
    const [older, newer] = [storeOn(broker), storeOn(broker)];
    await older.write(new Map([[1, record(2, '7:1')]]));
    await newer.load();
    const [first, second] = await Promise.all([
      newer.write(new Map([[1, record(3, '7:5')]])),
      older.write(new Map([[1, record(2, '7:9')]])),
    ]);
    expect([first, second]).toEqual([{ type: 'written' }, { type: 'fenced', session: 3 }]);
    broker.compact(TOPIC);
    expect(await storeOn(broker).load()).toEqual(new Map([[1, record(3, '7:5')]]));
  });

  it('leaves one record a segment', async () => {
    const broker = newBroker();
    const store = storeOn(broker);
    await store.write(new Map([1, 2, 3].map((id) => [id, record(1, '7:1')])));
    await store.write(new Map([[1, record(2, '7:2')]]));
    await store.write(new Map([[3, undefined]]));
    await store.load();
    broker.compact(TOPIC);
    expect(cursorKeys(broker).sort()).toEqual([`cursor|${STORE}|1|2`, `cursor|${STORE}|2|1`]);
  });
});

describe('a write of several segments', () => {
  const bundle = (session: number) => {
    const cursor = { session, settled: '7:1', drained: true, skipped: [], checkpoints: {} };
    return JSON.stringify({ puts: { 1: cursor, 2: cursor }, removed: [3] });
  };

  it('counts as a whole though its process has died before it wrote the parts', async () => {
    const broker = newBroker();
    await storeOn(broker).write(new Map([[3, record(1, '7:1')]]));
    put(broker, `bundle|${STORE}|dead|1`, bundle(4));
    broker.compact(TOPIC);
    let nowMs = 0;
    const store = storeOn(broker, { clock: { ...processClock, now: () => nowMs } });
    expect([...(await store.load()).keys()].sort()).toEqual([1, 2]);
    nowMs = 60_000;
    await store.write(new Map([[9, undefined]]));
    broker.compact(TOPIC);
    expect(cursorKeys(broker).sort()).toEqual([`cursor|${STORE}|1|4`, `cursor|${STORE}|2|4`]);
  });

  it('counts as nothing when one of its segments belongs to a later session', async () => {
    const broker = newBroker();
    await storeOn(broker).write(new Map([[2, record(5, '7:5')]]));
    put(broker, `bundle|${STORE}|dead|1`, bundle(4));
    expect(await storeOn(broker).load()).toEqual(new Map([[2, record(5, '7:5')]]));
  });

  it('is finished by its own process after a cut in the middle', async () => {
    const broker = newBroker();
    const client = broker.client();
    const store = stateOn(client).cursors(NAME);
    await store.load();
    const several = new Map([1, 2].map((id) => [id, record(1, '7:1')] as const));
    for (let turns = 0; turns < 14; turns++) {
      const writing = store.write(several).catch(() => undefined);
      for (let i = 0; i < turns; i++) await new Promise((resolve) => setImmediate(resolve));
      broker.cut(client);
      await writing;
      const seen = [...(await storeOn(broker).load()).keys()].sort();
      expect([[], [1, 2]]).toContainEqual(seen);
      await store.write(new Map([1, 2].map((id) => [id, undefined])));
      broker.compact(TOPIC);
      expect(cursorKeys(broker)).toEqual([]);
    }
  });
});

describe('a connection', () => {
  it('that is cut leaves what was under way unknown, and the next call begins anew', async () => {
    const broker = newBroker();
    const client = broker.client();
    const store = stateOn(client).cursors(NAME);
    await store.load();
    broker.isDeaf = true;
    const writing = store.write(new Map([[1, record(1, '7:1')]]));
    await new Promise((resolve) => setTimeout(resolve, 20));
    broker.isDeaf = false;
    broker.cut(client);
    await expect(writing).rejects.toThrow(/cut/);
    expect(await store.load()).toEqual(new Map([[1, record(1, '7:1')]]));
  });

  it('that hangs is given up after a time', async () => {
    const broker = newBroker();
    const store = storeOn(broker, { timeoutMs: 60 });
    await store.load();
    broker.isDeaf = true;
    await expect(store.write(new Map([[1, record(1, '7:1')]]))).rejects.toThrow(/nothing was read back for 60 ms/);
    broker.isDeaf = false;
    expect((await store.load()).size).toBe(1);
  });
});

describe('a record that is none', () => {
  it.each([
    ['no JSON', `cursor|${STORE}|1|1`, '{'],
    ['a cursor without its members', `cursor|${STORE}|1|1`, '{}'],
    ['a position that is none', `cursor|${STORE}|1|1`, '{"settled":"7","drained":false,"skipped":[],"checkpoints":{}}'],
    ['a key with a part too many', `cursor|${STORE}|1|1|1`, '{}'],
    ['a key with a segment that is none', `cursor|${STORE}|01|1`, '{}'],
    ['a bundle without a session', `bundle|${STORE}|p|1`, '{"puts":{"1":{}},"removed":[]}'],
    ['a heartbeat of a word', 'member|p', '"alive"'],
  ])('is not guessed at: %s', async (_, key, value) => {
    const broker = newBroker();
    put(broker, key, value);
    await expect(storeOn(broker).load()).rejects.toThrow(/the state topic cannot be read/);
  });

  it('of a kind that is not known is passed over', async () => {
    const broker = newBroker();
    put(broker, 'plan|x', '{}');
    expect((await storeOn(broker).load()).size).toBe(0);
  });
});

describe('members', () => {
  it('share what there is, and one that is silent counts no more and leaves nothing', async () => {
    const broker = newBroker();
    const [client, other] = [broker.client(), broker.client()];
    const [a, b] = [stateOn(client, { heartbeatMs: 100 }), stateOn(other, { heartbeatMs: 100, process: 'b' })];
    const members = a.join(NAME);
    const shares: number[] = [];
    members.onChange(() => shares.push(members.share(5)));
    expect(members.share(5)).toBe(0);
    await expect.poll(() => members.share(5)).toBe(5);
    b.join(NAME);
    await expect.poll(() => members.share(5)).toBe(3);
    // Of another topic it is no member.
    expect(a.join({ ...NAME, remote: 'c' }).share(5)).toBe(0);
    await expect.poll(() => a.join({ ...NAME, remote: 'c' }).share(5)).toBe(5);
    await b.close();
    await expect.poll(() => members.share(5)).toBe(5);
    expect(shares).toEqual([5, 3, 5]);
    const c = stateOn(broker.client(), { heartbeatMs: 60_000 });
    c.join(NAME);
    await expect.poll(() => members.share(5)).toBe(3);
    await Promise.all([a.close(), c.close()]);
    broker.compact(TOPIC);
    expect(broker.keys(TOPIC)).toEqual([]);
  });

  it('that are not heard because of the own connection are not dead', async () => {
    const broker = newBroker();
    const client = broker.client();
    const [a, b] = [stateOn(client, { heartbeatMs: 100 }), stateOn(broker.client(), { heartbeatMs: 100 })];
    const members = a.join(NAME);
    b.join(NAME);
    await expect.poll(() => members.share(5)).toBe(3);
    const counts: number[] = [];
    members.onChange(() => counts.push(members.share(5)));
    broker.cut(client);
    await new Promise((resolve) => setTimeout(resolve, 600));
    expect(counts).toEqual([]);
    await Promise.all([a.close(), b.close()]);
  });

  it('say that they live within a range', () => {
    expect(() => stateOn(new MemoryBroker().client(), { heartbeatMs: 99 })).toThrow(IsthmusError);
  });
});
