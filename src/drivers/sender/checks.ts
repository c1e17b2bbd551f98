/**
 * The checks of an attach, a resume and a test: what this node finds with its own credential and connections, and what
 * all members find. Where no hosts are listed, anybody who may test could use the answers to look around the network;
 * then they tell the class of the failure and nothing that was seen.
 */
import type { Clock, ClusterMembers, MemberCheck } from '../../ports/index.js';
import {
  type Capabilities,
  CapabilityProbe,
  CheckPace,
  type Compress,
  checkMember,
  type FoldedCheck,
  foldChecks,
  type MemberReport,
  type RemoteLookup,
} from '../../sender/index.js';
import type { HttpsTransport } from './transport.js';
import { within } from './within.js';

const MEMBER_MS = 15_000;
const FAN_OUT_MS = 20_000;

export interface ChecksParts {
  readonly node: string;
  readonly members: ClusterMembers | undefined;
  readonly transport: HttpsTransport;
  readonly clock: Clock;
  readonly lookup: (remote: string) => RemoteLookup;
  readonly isSecure: () => boolean;
  readonly hasAllowedHosts: boolean;
  readonly compress: Compress;
}

/** A member's report as it may be shown. */
export interface ShownReport extends Partial<MemberReport> {
  readonly member: string;
  /** The member's posture allows remotes, as far as it was seen. */
  readonly isSecure: boolean;
}

/** What members found, as one, and what of it may be shown. */
export interface CheckResult {
  readonly folded: FoldedCheck;
  readonly reports: readonly ShownReport[];
}

export class Checks {
  private readonly paces = new Map<string, CheckPace>();

  constructor(private readonly parts: ChecksParts) {}

  /** This node's own run: one at a time for each remote, one every 5 s, and none for longer than 15 s. */
  async here({ remote, ...question }: MemberCheck): Promise<MemberReport> {
    const { node, transport, clock, isSecure, lookup, hasAllowedHosts } = this.parts;
    const pace = this.paces.get(remote) ?? new CheckPace();
    this.paces.set(remote, pace);
    if (pace.start(clock.now()) !== 'started') return { member: node, class: 'throttled', warnings: [] };
    const endMs = clock.now() + MEMBER_MS;
    const found = lookup(remote);
    const ports = {
      isSecure,
      lookup: () => found,
      connect: () => transport.connect(remote),
      send: (request: Parameters<HttpsTransport['send']>[2]) =>
        transport.send(remote, credentialOf(found), request, Math.max(1, endMs - clock.now())),
    };
    try {
      return await checkMember(node, ports, { ...question, hasAllowedHosts, nowMs: clock.now() });
    } finally {
      pace.ended();
    }
  }

  /** Every member's run. */
  async all(check: MemberCheck): Promise<CheckResult> {
    const { node, members } = this.parts;
    const names = members?.names() ?? [node];
    const reports = await Promise.all(names.map((name) => this.member(name, check)));
    return this.folded(names, check, reports);
  }

  /** A test: of all members where hosts are listed, else of this node alone. */
  async test(check: MemberCheck): Promise<CheckResult> {
    if (this.parts.hasAllowedHosts) return this.all(check);
    return this.folded([this.parts.node], check, [await this.here(check)]);
  }

  /** What the target takes; undefined when it does not say. */
  async probe(remote: string, topic: string): Promise<Capabilities | undefined> {
    const { lookup, compress, transport } = this.parts;
    const found = lookup(remote);
    if (found.state !== 'ready') return undefined;
    const { compression, requestTimeoutMs } = found.limits;
    const probe = new CapabilityProbe(topic, compression === 'zstd' ? compress : undefined);
    for (let request = probe.first(); ; ) {
      const next = probe.answered(await transport.send(remote, credentialOf(found), request, requestTimeoutMs));
      if (next === 'inconclusive') return undefined;
      if (!('path' in next)) return next;
      request = next;
    }
  }

  /** Undefined for a member that does not answer. */
  private async member(name: string, check: MemberCheck): Promise<MemberReport | undefined> {
    const { node, members, clock } = this.parts;
    if (name === node || members === undefined) return this.here(check);
    try {
      const report = await within(clock, FAN_OUT_MS, (signal) => members.check(name, check, signal));
      return report === 'late' ? undefined : { ...report, member: name };
    } catch {
      return undefined;
    }
  }

  private folded(
    names: readonly string[],
    { credentialVersion }: MemberCheck,
    reports: readonly (MemberReport | undefined)[],
  ): CheckResult {
    const answered = reports.filter((report) => report !== undefined);
    return {
      folded: foldChecks(names, answered, credentialVersion),
      reports: answered.map((report) => this.shown(report)),
    };
  }

  private shown(report: MemberReport): ShownReport {
    const isSecure = report.class !== 'node_insecure';
    if (this.parts.hasAllowedHosts) return { ...report, isSecure };
    const { member, class: failed, credentialVersion } = report;
    return {
      member,
      isSecure,
      ...(failed !== undefined && { class: failed }),
      ...(credentialVersion !== undefined && { credentialVersion }),
    };
  }
}

function credentialOf(lookup: RemoteLookup): string {
  return lookup.state === 'ready' ? `${lookup.remoteId}/${lookup.credentialVersion}` : '';
}
