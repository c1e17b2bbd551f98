/**
 * The proof, in front of a delete, that everything of a parent was shipped: asks all members for their backlogs and then
 * for their cursors' lags, once for all who ask at a time, and answers for one remote child or for all of the parent.
 */
import { show } from '../../errors.js';
import type { Clock, ClusterMembers, ParentTopics, RemoteRegistry, StoredLink } from '../../ports/index.js';
import {
  BACKLOG_SCANS,
  type Backlog,
  type CursorLag,
  type CursorReport,
  checkTopicName,
  countUnshipped,
  judgeDelete,
  SCAN_LIMITS,
  UNSHIPPED_FLIGHTS,
  type UnshippedCount,
} from '../../sender/index.js';
import { Flights } from './flights.js';
import { type LinkRefusal, refused } from './link-answers.js';
import { within } from './within.js';

const ASK_MS = 15_000;
const FLIGHT_MS = 30_000;
const DELETE_MS = 45_000;

/** The lag of one cursor of one remote child. */
export interface ChildLag extends CursorLag {
  readonly child: string;
}

/** What members have of a parent that is not shipped. A rejection is a member that does not answer. */
export interface ClusterBacklogs {
  /** Records that this node has accepted for the parent and not committed to it, read as far as the limits let. */
  scan(parent: string, limits: typeof SCAN_LIMITS, signal: AbortSignal): Promise<Backlog>;
  /** The other side answers with its sender's `backlogHere`. Not asked of this node. */
  backlog(member: string, parent: string, signal: AbortSignal): Promise<Backlog>;
  /** The other side answers with its sender's `lagsHere`. Not asked of this node. */
  lags(member: string, parent: string, signal: AbortSignal): Promise<readonly ChildLag[]>;
}

export interface UnshippedRequest {
  /** The topic that would be deleted, or the parent of the child that would be. */
  readonly parent: string;
  /** The remote child that would go; absent: all of the parent. */
  readonly child?: string;
  /** Whoever asks believes that it leads to this remote. */
  readonly expectRemote?: string;
  /** Passes over what is left; the counts are told all the same, to be audited. */
  readonly force?: boolean;
}

/** Whether a delete may go on. `count` is there wherever it came to counting. */
export type UnshippedAnswer =
  | { readonly type: 'done'; readonly status: 200; readonly count: UnshippedCount }
  | (LinkRefusal & { readonly count?: UnshippedCount });

export interface UnshippedParts {
  readonly node: string;
  readonly members: ClusterMembers | undefined;
  readonly backlogs: ClusterBacklogs | undefined;
  readonly registry: RemoteRegistry;
  readonly parents: ParentTopics;
  readonly clock: Clock;
  readonly links: ReadonlyMap<string, StoredLink>;
  readonly cursors: () => readonly CursorReport[];
}

/** What a flight has found. */
interface Survey {
  readonly whole: UnshippedCount;
  readonly children: ReadonlyMap<string, { readonly remote: string; readonly count: UnshippedCount }>;
}

export class UnshippedCheck {
  private readonly surveys: Flights<Survey>;
  private readonly scans: Flights<Backlog>;

  constructor(private readonly parts: UnshippedParts) {
    const { clock } = parts;
    this.surveys = new Flights(UNSHIPPED_FLIGHTS, clock, (parent) => this.surveyInTime(parent));
    this.scans = new Flights(BACKLOG_SCANS, clock, (parent) => this.scan(parent));
  }

  /** Throws `invalidArgument` for names that cannot be. */
  async check({ parent, child, expectRemote, force = false }: UnshippedRequest): Promise<UnshippedAnswer> {
    checkTopicName('parent', parent);
    if (child !== undefined) checkTopicName('child', child);
    const flown = await within(this.parts.clock, DELETE_MS, () => this.surveys.ask(parent));
    if (flown === 'late') return refused(503, `it took longer than ${DELETE_MS / 1000} s to count what is unshipped`);
    if (flown.type === 'failed') return refused(503, `what is unshipped could not be counted: ${flown.reason}`);
    if (flown.type === 'paced') {
      const { retryAfterMs } = flown;
      return { ...refused(429, 'what is unshipped is counted once in 10 s for each parent'), retryAfterMs };
    }
    const { whole, children } = flown.answer;
    const found = child === undefined ? undefined : children.get(child);
    if (child !== undefined && found === undefined) return refused(404, `there is no link ${show(child)}`);
    const remotes = found === undefined ? [...children.values()].map(({ remote }) => remote) : [found.remote];
    if (expectRemote !== undefined && remotes.some((remote) => remote !== expectRemote)) {
      return refused(409, `it leads to another remote than ${show(expectRemote)}`);
    }
    const { allowed, count } = judgeDelete(found?.count ?? whole, force);
    return allowed ? { type: 'done', status: 200, count } : { ...refused(409, 'not everything is shipped'), count };
  }

  /** What this node has accepted of a parent and not committed. Rejects when that cannot be read. */
  async backlogHere(parent: string): Promise<Backlog> {
    checkTopicName('parent', parent);
    const flown = await this.scans.ask(parent);
    if (flown.type === 'answer') return flown.answer;
    throw new Error(`the backlog of topic ${show(parent)} could not be read`);
  }

  /** The lags of a parent's cursors that run on this node. Rejects when one cannot be read. */
  async lagsHere(parent: string): Promise<readonly ChildLag[]> {
    const { cursors, links, parents } = this.parts;
    const own = cursors().filter(({ child }) => links.get(child)?.parent === parent);
    return Promise.all(
      own.map(async ({ child, partition, offset }) => {
        const { records } = await parents.backlog(parent, partition, offset);
        return { child, partition, lag: records };
      }),
    );
  }

  private async scan(parent: string): Promise<Backlog> {
    const { backlogs, clock } = this.parts;
    if (backlogs === undefined) return { records: 0, isCapped: false };
    const found = await within(clock, SCAN_LIMITS.ms, (signal) => backlogs.scan(parent, SCAN_LIMITS, signal));
    return found === 'late' ? { records: 0, isCapped: true } : found;
  }

  private async surveyInTime(parent: string): Promise<Survey> {
    const survey = await within(this.parts.clock, FLIGHT_MS, () => this.survey(parent));
    if (survey !== 'late') return survey;
    throw new Error(`it took longer than ${FLIGHT_MS / 1000} s`);
  }

  private async survey(parent: string): Promise<Survey> {
    const { registry, parents, node, members } = this.parts;
    // Read anew: a link that this node has not taken in yet counts too.
    const links = (await registry.read()).links.filter((link) => link.parent === parent);
    const names = links.length === 0 ? [] : (members?.names() ?? [node]);
    const partitions = links.length === 0 ? 0 : (await parents.startOffsets(parent, 'latest')).length;
    // All are asked once, and in the order of the first count.
    const backlog = once((member) =>
      this.asked(
        member,
        () => this.backlogHere(parent),
        (others, signal) => others.backlog(member, parent, signal),
      ),
    );
    const lags = once(async (member) => {
      // Silent once is enough: two waits would outlast the flight, and nobody would be named.
      await backlog(member);
      return this.asked(
        member,
        () => this.lagsHere(parent),
        (others, signal) => others.lags(member, parent, signal),
      );
    });
    const count = (children: readonly string[]) =>
      countUnshipped(
        { backlog, lags: async (member) => (await lags(member)).filter(({ child }) => children.includes(child)) },
        { members: names, owners: names, partitions, cursorsPerPartition: children.length },
      );
    const whole = await count(links.map(({ child }) => child));
    const children: Survey['children'] = new Map(
      await Promise.all(
        links.map(async ({ child, remote }) => [child, { remote, count: await count([child]) }] as const),
      ),
    );
    const lagComplete = whole.lagComplete && [...children.values()].every((each) => each.count.lagComplete);
    return { whole: { ...whole, lagComplete }, children };
  }

  private async asked<Answer>(
    member: string,
    own: () => Promise<Answer>,
    other: (backlogs: ClusterBacklogs, signal: AbortSignal) => Promise<Answer>,
  ): Promise<Answer> {
    const { node, backlogs, clock } = this.parts;
    const answer = await within(clock, ASK_MS, async (signal) => {
      if (member === node) return own();
      return backlogs === undefined ? 'late' : other(backlogs, signal);
    });
    if (answer === 'late') throw new Error(`member ${show(member)} does not answer`);
    return answer;
  }
}

function once<Answer>(ask: (member: string) => Promise<Answer>): (member: string) => Promise<Answer> {
  const asked = new Map<string, Promise<Answer>>();
  return (member) => {
    const answer = asked.get(member) ?? ask(member);
    asked.set(member, answer);
    return answer;
  };
}
