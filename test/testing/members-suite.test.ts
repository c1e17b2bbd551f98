/**
 * The suite of `ClusterMembers` passes for two members in one process, and fails on members that are broken, each for the
 * rule that it breaks.
 */
import { type AskedMember, type ClusterMembersSetup, testClusterMembers } from 'isthmus/testing';
import { describe, expect, it } from 'vitest';
import type { ClusterMembers } from '../../src/ports/index.js';
import { verdictOf } from '../support/verdict.js';

interface Way {
  isUp: boolean;
}

type Change = (good: ClusterMembers, way: Way) => Partial<ClusterMembers>;

/** Members as they should be, in few lines. What is asked and answered goes as JSON, as between processes. */
function inProcess(n2: AskedMember, change: Change = () => ({})): ClusterMembersSetup {
  const way: Way = { isUp: true };
  const ask = <Answer>(member: string, signal: AbortSignal, answer: () => Promise<Answer>): Promise<Answer> => {
    if (member !== 'n2' || !way.isUp) return Promise.reject(new Error('no route'));
    const aborted = new Promise<never>((_, reject) => {
      signal.addEventListener('abort', () => reject(signal.reason), { once: true });
    });
    return Promise.race([answer().then((told) => JSON.parse(JSON.stringify(told)) as Answer), aborted]);
  };
  const members = ['n1', 'n2'].map((node) => ({ node, entryTypes: 37 }));
  const good: ClusterMembers = {
    names: () => ['n1', 'n2'],
    releases: async () => ({ members, raftServers: ['n1', 'n2'] }),
    posture: (member, signal) => ask(member, signal, () => n2.posture()),
    check: (member, question, signal) => ask(member, signal, () => n2.check(structuredClone(question))),
  };
  return {
    members: { ...good, ...change(good, way) },
    setReachable(isReachable) {
      way.isUp = isReachable;
    },
    patienceMs: 100,
  };
}

describe('in one process', () => testClusterMembers(inProcess, it));

const never = () => new AbortController().signal;

it.each<[string, Change, RegExp]>([
  ['that leave themselves out', () => ({ names: () => ['n2'] }), /all are up, and named are \[n2\]/],
  ['that name one twice', () => ({ names: () => ['n1', 'n2', 'n2'] }), /named are \[n1,n2,n2\]/],
  [
    'that leave out who is down',
    (_, way) => ({ names: () => (way.isUp ? ['n1', 'n2'] : ['n1']) }),
    /one is down, and named are \[n1\]/,
  ],
  [
    'that know the releases of those that are up',
    ({ releases }, way) => ({
      releases: async () => (way.isUp ? releases() : { members: [{ node: 'n1', entryTypes: 37 }], raftServers: [] }),
    }),
    /one is down, and told are \[n1\]/,
  ],
  [
    'that lose the schema of a parent',
    ({ check }) => ({
      check: (member, { parent: { schema: _, ...parent }, ...rest }, signal) =>
        check(member, { ...rest, parent }, signal),
    }),
    /a check does not arrive as it was asked/,
  ],
  [
    'that lose warnings',
    ({ check }) => ({ check: async (...call) => ({ ...(await check(...call)), warnings: [] }) }),
    /a report does not come back as it was made/,
  ],
  [
    'that ask twice',
    ({ check }) => ({
      check: async (...call) => {
        await check(...call);
        return check(...call);
      },
    }),
    /2 checks arrive as 4/,
  ],
  [
    'that remember postures',
    ({ posture }) => {
      let told: ReturnType<ClusterMembers['posture']> | undefined;
      return {
        posture: (...call) => {
          told ??= posture(...call);
          return told;
        },
      };
    },
    /a posture is not that of the member, as it is now/,
  ],
  [
    'that answer for whom nobody knows',
    ({ posture }) => ({ posture: (_, signal) => posture('n2', signal) }),
    /a member that nobody knows answers/,
  ],
  [
    'that answer for who is down',
    ({ check }) => ({
      check: (member, ...call) =>
        check(member, ...call).catch((error: unknown) => {
          if (member === 'n2') return { member, class: 'unreachable', warnings: [] };
          throw error;
        }),
    }),
    /a member that is down answers/,
  ],
  [
    'that never try again',
    ({ posture }, way) => {
      let isGone = false;
      return {
        posture: async (...call) => {
          isGone ||= !way.isUp;
          if (isGone) throw new Error('it was down');
          return posture(...call);
        },
      };
    },
    /a member that is up again does not answer/,
  ],
  [
    'that take an error for an insecure member',
    ({ posture }) => ({
      posture: (...call) =>
        posture(...call).catch((error: Error) => {
          if (error.message !== 'out of order') throw error;
          return { securityOn: false, legacyAuth: true, raftTls: false };
        }),
    }),
    /a member that cannot tell its posture tells one/,
  ],
  [
    'that take an error for a report',
    ({ check }) => ({
      check: (member, ...call) =>
        check(member, ...call).catch((error: Error) => {
          if (error.message !== 'out of order') throw error;
          return { member, class: 'unreachable', warnings: [] };
        }),
    }),
    /a member that cannot check has a report/,
  ],
  [
    'that wait for ever',
    ({ posture }) => ({ posture: (member) => posture(member, never()) }),
    /a call does not end with its signal/,
  ],
  [
    'that take an abort for an answer',
    ({ check }) => ({
      check: (member, question, signal) =>
        check(member, question, signal).catch((error: unknown) => {
          if (!signal.aborted) throw error;
          return { member, class: 'unreachable', warnings: [] };
        }),
    }),
    /a call that was ended has an answer/,
  ],
])('it refuses members %s', async (_, change, rule) => {
  expect(await verdictOf((test) => testClusterMembers((n2) => inProcess(n2, change), test))).toMatch(rule);
});

it('it takes members as they should be', async () => {
  expect(await verdictOf((test) => testClusterMembers(inProcess, test))).toBe('accepted');
});
