/** How connections are accepted, kept and ended. */
import { describe, expect, it } from 'vitest';
import type { Closed, PulsarClient } from '../../../../src/adapters/pulsar/protocol/index.js';
import { HandClock } from '../../../support/hand-clock.js';
import { until } from '../../../support/until.js';
import { clientOf, connected, nothing, scriptedBroker } from './scripted-broker.js';

/** Opens a consumer and tells how it ends. */
async function open(client: PulsarClient) {
  const closed: Closed[] = [];
  const events = { onEntry: nothing, onClosed: (why: Closed) => closed.push(why) };
  const result = await client.subscribe(
    { topic: 'segment://t/n/x/0000-ffff-0', subscription: 's', durable: true },
    events,
  );
  return { result, closed };
}

/** Lets what has been written on loopback arrive. */
const settle = () => new Promise((resolve) => setTimeout(resolve, 20));

describe('a connection', () => {
  it('introduces itself, with no flag but that of the renewal of tokens', async () => {
    const broker = await scriptedBroker();
    expect((await open(clientOf(broker.url))).result.type).toBe('subscribed');
    const [connect] = broker.of('connect');
    expect(connect).toMatchObject({ clientVersion: 'isthmus', protocolVersion: 21 });
    expect(Object.keys(connect?.featureFlags ?? {}).filter((key) => key.startsWith('supports'))).toEqual([
      'supportsAuthRefresh',
    ]);
    expect(Object.keys(connect ?? {})).not.toContain('authData');
  });

  it('shows a token that is read anew for each connection and each challenge', async () => {
    let reads = 0;
    const broker = await scriptedBroker({ authResponse: nothing });
    const client = clientOf(broker.url, { token: async () => `token-${++reads}` });
    await open(client);
    const [peer] = broker.peers;
    peer?.send({ authChallenge: { challenge: { authMethodName: 'token' } } });
    await until(() => peer?.of('authResponse').length === 1);
    const [connect] = broker.of('connect');
    expect([connect?.authMethodName, Buffer.from(connect?.authData ?? []).toString()]).toEqual(['token', 'token-1']);
    const response = peer?.of('authResponse')[0]?.response;
    expect([response?.authMethodName, Buffer.from(response?.authData ?? []).toString()]).toEqual(['token', 'token-2']);
  });

  it('ends when a challenge cannot be answered', async () => {
    const broker = await scriptedBroker();
    let isGone = false;
    const token = () => {
      if (isGone) throw new Error('the file is gone');
      return 'good';
    };
    const { closed } = await open(clientOf(broker.url, { token }));
    const anonymous = await open(clientOf(broker.url));
    isGone = true;
    for (const peer of broker.peers) peer.send({ authChallenge: {} });
    await until(() => closed.length + anonymous.closed.length === 2);
    const reason = 'the token could not be read: the file is gone';
    expect(closed).toEqual([{ type: 'disconnected', cause: 'authentication', reason }]);
    expect(anonymous.closed).toMatchObject([{ cause: 'authentication' }]);
  });

  it('is refused in the words of the broker', async () => {
    const error = { requestId: 2n ** 64n - 1n, error: 3, message: 'Failed to authenticate' };
    const broker = await scriptedBroker({ connect: () => ({ error }) });
    const { result } = await open(clientOf(broker.url, { token: () => 'bad' }));
    expect(result).toEqual({ type: 'refused', code: 3, message: 'Failed to authenticate' });
    const failing = clientOf(broker.url, { token: () => Promise.reject(new Error('no secret')) });
    expect((await open(failing)).result).toEqual({
      type: 'unreachable',
      reason: `${broker.url}: the token could not be read: no secret`,
    });
  });

  it('ends, later on, with an error that is about no request', async () => {
    const broker = await scriptedBroker();
    const { closed } = await open(clientOf(broker.url));
    broker.peers[0]?.send({ error: { requestId: 2n ** 64n - 1n, error: 3, message: 'expired' } });
    await until(() => closed.length === 1);
    expect(closed).toEqual([{ type: 'disconnected', cause: 'authentication', reason: 'expired' }]);
  });

  it('is given up when the broker does not accept it in time', async () => {
    const clock = new HandClock();
    const broker = await scriptedBroker({ connect: nothing });
    const opening = open(clientOf(broker.url, { clock, connectTimeoutMs: 500 }));
    await until(() => broker.of('connect').length === 1);
    clock.advance(499);
    await settle();
    expect(broker.peers[0]?.hasEnded).toBe(false);
    clock.advance(1);
    expect((await opening).result).toEqual({
      type: 'unreachable',
      reason: `${broker.url}: not accepted within 500 ms`,
    });
    await until(() => broker.peers[0]?.hasEnded === true);
    expect(clock.awaited).toEqual([]);
  });

  it('pings, and ends when not one byte has come in for two intervals', async () => {
    const clock = new HandClock();
    const broker = await scriptedBroker();
    const { result, closed } = await open(clientOf(broker.url, { clock, keepAliveMs: 1000 }));
    const [peer] = broker.peers;
    await until(() => peer?.pings === 1);
    // Whatever comes in is a sign of life, a piece of a frame included.
    for (const piece of [[0, 0, 0, 100], [0], [0], [0]]) {
      const pings = peer?.pings ?? 0;
      clock.advance(1000);
      await until(() => peer?.pings === pings + 1);
      peer?.socket.write(Buffer.from(piece));
      await until(() => result.type === 'subscribed' && result.consumer.lastHeardMs === clock.now());
    }
    clock.advance(1000);
    await until(() => peer?.pings === 6);
    clock.advance(999);
    await settle();
    expect(closed).toEqual([]);
    clock.advance(1);
    await until(() => closed.length === 1);
    expect(closed).toEqual([{ type: 'disconnected', cause: 'silent', reason: 'not one byte came in for 2000 ms' }]);
    expect(clock.awaited).toEqual([]);
  });

  it('reads first what came in while its own process stood still', async () => {
    const clock = new HandClock();
    const broker = await scriptedBroker();
    const { closed } = await open(clientOf(broker.url, { clock, keepAliveMs: 1000 }));
    await until(() => broker.peers[0]?.pings === 1);
    setTimeout(() => {
      broker.peers[0]?.send({ pong: {} });
      // Nothing is read, and what was written has time to arrive.
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 200);
      clock.advance(60_000);
    }, 1);
    await until(() => broker.peers[0]?.pings === 2);
    expect(closed).toEqual([]);
  });

  it('answers pings', async () => {
    const broker = await scriptedBroker();
    await open(clientOf(broker.url));
    broker.peers[0]?.send({ ping: {} }, { ping: {} });
    await until(() => broker.peers[0]?.pongs === 2);
  });

  it('ends at what is no frame, and at what is no command', async () => {
    for (const [garbage, reason] of [
      [Buffer.from('HTTP/1.1 400 Bad Request'), /^a frame of 1213486160 bytes/],
      [Buffer.from([0, 0, 0, 6, 0, 0, 0, 2, 0xff, 0xff]), /^a command that cannot be read/],
    ] as const) {
      const broker = await scriptedBroker();
      const { closed } = await open(clientOf(broker.url));
      broker.peers[0]?.socket.write(garbage);
      await until(() => closed.length === 1);
      expect(closed).toEqual([{ type: 'disconnected', cause: 'protocol', reason: expect.stringMatching(reason) }]);
    }
  });

  it('says where the stream was cut', async () => {
    const broker = await scriptedBroker();
    const { closed } = await open(clientOf(broker.url));
    broker.peers[0]?.socket.end(Buffer.from([0, 0, 0, 9, 1]));
    await until(() => closed.length === 1);
    const reason = 'cut off in a frame, after 1 of 9 bytes';
    expect(closed).toEqual([{ type: 'disconnected', cause: 'lost', reason }]);
  });

  it('passes over commands that it does not know', async () => {
    const broker = await scriptedBroker();
    const client = clientOf(broker.url);
    const { closed } = await open(client);
    // ACTIVE_CONSUMER_CHANGE: type 31, and a field of that number.
    broker.peers[0]?.socket.write(Buffer.from('0000000d00000009081ffa010408011001', 'hex'));
    await settle();
    expect((await open(client)).result.type).toBe('subscribed');
    expect(closed).toEqual([]);
  });

  it('gives up a request in time, and closes what may still be granted', async () => {
    const clock = new HandClock();
    const broker = await scriptedBroker({ subscribe: nothing });
    const opening = open(clientOf(broker.url, { clock, requestTimeoutMs: 700 }));
    await until(() => broker.of('subscribe').length === 1);
    clock.advance(700);
    expect((await opening).result).toEqual({ type: 'unreachable', reason: 'no answer within 700 ms' });
    await until(() => broker.of('closeConsumer').length === 1);
    expect(broker.of('closeConsumer')[0]?.consumerId).toBe(broker.of('subscribe')[0]?.consumerId);
  });

  it('ends with the client, handshakes included', async () => {
    const broker = await scriptedBroker();
    const client = clientOf(broker.url);
    const { closed } = await open(client);
    const mute = await scriptedBroker({ connect: nothing });
    const other = clientOf(mute.url);
    const opening = open(other);
    await until(() => mute.of('connect').length === 1);
    await Promise.all([client.close(), other.close()]);
    expect((await opening).result.type).toBe('unreachable');
    await until(() => closed.length === 1);
    expect(closed).toEqual([{ type: 'disconnected', cause: 'closedHere', reason: 'the client was closed' }]);
    expect((await open(client)).result).toEqual({ type: 'unreachable', reason: 'the client is closed' });
    await until(() => [...broker.peers, ...mute.peers].every((peer) => peer.hasEnded));
  });

  it('takes frames up to what the broker said', async () => {
    const broker = await scriptedBroker({ connect: () => connected(6_000_000) });
    const sizes: number[] = [];
    const events = { onEntry: ({ bytes }: { bytes: Uint8Array }) => sizes.push(bytes.length), onClosed: nothing };
    await clientOf(broker.url).subscribe(
      { topic: 'segment://t/n/x/0000-ffff-0', subscription: 's', durable: true },
      events,
    );
    const consumerId = broker.of('subscribe')[0]?.consumerId ?? 0n;
    const message = { message: { consumerId, messageId: { ledgerId: 1n, entryId: 2n } } };
    broker.peers[0]?.sendEntry(message, Buffer.alloc(6_000_000));
    await until(() => sizes.length === 1);
    expect(sizes).toEqual([6_000_000]);
  });
});

describe('options', () => {
  it.each([
    [{ serviceUrls: [] }, /^service URLs \[\]: one or more, all of one scheme$/],
    [{ serviceUrls: ['pulsar://a', 'pulsar+ssl://a'] }, /all of one scheme/],
    [{ serviceUrls: ['http://a:6650'] }, /^service URL "http:\/\/a:6650": pulsar:/],
    [{ serviceUrls: ['pulsar://a:6650/x'] }, /nothing behind it/],
    [{ serviceUrls: ['pulsar://a:0'] }, /nothing behind it/],
    [{ keepAliveMs: 30_001 }, /^keepAliveMs is 30001: a whole number in 1\.\.30000$/],
    [{ connectTimeoutMs: 0 }, /^connectTimeoutMs is 0/],
    [{ requestTimeoutMs: 1.5 }, /^requestTimeoutMs is 1.5/],
    [{ maxInFlightBytes: -1 }, /^maxInFlightBytes is -1/],
  ])('refuses %j', (options, message) => {
    expect(() => clientOf('pulsar://a', options)).toThrow(
      expect.objectContaining({ code: 'invalidArgument', message: expect.stringMatching(message) }),
    );
  });
});
