/**
 * Acceptance suite for `PeerChannel` and the end that answers it: the same tests that the adapters here pass. The suite
 * plays the controllers of cluster `b`, and a `setup` connects cluster `a` to them by the channel under test. Each message
 * of a failure is the rule that is broken.
 */
import type { ExchangeRequest, ExchangeResult, PeerState } from '../convergence/index.js';
import type { ExchangeHandler, ExchangeReply, PeerChannel } from '../ports/index.js';
import { check, onFresh, type RegisterTest, type SuiteSetup } from './suite.js';
import { sameValue } from './suite-values.js';

/** The channel of cluster `a`, which reaches the one peer `b`. */
export interface PeerChannelSetup extends SuiteSetup {
  readonly channel: PeerChannel;
  /** Takes the way between the two down, or up again. */
  setReachable(isReachable: boolean): Promise<void> | void;
}

/** Connects a fresh channel of cluster `a` to a peer `b` that answers with this handler. */
export type PeerChannelFactory = (peer: ExchangeHandler) => Promise<PeerChannelSetup> | PeerChannelSetup;

/** Registers the tests of `PeerChannel`. */
export function testPeerChannel(setup: PeerChannelFactory, test: RegisterTest): void {
  const name = (what: string) => `PeerChannel: ${what}`;
  const using = (work: (channel: PeerChannelSetup, peer: Peer) => Promise<void>) => async () => {
    const peer = new Peer();
    await onFresh(() => setup(peer))((made) => work(made, peer))();
  };

  test(
    name('every state arrives as it was sent, from the cluster that sent it, and every answer comes back in order'),
    using(async ({ channel }, peer) => {
      const requests = STATES.map((state, i) => ({ topic: `t${i}`, state }));
      const { results } = answered(await call(channel, requests));
      const [seen] = peer.calls;
      check(peer.calls.length === 1, `one call of several topics arrives as ${peer.calls.length}`);
      check(seen?.from === 'a', `the peer takes the call for one of ${String(seen?.from)}`);
      check(sameValue(seen?.requests, requests), 'a state does not arrive as it was sent');
      check(
        sameValue(results, requests.map(peer.answer)),
        'the results are not those of the peer, in the order of the topics',
      );
    }),
  );

  test(
    name('one topic fails alone (C17)'),
    using(async ({ channel }, peer) => {
      const error = { code: 'wrongTerm', message: 'the term is another' } as const;
      peer.errors.set('u', error);
      for (const topics of [['t', 'u', 'v'], ['u']]) {
        const { results } = answered(await call(channel, topics.map(requestOf)));
        check(results.length === topics.length, `${topics.length} topics have ${results.length} results`);
        const failed = results.find(({ topic }) => topic === 'u');
        check(sameValue(failed?.error, error), 'the error of a topic is not what the peer said');
        check(failed?.state !== undefined, 'an error comes without the state that the peer gave with it (C15)');
        const isAlone = results.every((result) => result.topic === 'u' || result.error === undefined);
        check(isAlone, 'the error of one topic is that of another as well');
      }
    }),
  );

  test(
    name('calls at the same time are answered each with its own'),
    using(async ({ channel }) => {
      const topics = Array.from({ length: 8 }, (_, i) => `t${i}`);
      const replies = await Promise.all(topics.map((topic) => call(channel, [requestOf(topic)])));
      const got = replies.map((reply) =>
        answered(reply)
          .results.map(({ topic }) => topic)
          .join(),
      );
      check(sameValue(got, topics), `calls of ${topics.join()} are answered with ${got.join()}`);
    }),
  );

  test(
    name('a call about nothing is answered with nothing'),
    using(async ({ channel }) => {
      check(answered(await call(channel, [])).results.length === 0, 'a call about nothing has results');
    }),
  );

  test(
    name('what cannot be reached is a failure as a value, and can be reached again later'),
    using(async ({ channel, setReachable }) => {
      const nobody = await call(channel, [requestOf('t')], 'nobody');
      check(nobody.type === 'failed', `a peer that nobody knows is ${nobody.type}`);
      await setReachable(false);
      const cut = await call(channel, [requestOf('t')]);
      check(cut.type === 'failed', `a peer that cannot be reached is ${cut.type}`);
      await setReachable(true);
      const again = await call(channel, [requestOf('t')]);
      check(again.type === 'answered', `a peer that can be reached again is ${again.type}`);
    }),
  );
}

/** Cluster `b`: it answers every topic with a state of its own, and with an error where that is asked for. */
class Peer implements ExchangeHandler {
  readonly calls: { readonly from: string; readonly requests: readonly ExchangeRequest[] }[] = [];
  readonly errors = new Map<string, NonNullable<ExchangeResult['error']>>();

  async exchange(from: string, requests: readonly ExchangeRequest[]): Promise<readonly ExchangeResult[]> {
    this.calls.push({ from, requests });
    return requests.map(this.answer);
  }

  readonly answer = ({ topic, state }: ExchangeRequest): ExchangeResult => {
    const error = this.errors.get(topic);
    return { topic, state: { ...state, cluster: 'b' }, ...(error === undefined ? {} : { error }) };
  };
}

const PLAIN: PeerState = {
  cluster: 'a',
  epoch: 0,
  revision: 1,
  shape: { cells: [{ range: { start: 0, end: 0xffff }, entryBucketSplits: [] }] },
  caps: { maxSegments: 1, maxEntryBucketsPerSegment: 1 },
  protocolVersion: 1,
  sentAtMs: 0,
};

/** A plain state; one with everything set and the largest numbers; one whose policy marks nothing, which is not silence. */
const STATES: readonly PeerState[] = [
  PLAIN,
  {
    ...PLAIN,
    term: Number.MAX_SAFE_INTEGER,
    epoch: Number.MAX_SAFE_INTEGER,
    revision: Number.MAX_SAFE_INTEGER,
    shape: {
      cells: [
        { range: { start: 0, end: 0x7fff }, entryBucketSplits: [1, 0x8000, 0xffff] },
        { range: { start: 0x8000, end: 0xffff }, entryBucketSplits: [0x8000] },
      ],
    },
    base: [0x5555, 0xaaaa],
    coldMarks: { segments: [0x8000], buckets: [{ range: { start: 0, end: 0x7fff }, boundaries: [1] }] },
    caps: { maxSegments: Number.MAX_SAFE_INTEGER, maxEntryBucketsPerSegment: 65_536 },
    equalWidth: true,
    sentAtMs: 1_700_000_000_000,
    receiverTerm: 0,
  },
  { ...PLAIN, coldMarks: { segments: [], buckets: [] }, equalWidth: false },
];

function requestOf(topic: string): ExchangeRequest {
  return { topic, state: PLAIN };
}

async function call(channel: PeerChannel, requests: readonly ExchangeRequest[], peer = 'b'): Promise<ExchangeReply> {
  try {
    return await channel.exchange(peer, requests, new AbortController().signal);
  } catch (error) {
    throw new Error(`a call rejects: failures of peers are values (${String(error)})`);
  }
}

function answered(reply: ExchangeReply): Extract<ExchangeReply, { type: 'answered' }> {
  if (reply.type === 'answered') return reply;
  throw new Error(`a call to a peer that answers is ${reply.type}: ${reply.reason}`);
}
