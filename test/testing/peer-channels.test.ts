/** The suite of `PeerChannel` passes in memory and over HTTP, and fails on channels that are broken, each for its rule. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { ExchangeHandler, ExchangeReply, PeerChannel } from 'isthmus';
import { createHttpExchangeHandler, createHttpPeerChannel, nodeListener } from 'isthmus/adapters/http';
import { MemoryPeers } from 'isthmus/adapters/memory';
import { type PeerChannelSetup, testPeerChannel } from 'isthmus/testing';
import { describe, expect, it } from 'vitest';
import { verdictOf } from '../support/verdict.js';

const TOKEN = 'token-of-a.0123456789';

function inMemory(peer: ExchangeHandler): PeerChannelSetup {
  const peers = new MemoryPeers();
  peers.connect('b', peer);
  return {
    channel: peers.channel('a'),
    setReachable: (isReachable) => (isReachable ? peers.connect('b', peer) : peers.disconnect('b')),
  };
}

async function overHttp(handler: ExchangeHandler): Promise<PeerChannelSetup> {
  const listener = nodeListener(createHttpExchangeHandler({ cluster: 'b', handler, credentials: { a: TOKEN } }));
  let server = createServer(listener);
  const listen = (port: number) => new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
  const close = () =>
    new Promise<void>((resolve) => {
      server.close(() => resolve());
      server.closeAllConnections();
    });
  await listen(0);
  const { port } = server.address() as AddressInfo;
  return {
    channel: createHttpPeerChannel({
      cluster: 'a',
      peers: { b: { url: `http://127.0.0.1:${port}/exchange`, token: TOKEN } },
    }),
    setReachable: async (isReachable) => {
      if (!isReachable) return close();
      server = createServer(listener);
      await listen(port);
    },
    teardown: close,
  };
}

describe('in memory', () => testPeerChannel(inMemory, it));
describe('over HTTP', () => testPeerChannel(overHttp, it));

type Reply = (reply: ExchangeReply) => ExchangeReply;

/** A channel that does something to the calls of a good one, or to their replies. */
function broken(change: (channel: PeerChannel) => PeerChannel['exchange']) {
  return (peer: ExchangeHandler): PeerChannelSetup => {
    const made = inMemory(peer);
    return { ...made, channel: { exchange: change(made.channel) } };
  };
}

const replying = (change: Reply) =>
  broken(
    (channel) =>
      async (...call) =>
        change(await channel.exchange(...call)),
  );

const inResults = (change: (results: Extract<ExchangeReply, { type: 'answered' }>['results']) => unknown) =>
  replying((reply) => (reply.type === 'answered' ? { ...reply, results: change(reply.results) as never } : reply));

/** What the peer is told is changed on its way. */
const telling = (change: (peer: ExchangeHandler) => ExchangeHandler['exchange']) => (peer: ExchangeHandler) =>
  inMemory({ exchange: change(peer) });

it.each<[string, (peer: ExchangeHandler) => PeerChannelSetup, RegExp]>([
  [
    'that makes a call of each topic',
    broken((channel) => async (peer, requests, signal) => {
      const replies = await Promise.all(requests.map((request) => channel.exchange(peer, [request], signal)));
      return {
        type: 'answered',
        results: replies.flatMap((reply) => (reply.type === 'answered' ? reply.results : [])),
      };
    }),
    /one call of several topics arrives as 3/,
  ],
  [
    'that hides who calls',
    telling((peer) => (_, requests) => peer.exchange('b', requests)),
    /takes the call for one of b/,
  ],
  [
    'that takes no marks for no statement',
    telling(
      (peer) => (from, requests) =>
        peer.exchange(
          from,
          requests.map(({ topic, state }) => {
            const { coldMarks, ...rest } = state;
            return { topic, state: coldMarks?.segments.length === 0 ? rest : state };
          }),
        ),
    ),
    /a state does not arrive as it was sent/,
  ],
  [
    'whose numbers have 32 bits',
    telling(
      (peer) => (from, requests) =>
        peer.exchange(
          from,
          requests.map(({ topic, state }) => ({ topic, state: { ...state, epoch: state.epoch | 0 } })),
        ),
    ),
    /a state does not arrive as it was sent/,
  ],
  [
    'that turns the results round',
    inResults((results) => [...results].reverse()),
    /not those of the peer, in the order/,
  ],
  [
    'that loses the state of a topic that failed',
    inResults((results) => results.map(({ topic, state, error }) => (error ? { topic, error } : { topic, state }))),
    /without the state that the peer gave/,
  ],
  [
    'that has an error of its own',
    inResults((results) =>
      results.map((one) => (one.error ? { ...one, error: { code: 'failed', message: '' } } : one)),
    ),
    /is not what the peer said/,
  ],
  [
    'that lets a topic fail all',
    inResults((results) => {
      const error = results.find((one) => one.error !== undefined)?.error;
      return error === undefined ? results : results.map((one) => ({ ...one, error }));
    }),
    /is that of another as well/,
  ],
  [
    'that leaves out what failed',
    inResults((results) => results.filter(({ error }) => error === undefined)),
    /3 topics have 2 results/,
  ],
  [
    'that fails where one topic does',
    replying((reply) => {
      const isAlone = reply.type === 'answered' && reply.results.length === 1 && reply.results[0]?.error !== undefined;
      return isAlone ? { type: 'failed', reason: 'answer 409' } : reply;
    }),
    /a peer that answers is failed: answer 409/,
  ],
  [
    'that mixes up calls',
    broken((channel) => {
      let last: Promise<ExchangeReply> | undefined;
      return (...call) => {
        const [, requests] = call;
        if (requests[0]?.topic !== 't1' || last === undefined) last = channel.exchange(...call);
        return last;
      };
    }),
    /are answered with t0,t0,/,
  ],
  [
    'that makes something of nothing',
    broken(
      (channel) => (peer, requests, signal) =>
        requests.length > 0
          ? channel.exchange(peer, requests, signal)
          : Promise.resolve({ type: 'answered', results: [{ topic: '' }] }),
    ),
    /a call about nothing has results/,
  ],
  [
    'that takes whom nobody knows for one without an exchange',
    broken(
      (channel) => async (peer, requests, signal) =>
        peer === 'nobody' ? { type: 'unsupported', reason: '' } : channel.exchange(peer, requests, signal),
    ),
    /a peer that nobody knows is unsupported/,
  ],
  [
    'that throws where it cannot reach',
    broken((channel) => async (...call) => {
      const reply = await channel.exchange(...call);
      if (reply.type === 'failed') throw new Error(reply.reason);
      return reply;
    }),
    /a call rejects: failures of peers are values/,
  ],
  [
    'that takes a cut for no exchange',
    broken((channel) => async (peer, requests, signal) => {
      const reply = await channel.exchange(peer, requests, signal);
      return reply.type === 'failed' && peer === 'b' ? { type: 'unsupported', reason: '' } : reply;
    }),
    /a peer that cannot be reached is unsupported/,
  ],
  [
    'that never tries again',
    broken((channel) => {
      let isCut = false;
      return async (peer, requests, signal) => {
        const reply = await channel.exchange(peer, requests, signal);
        isCut ||= reply.type === 'failed' && peer === 'b';
        return isCut ? { type: 'failed', reason: 'it was cut' } : reply;
      };
    }),
    /a peer that can be reached again is failed/,
  ],
])('it refuses a channel %s', async (_, setup, rule) => {
  expect(await verdictOf((test) => testPeerChannel(setup, test))).toMatch(rule);
});

it('it takes a channel as it should be', async () => {
  expect(await verdictOf((test) => testPeerChannel(inMemory, test))).toBe('accepted');
});
