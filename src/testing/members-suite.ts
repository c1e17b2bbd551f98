/**
 * Acceptance suite for `ClusterMembers` and what answers on the other side: the same tests that the adapters here pass.
 * The suite plays member `n2`, and a `setup` connects member `n1` to it by the port under test. Each message of a failure
 * is the rule that is broken.
 */
import type { ClusterMembers, MemberCheck } from '../ports/index.js';
import type { MemberReport, Posture, ReleaseReading } from '../sender/index.js';
import { check, onFresh, type RegisterTest, rejects, type SuiteSetup, watched } from './suite.js';
import { sameValue } from './suite-values.js';

/** What a member answers when another one asks it. */
export interface AskedMember {
  posture(): Promise<Posture>;
  check(question: MemberCheck): Promise<MemberReport>;
}

/** What member `n1` of a cluster of `n1` and `n2` asks with. */
export interface ClusterMembersSetup extends SuiteSetup {
  readonly members: ClusterMembers;
  /** Takes the way to `n2` down, or up again. */
  setReachable(isReachable: boolean): Promise<void> | void;
}

/** Connects a fresh `n1` to an `n2` that answers so. */
export type ClusterMembersFactory = (n2: AskedMember) => Promise<ClusterMembersSetup> | ClusterMembersSetup;

/** Registers the tests of `ClusterMembers`. */
export function testClusterMembers(setup: ClusterMembersFactory, test: RegisterTest): void {
  const name = (what: string) => `ClusterMembers: ${what}`;
  const using = (work: (made: ClusterMembersSetup, n2: Member) => Promise<void>) => async () => {
    const n2 = new Member();
    await onFresh(() => setup(n2))((made) => work(made, n2))();
  };

  test(
    name('every member is named once, this one and those that are down among them, and its release is told'),
    using(async ({ members, setReachable }) => {
      for (const isUp of [true, false]) {
        await setReachable(isUp);
        const state = isUp ? 'all are up' : 'one is down';
        const names = [...members.names()].sort().join();
        check(names === 'n1,n2', `n1 and n2 are the members, ${state}, and named are [${names}]`);
        const releases = nodesOf(await members.releases());
        check(releases === 'n1,n2', `n1 and n2 have releases, ${state}, and told are [${releases}]`);
      }
    }),
  );

  test(
    name('a check arrives as it was asked, and the report comes back as it was made'),
    using(async ({ members }, n2) => {
      for (const [i, question] of CHECKS.entries()) {
        n2.report = REPORTS[i] ?? n2.report;
        const report = await members.check('n2', question, never());
        check(sameValue(n2.asked.at(-1), question), 'a check does not arrive as it was asked');
        check(sameValue(report, n2.report), 'a report does not come back as it was made');
      }
      check(n2.asked.length === CHECKS.length, `${CHECKS.length} checks arrive as ${n2.asked.length}`);
    }),
  );

  test(
    name('a posture is that of the member that is asked, as it is now'),
    using(async ({ members }, n2) => {
      for (const securityOn of [true, false]) {
        for (const legacyAuth of [true, false]) {
          n2.secure = { securityOn, legacyAuth, raftTls: !securityOn };
          const told = await members.posture('n2', never());
          check(sameValue(told, n2.secure), 'a posture is not that of the member, as it is now');
        }
      }
    }),
  );

  test(
    name('a member that is down, or that nobody knows, is a rejection; and it can be asked once it is up again'),
    using(async ({ members, setReachable }) => {
      const ask = async (member: string) => [
        await rejects(members.posture(member, never())),
        await rejects(members.check(member, CHECKS[0], never())),
      ];
      check((await ask('nobody')).join() === 'true,true', 'a member that nobody knows answers');
      await setReachable(false);
      check((await ask('n2')).join() === 'true,true', 'a member that is down answers');
      await setReachable(true);
      check((await ask('n2')).join() === 'false,false', 'a member that is up again does not answer');
    }),
  );

  test(name('a member that cannot answer is a rejection'), async () => {
    const failing = new Member();
    failing.isBroken = true;
    await onFresh(() => setup(failing))(async ({ members }) => {
      check(await rejects(members.posture('n2', never())), 'a member that cannot tell its posture tells one');
      check(await rejects(members.check('n2', CHECKS[0], never())), 'a member that cannot check has a report');
    })();
  });

  test(name('a call ends with its signal, whatever the member does'), async () => {
    const silent = new Member();
    silent.isSilent = true;
    await onFresh(() => setup(silent))(async ({ members }, eventually) => {
      const stop = new AbortController();
      const calls = [members.posture('n2', stop.signal), members.check('n2', CHECKS[0], stop.signal)];
      const ends = calls.map((call) => watched(rejects(call)));
      stop.abort();
      await eventually(() => ends.every(({ isSettled }) => isSettled()), 'a call does not end with its signal');
      for (const { promise } of ends) check(await promise, 'a call that was ended has an answer');
    })();
  });
}

/** Member `n2`. */
class Member implements AskedMember {
  readonly asked: MemberCheck[] = [];
  secure: Posture = { securityOn: true, legacyAuth: false, raftTls: true };
  report: MemberReport = { member: 'n2', warnings: [] };
  isBroken = false;
  isSilent = false;

  async posture(): Promise<Posture> {
    await this.answering();
    return this.secure;
  }

  async check(question: MemberCheck): Promise<MemberReport> {
    this.asked.push(question);
    await this.answering();
    return this.report;
  }

  private async answering(): Promise<void> {
    if (this.isBroken) throw new Error('out of order');
    if (this.isSilent) await new Promise(() => undefined);
  }
}

const PLAIN: MemberCheck = {
  remote: 'b',
  topic: 'orders',
  parent: { name: 'orders', id: '', createdAt: 0 },
  credentialVersion: 1,
};

const CHECKS: readonly [MemberCheck, MemberCheck] = [
  PLAIN,
  {
    remote: 'far-away',
    topic: 'orders-there',
    parent: {
      name: 'orders',
      id: '00000000000000bb',
      createdAt: 1_600_000_000,
      schema: '{"type":"record","name":"Größe"}',
    },
    credentialVersion: Number.MAX_SAFE_INTEGER,
  },
];

const REPORTS: readonly MemberReport[] = [
  { member: 'n2', class: 'target_missing', warnings: [] },
  {
    member: 'n2',
    credentialVersion: Number.MAX_SAFE_INTEGER,
    targetId: '',
    warnings: ['no_loop_detection', 'short_retention'],
    rttMs: 0,
    recordsPerSecond: 12_345.5,
  },
];

function nodesOf(reading: ReleaseReading): string {
  if ('error' in reading) return reading.error;
  const nodes = reading.members.map(({ node }) => node);
  return nodes.sort().join();
}

function never(): AbortSignal {
  return new AbortController().signal;
}
