/** Who is asked, who is connected to, and what for. */
import { describe, expect, it } from 'vitest';
import type { PulsarClient } from '../../../../src/adapters/pulsar/protocol/index.js';
import { HandClock } from '../../../support/hand-clock.js';
import { until } from '../../../support/until.js';
import { clientOf, lookedUp, nothing, scriptedBroker } from './scripted-broker.js';

const TOPIC = 'segment://t/n/x/0000-ffff-0';
const DEAD = 'pulsar://127.0.0.1:1';

const produce = (client: PulsarClient, connection: 'sending' | 'control' = 'sending') =>
  client.openProducer({ topic: TOPIC, connection }, { onReceipt: nothing, onSendError: nothing, onClosed: nothing });

const consume = (client: PulsarClient) =>
  client.subscribe({ topic: TOPIC, subscription: 's', durable: true }, { onEntry: nothing, onClosed: nothing });

/** The names of what came in on each connection, once per name. */
function traffic(broker: Awaited<ReturnType<typeof scriptedBroker>>) {
  return broker.peers.map((peer) => [...new Set(peer.pieces.flat())].filter((name) => name !== 'ping'));
}

describe('the connections to a broker', () => {
  it('are two: one for sending, one for all else, shared by all that is open', async () => {
    const broker = await scriptedBroker();
    const client = clientOf(broker.url);
    const results = await Promise.all([produce(client), consume(client), produce(client), produce(client, 'control')]);
    expect(results.map(({ type }) => type)).toEqual(['opened', 'subscribed', 'opened', 'opened']);
    expect(traffic(broker)).toEqual([
      ['connect', 'lookup', 'subscribe', 'producer'],
      ['connect', 'producer'],
    ]);
    expect(broker.peers.map((peer) => peer.of('producer').length)).toEqual([1, 2]);
  });

  it('are opened anew when they have ended', async () => {
    const broker = await scriptedBroker();
    const client = clientOf(broker.url);
    await produce(client);
    for (const { socket } of broker.peers) socket.destroy();
    await until(async () => (await produce(client)).type === 'opened');
    expect(broker.peers).toHaveLength(4);
  });
});

describe('a look-up', () => {
  it('comes before every producer and every subscription', async () => {
    const broker = await scriptedBroker();
    const client = clientOf(broker.url);
    await produce(client);
    await produce(client);
    await consume(client);
    expect(broker.of('lookup').map(({ topic }) => topic)).toEqual([TOPIC, TOPIC, TOPIC]);
  });

  it('leads to the owner, over brokers that know better', async () => {
    const owner = await scriptedBroker();
    const middle = await scriptedBroker({ lookup: ({ requestId }) => lookedUp(requestId, owner.url) });
    const first = await scriptedBroker({
      lookup: ({ requestId }) => ({
        lookupResponse: { requestId, response: 0, brokerServiceUrl: middle.url, authoritative: true },
      }),
    });
    expect((await produce(clientOf(first.url))).type).toBe('opened');
    expect(first.of('lookup')).toMatchObject([{ authoritative: false }]);
    expect(middle.of('lookup')).toMatchObject([{ authoritative: true }]);
    expect([first, middle, owner].map((broker) => broker.of('producer').length)).toEqual([0, 0, 1]);
  });

  it('does not go in circles for ever', async () => {
    const broker = await scriptedBroker({
      lookup: ({ requestId }) => ({ lookupResponse: { requestId, response: 0, brokerServiceUrl: broker.url } }),
    });
    expect(await produce(clientOf(broker.url))).toEqual({
      type: 'unreachable',
      reason: `look-up of ${TOPIC}: more than 10 redirects`,
    });
    expect(broker.of('lookup')).toHaveLength(11);
  });

  it('is made again when the broker that it named does not serve the topic, with growing waits', async () => {
    const clock = new HandClock();
    let refusals = 2;
    const broker = await scriptedBroker({
      producer: ({ requestId }) =>
        refusals-- > 0
          ? { error: { requestId, error: 6, message: 'not served by this instance' } }
          : { producerSuccess: { requestId, producerName: 'p' } },
    });
    const opening = produce(clientOf(broker.url, { clock, keepAliveMs: 30_000 }));
    for (const waitMs of [100, 200]) {
      const at = clock.now() + waitMs;
      await until(() => clock.awaited.includes(at));
      clock.advance(waitMs);
    }
    expect((await opening).type).toBe('opened');
    expect(broker.of('lookup')).toHaveLength(3);
  });

  it('is given up in the end', async () => {
    const clock = new HandClock();
    const broker = await scriptedBroker({
      lookup: ({ requestId }) => ({ lookupResponse: { requestId, response: 2, error: 6, message: 'not ready' } }),
    });
    const opening = produce(clientOf(broker.url, { clock, keepAliveMs: 30_000 }));
    for (const waitMs of [100, 200, 400, 800]) {
      const at = clock.now() + waitMs;
      await until(() => clock.awaited.includes(at));
      clock.advance(waitMs);
    }
    expect(await opening).toEqual({ type: 'refused', code: 6, message: 'not ready' });
    expect(broker.of('lookup')).toHaveLength(5);
  });

  it('does not wait for a client that is closed', async () => {
    const broker = await scriptedBroker({
      subscribe: ({ requestId }) => ({ error: { requestId, error: 6, message: 'moving' } }),
    });
    const client = clientOf(broker.url, { clock: new HandClock() });
    const opening = consume(client);
    await until(() => broker.of('subscribe').length === 1);
    await client.close();
    expect((await opening).type).toBe('unreachable');
  });

  it('gives the code and the words of a failure', async () => {
    const broker = await scriptedBroker({
      lookup: ({ requestId }) => ({ lookupResponse: { requestId, response: 2, error: 4, message: 'not authorized' } }),
    });
    expect(await consume(clientOf(broker.url))).toEqual({ type: 'refused', code: 4, message: 'not authorized' });
  });

  it('follows no URL of another scheme', async () => {
    for (const brokerServiceUrl of ['', 'pulsar+ssl://127.0.0.1:6651', 'http://127.0.0.1']) {
      const broker = await scriptedBroker({
        lookup: ({ requestId }) => ({ lookupResponse: { requestId, response: 1, brokerServiceUrl } }),
      });
      const { type, reason } = (await consume(clientOf(broker.url))) as { type: string; reason: string };
      expect([type, reason]).toEqual(['unreachable', expect.stringContaining('is no URL of the scheme in use')]);
    }
  });

  it('stays with a proxy, and tells it which broker is meant', async () => {
    const proxy = await scriptedBroker({
      lookup: ({ requestId }) => ({
        lookupResponse: {
          requestId,
          response: 1,
          brokerServiceUrl: 'pulsar://inside:6650',
          proxyThroughServiceUrl: true,
        },
      }),
    });
    const client = clientOf(proxy.url);
    expect([(await produce(client)).type, (await consume(client)).type]).toEqual(['opened', 'subscribed']);
    expect(proxy.of('connect').map(({ proxyToBrokerUrl }) => proxyToBrokerUrl)).toEqual([
      '',
      'inside:6650',
      'inside:6650',
    ]);
  });

  it('asks a standalone broker, which is its own proxy, for nothing behind it', async () => {
    const broker = await scriptedBroker({
      lookup: ({ requestId }) => ({
        lookupResponse: { requestId, response: 1, brokerServiceUrl: broker.url, proxyThroughServiceUrl: true },
      }),
    });
    await consume(clientOf(broker.url));
    expect(broker.of('connect').map(({ proxyToBrokerUrl }) => proxyToBrokerUrl)).toEqual(['']);
  });
});

describe('the service URLs', () => {
  it('are tried in turn, beginning with the one that answered last', async () => {
    const broker = await scriptedBroker();
    const clock = new HandClock();
    const mute = await scriptedBroker({ connect: nothing });
    const client = clientOf(DEAD, { serviceUrls: [DEAD, mute.url, broker.url], clock, connectTimeoutMs: 100 });
    const opening = consume(client);
    await until(() => mute.of('connect').length === 1);
    clock.advance(100);
    expect((await opening).type).toBe('subscribed');
    expect((await consume(client)).type).toBe('subscribed');
    expect(mute.of('connect')).toHaveLength(1);
  });

  it('give way to a broker that is connected already', async () => {
    const owner = await scriptedBroker();
    const first = await scriptedBroker({ lookup: ({ requestId }) => lookedUp(requestId, owner.url) });
    const client = clientOf(first.url);
    await consume(client);
    first.peers[0]?.socket.destroy();
    first.close();
    await until(() => first.peers[0]?.hasEnded === true);
    await until(async () => (await consume(client)).type === 'subscribed');
    expect(owner.of('lookup').length).toBeGreaterThan(0);
  });

  it('are all named as unreachable when none answers', async () => {
    expect(await consume(clientOf(DEAD))).toEqual({
      type: 'unreachable',
      reason: `${DEAD}: connect ECONNREFUSED 127.0.0.1:1`,
    });
  });
});
