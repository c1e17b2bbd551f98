/**
 * The writes of links that a node takes: attach, resume, pause, skip. Each is held against its gates, against the rules
 * of a link, and where records will flow against what every member finds at the target; only then it is written, as one
 * entry of the metadata. What is wrong with the world is an answer; what is wrong with the question throws.
 */
import { checkPauseReason, checkRemoteName } from '../../credentials/index.js';
import { IsthmusError, messageOf, show } from '../../errors.js';
import { canonicalUrl } from '../../guard/index.js';
import type { LinkWrite, ParentTopic, ParentTopics, RemoteRegistry, StartMode, StoredLink } from '../../ports/index.js';
import {
  attachRefusal,
  attachWarnings,
  type CheckWarning,
  checkOffset,
  checkTopicName,
  resumedTarget,
} from '../../sender/index.js';
import type { CheckResult, Checks } from './checks.js';
import { type LinkAnswer, type LinkRefusal, refused } from './link-answers.js';
import { type GatesParts, LinkGates } from './link-gates.js';
import type { RegistryFollower } from './registry-follower.js';
import { within } from './within.js';

const ATTACH_MS = 45_000;
const STATE_MS = 15_000;

export interface AttachRequest {
  readonly parent: string;
  /** The name of the link: 1 to 200 letters, digits, dots, underscores and hyphens. */
  readonly child: string;
  readonly remote: string;
  /** The topic on the remote. */
  readonly topic: string;
  readonly from: StartMode;
  /** 1 to 8, default 1: more send side by side, and keep the order of each key. */
  readonly lanes?: number;
  /** Records are sent no earlier than so long after they were stored, in milliseconds; default 0. */
  readonly delayMs?: number;
  /** Checks everything and writes nothing. */
  readonly dryRun?: boolean;
}

export interface TestRequest {
  readonly remote: string;
  /** The topic on the remote. */
  readonly topic: string;
  /** The topic that would be copied there. */
  readonly parent: string;
}

export interface WritesParts extends GatesParts {
  readonly registry: RemoteRegistry;
  readonly parents: ParentTopics;
  readonly follower: RegistryFollower;
  readonly checks: Checks;
  readonly hasAllowedHosts: boolean;
  /** After a write: links and cursors are brought into line at once. */
  readonly written: () => Promise<void>;
}

const DONE = { type: 'done', status: 200, warnings: [], reports: [] } as const;

export class LinkWrites {
  private readonly gates: LinkGates;

  constructor(private readonly parts: WritesParts) {
    this.gates = new LinkGates(parts);
  }

  /** Throws `invalidArgument` for a name, a number of lanes or a delay that cannot be. */
  async attach(request: AttachRequest): Promise<LinkAnswer> {
    checkAttach(request);
    const refusal = await this.gates.refusal('attach');
    return refusal ?? this.limited(ATTACH_MS, (signal) => this.attachChecked(request, signal));
  }

  /** `acceptTarget` takes another topic under the old name for the target from now on. */
  async resume(child: string, { acceptTarget = false } = {}): Promise<LinkAnswer> {
    const refusal = await this.gates.refusal('resume');
    if (refusal !== undefined) return refusal;
    const link = this.parts.follower.links.get(child);
    if (link === undefined) return refused(404, `there is no link ${show(child)}`);
    const parent = await this.parent(link.parent);
    if ('type' in parent) return parent;
    const checked = await this.check(link.remote, link.topic, parent, 'all');
    if (checked.type === 'refused') return checked;
    const targetId = resumedTarget(link.targetId, checked.targetId, acceptTarget);
    if (targetId === undefined) {
      const reason = 'the target is another topic than the one that was attached';
      return { ...refused(409, reason), reports: checked.reports };
    }
    const { attachEpoch } = link;
    const answer = await this.write({ type: 'resume', child, attachEpoch, targetId }, STATE_MS);
    return answer.type === 'refused' ? answer : this.shown(checked, checked.warnings);
  }

  /** `reason`: printable text of at most 256 bytes. */
  async pause(child: string, reason: string): Promise<LinkAnswer> {
    checkPauseReason(reason);
    return this.change('pause', child, ({ attachEpoch }) => ({ type: 'pause', child, attachEpoch, reason }));
  }

  /** Lets one record pass unsent, once it is the one that its lane is blocked on. */
  async skip(child: string, partition: number, offset: number): Promise<LinkAnswer> {
    checkOffset('partition', partition);
    checkOffset('offset', offset);
    const skip = { partition, offset };
    return this.change('skip', child, ({ attachEpoch }) => ({ type: 'skip', child, attachEpoch, skip }));
  }

  async test({ remote, topic, parent: name }: TestRequest): Promise<LinkAnswer> {
    checkTopicName('topic', topic);
    const parent = await this.parent(name);
    if ('type' in parent) return parent;
    const checked = await this.check(remote, topic, parent, 'test');
    return checked.type === 'refused' ? checked : this.shown(checked, checked.warnings);
  }

  private async attachChecked(request: AttachRequest, signal: AbortSignal): Promise<LinkAnswer> {
    const { remote, topic, dryRun = false, delayMs = 0 } = request;
    const { parents, checks, hasAllowedHosts } = this.parts;
    const parent = await this.attachable(request);
    if ('type' in parent) return parent;
    const checked = await this.check(remote, topic, parent, dryRun ? 'test' : 'all');
    if (checked.type === 'refused') return checked;
    const startOffsets = await parents.startOffsets(request.parent, request.from).catch((error: unknown) => {
      return refused(503, `where to begin could not be read: ${messageOf(error)}`);
    });
    if ('type' in startOffsets) return startOffsets;
    const { retentionMs } = parent;
    // Without listed hosts, what the target takes is not told, and so not asked.
    const found = hasAllowedHosts ? await checks.probe(remote, topic) : undefined;
    const warnings = [
      ...attachWarnings(retentionMs, found?.maxMessages ?? Number.POSITIVE_INFINITY),
      ...checked.warnings,
    ];
    // Whoever asked has been told that it took too long.
    if (dryRun || signal.aborted) return this.shown(checked, warnings);
    const { child, lanes = 1 } = request;
    const { targetId } = checked;
    const state = { lanes, paused: false, skips: [], startOffsets, retentionMs };
    const link = { parent: request.parent, child, remote, topic, targetId, ...state };
    const answer = await this.write({ type: 'attach', link, delayMs }, STATE_MS);
    return answer.type === 'refused' ? answer : { ...this.shown(checked, warnings), status: 201 };
  }

  /** The parent of a link that may be, before anything is asked of the target. */
  private async attachable(request: AttachRequest): Promise<ParentTopic | LinkRefusal> {
    const { follower } = this.parts;
    const { remote, child, parent: name, delayMs = 0 } = request;
    if (!follower.remotes.has(remote)) return refused(400, `there is no remote ${show(remote)}`);
    const parent = await this.parent(name);
    if ('type' in parent) return parent;
    if (parent.isChild) return refused(409, `topic ${show(name)} is a child itself`);
    if (follower.links.has(child)) return refused(409, `there is a link ${show(child)} already`);
    const other = this.sameTarget(request);
    if (other !== undefined) return refused(409, `link ${show(other)} copies the same parent to the same topic`);
    const reason = attachRefusal({ ...parent, delayMs });
    return reason === undefined ? parent : refused(409, reason);
  }

  private async parent(name: string): Promise<ParentTopic | LinkRefusal> {
    try {
      return (await this.parts.parents.describe(name)) ?? refused(404, `there is no topic ${show(name)}`);
    } catch (error) {
      return refused(503, `topic ${show(name)} could not be read: ${messageOf(error)}`);
    }
  }

  /** A link of the same parent to the same topic at the same host and port, whatever the path of the URL. */
  private sameTarget({ remote, topic, parent }: AttachRequest): string | undefined {
    const { links } = this.parts.follower;
    const endpoint = this.endpoint(remote);
    const same = [...links.values()].find(
      (link) => link.parent === parent && link.topic === topic && this.endpoint(link.remote) === endpoint,
    );
    return same?.child;
  }

  private endpoint(remote: string): string | undefined {
    const stored = this.parts.follower.remotes.get(remote);
    if (stored === undefined) return undefined;
    const { host, port } = canonicalUrl(stored.binding.url);
    return `${host} ${port}`;
  }

  /** Asks the members; a failed check is a refusal. */
  private async check(
    remote: string,
    topic: string,
    parent: ParentTopic,
    how: 'all' | 'test',
  ): Promise<
    | ({ readonly type: 'passed'; readonly targetId: string; readonly warnings: readonly CheckWarning[] } & CheckResult)
    | LinkRefusal
  > {
    const stored = this.parts.follower.remotes.get(remote);
    if (stored === undefined) return refused(400, `there is no remote ${show(remote)}`);
    const { id, name, createdAt, schema } = parent;
    const asked = { id, name, createdAt, ...(schema !== undefined && { schema }) };
    const { credentialVersion } = stored;
    const result = await this.parts.checks[how]({ remote, topic, parent: asked, credentialVersion });
    const { folded, reports } = result;
    if (folded.passed) return { type: 'passed', ...result, targetId: folded.targetId, warnings: folded.warnings };
    const { status, members, class: found } = folded;
    const wait = found === 'throttled' ? { retryAfterMs: 5_000 } : {};
    return { ...refused(status, `a check failed: ${found}`), class: found, members, reports, ...wait };
  }

  /** Without listed hosts, of the warnings only what is known of the parent is told. */
  private shown(
    { targetId, reports }: { readonly targetId: string } & CheckResult,
    warnings: readonly CheckWarning[],
  ): Extract<LinkAnswer, { readonly type: 'done' }> {
    if (this.parts.hasAllowedHosts) return { ...DONE, targetId, warnings, reports };
    return { ...DONE, warnings: warnings.filter((warning) => warning === 'short_retention'), reports };
  }

  private async change(
    kind: 'pause' | 'skip',
    child: string,
    entry: (link: StoredLink) => LinkWrite,
  ): Promise<LinkAnswer> {
    const refusal = await this.gates.refusal(kind);
    if (refusal !== undefined) return refusal;
    const link = this.parts.follower.links.get(child);
    if (link === undefined) return refused(404, `there is no link ${show(child)}`);
    return this.write(entry(link), STATE_MS);
  }

  private async write(change: LinkWrite, limitMs: number): Promise<LinkAnswer> {
    const { registry, clock, written } = this.parts;
    try {
      const answer = await within(clock, limitMs, () => registry.write(change));
      if (answer === 'late')
        return refused(503, 'it is not known whether it was written: look before it is sent again');
      if (answer.type === 'refused') return refused(409, answer.reason);
    } catch (error) {
      return refused(503, `it is not known whether it was written: ${messageOf(error)}`);
    }
    await written();
    return DONE;
  }

  private async limited(ms: number, work: (signal: AbortSignal) => Promise<LinkAnswer>): Promise<LinkAnswer> {
    const answer = await within(this.parts.clock, ms, work);
    return answer === 'late' ? refused(503, `it took longer than ${ms / 1000} s: look whether it was written`) : answer;
  }
}

function checkAttach({ parent, child, topic, remote, lanes = 1, delayMs = 0 }: AttachRequest): void {
  checkTopicName('parent', parent);
  checkTopicName('child', child);
  checkTopicName('topic', topic);
  checkRemoteName(remote);
  checkOffset('delayMs', delayMs);
  if (Number.isInteger(lanes) && lanes >= 1 && lanes <= 8) return;
  throw new IsthmusError('invalidArgument', `lanes ${show(lanes)}: it must be an integer from 1 to 8`);
}
