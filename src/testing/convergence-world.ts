/**
 * A simulated world of clusters that converge: each runs the machine of a controller over a layout in memory, and
 * they exchange their states over a lossy network in virtual time. A layout host is of one of two kinds: `atomic`
 * takes a whole layout by compare-and-set; `plan` performs one operation at a time as a Pulsar 5.0.1 broker does, and
 * halves or sums buckets on the way. Leaders crash between any two effects and forget all about their peers; others
 * commit behind their backs; stores fail, before or after the deed. After every step the invariants are checked.
 *
 * Everything happens by the clock, by the seed, and by what the caller asks for.
 */
import {
  type ControllerEffect,
  type ControllerEvent,
  type ControllerOptions,
  type ControllerReport,
  type ControllerState,
  type ExchangeResult,
  type ManualOperation,
  type PeerState,
  type PolicyDecision,
  startController,
  statedShape,
  stepController,
} from '../convergence/index.js';
import { IsthmusError } from '../errors.js';
import {
  boundariesOf,
  equalShapes,
  executeOperation,
  type HostCapabilities,
  type Layout,
  type Operation,
  type Shape,
  shapeOf,
} from '../layout/index.js';
import { BrokenInvariant, checkPlan, checkRemoval, checkStatement, checkWrite } from './convergence-invariants.js';
import { type LinkFaults, LossyNetwork, seededRandom, type Transit } from './lossy-network.js';
import { VirtualClock } from './virtual-clock.js';

/** What an unmodified Pulsar 5.0.1 broker can do. */
export const PULSAR_OPERATIONS: HostCapabilities = Object.freeze({
  explicitBoundary: false,
  unequalBuckets: false,
  maxBuckets: 1024,
});

/** A local policy of the world: what a controller's state makes it decide. */
export type WorldPolicy = (state: ControllerState, nowMs: number) => PolicyDecision;

export interface WorldCluster {
  readonly cluster: string;
  readonly layout: Layout;
  /** Default `atomic`. */
  readonly host?: 'atomic' | 'plan';
  /** Its leaders have no election terms (C14); default false. */
  readonly termless?: boolean;
  readonly options?: Partial<ControllerOptions>;
  /** Evaluated by `evaluate`; without one nothing is ever cold. */
  readonly policy?: WorldPolicy;
}

export interface WorldOptions {
  readonly seed: number;
  /** Time that is shared with others; default a clock of its own. */
  readonly clock?: VirtualClock;
  /** The rule of the controllers; default the real one. For tests of the world itself. */
  readonly step?: typeof stepController;
  readonly clusters: readonly WorldCluster[];
  readonly faults?: LinkFaults;
  /** Messages wait to be delivered by hand; default false. */
  readonly byHand?: boolean;
  /** How long a host takes to do what a controller asks for, at random; default not at all. */
  readonly hostDelayMs?: readonly [least: number, most: number];
  /** How many of the changes that a leader could watch it does not see; 0..1, default 0. */
  readonly unseenRate?: number;
  /** When a push that was not answered counts as failed; default 10,000. */
  readonly requestTimeoutMs?: number;
  readonly onEvent?: (event: WorldEvent) => void;
}

/** What can be seen of a world. */
export type WorldEvent =
  | { readonly type: 'push' | 'arrival'; readonly from: string; readonly to: string; readonly state: PeerState }
  | {
      readonly type: 'answer';
      readonly from: string;
      readonly to: string;
      readonly result: Omit<ExchangeResult, 'topic'>;
    }
  | { readonly type: 'pushFailed'; readonly from: string; readonly to: string; readonly reason: string }
  | { readonly type: 'written'; readonly cluster: string; readonly layout: Layout; readonly operation?: Operation }
  | { readonly type: 'changeFailed'; readonly cluster: string; readonly reason: string }
  | { readonly type: 'report'; readonly cluster: string; readonly report: ControllerReport };

/** How a store fails: before it has done anything, or after, so that nobody knows. */
export type StoreFailure = 'before' | 'after';

type WorldMessage =
  | {
      readonly type: 'push';
      readonly sender: Leader;
      readonly pushId: number;
      readonly state: PeerState;
      readonly hops: number;
    }
  | {
      readonly type: 'answer';
      readonly sender: Leader;
      readonly pushId: number;
      readonly result: Omit<ExchangeResult, 'topic'>;
      readonly hops: number;
    }
  | { readonly type: 'refusal'; readonly sender: Leader; readonly pushId: number };

/** What a cluster keeps, whoever leads. */
interface Member {
  readonly cluster: string;
  readonly host: 'atomic' | 'plan';
  readonly termless: boolean;
  readonly options: ControllerOptions;
  policy: WorldPolicy;
  layout: Layout;
  term: number;
  members: readonly string[];
  isSupported: boolean;
  /** The present leader, then those that were deposed and do not know it yet. */
  leaders: Leader[];
  readonly failures: StoreFailure[];
  /** By how much its clock differs from the time. */
  skewMs: number;
  /** How often each boundary was added to, and removed from, what the cluster states. */
  readonly added: Map<number, number>;
  readonly removed: Map<number, number>;
  /** How often what the cluster states has changed. */
  shapeChanges: number;
}

/** One leader's life. */
interface Leader {
  readonly member: Member;
  state: ControllerState;
  isAlive: boolean;
  readonly requests: Map<number, { readonly sender: Leader; readonly pushId: number }>;
  cancelWake: () => void;
  /** The longest chain of changes, each told to the next cluster, that led to what it has heard. */
  heardHops: number;
  /** The same for what it states. */
  statedHops: number;
  highestRevision: number;
}

export class ConvergenceWorld {
  readonly clock: VirtualClock;
  /** For faults and partitions; what it carries is the world's own. */
  get network(): LossyNetwork<unknown> {
    return this.messages as LossyNetwork<unknown>;
  }

  private readonly messages: LossyNetwork<WorldMessage>;
  /** When a layout or a stated shape last changed. */
  lastChangeAtMs: number;
  hostDelayMs: readonly [least: number, most: number];
  unseenRate: number;
  private readonly random: () => number;
  private readonly members: ReadonlyMap<string, Member>;
  private nextRequestId = 1;

  constructor(private readonly options: WorldOptions) {
    const { seed, clusters, faults, byHand = false, hostDelayMs = [0, 0], unseenRate = 0 } = options;
    this.clock = options.clock ?? new VirtualClock();
    this.random = seededRandom(seed);
    this.hostDelayMs = hostDelayMs;
    this.unseenRate = unseenRate;
    this.lastChangeAtMs = this.clock.nowMs;
    this.messages = new LossyNetwork({
      clock: this.clock,
      random: this.random,
      deliver: (transit) => this.arrive(transit),
      byHand,
      ...(faults === undefined ? {} : { faults }),
    });
    const names = clusters.map(({ cluster }) => cluster);
    this.members = new Map(clusters.map((cluster) => [cluster.cluster, newMember(cluster, names)]));
  }

  get clusters(): readonly string[] {
    return [...this.members.keys()];
  }

  /** The layout as stored. */
  layout(cluster: string): Layout {
    return this.member(cluster).layout;
  }

  hostOf(cluster: string): 'atomic' | 'plan' {
    return this.member(cluster).host;
  }

  /** The state of the present leader; undefined when there is none. */
  state(cluster: string): ControllerState | undefined {
    return this.leader(cluster)?.state;
  }

  /** How often each cluster's statement has changed, and how often it got or lost the same boundary, since `forgetCounts`. */
  counts(cluster: string): { readonly shapeChanges: number; readonly most: number } {
    const { added, removed, shapeChanges } = this.member(cluster);
    return { shapeChanges, most: Math.max(0, ...added.values(), ...removed.values()) };
  }

  /** The longest chain of changes, from cluster to cluster, since `forgetCounts`. */
  get hops(): number {
    return Math.max(...this.clusters.map((cluster) => this.leader(cluster)?.statedHops ?? 0));
  }

  forgetCounts(): void {
    for (const member of this.members.values()) {
      member.added.clear();
      member.removed.clear();
      member.shapeChanges = 0;
      for (const leader of member.leaders) leader.heardHops = leader.statedHops = 0;
    }
  }

  /** A leader is elected; one that leads already is deposed, and goes on until it learns of that (`retire`). */
  elect(cluster: string): void {
    const member = this.member(cluster);
    member.term++;
    const { members, layout } = member;
    const term = member.termless ? undefined : member.term;
    const options = { ...member.options, ...(member.host === 'plan' ? { operations: PULSAR_OPERATIONS } : {}) };
    const others = members.filter((other) => other !== cluster);
    const step = startController({ options, term, layout, members: others, nowMs: this.nowOf(member) });
    const leader: Leader = {
      member,
      state: step.state,
      isAlive: true,
      requests: new Map(),
      cancelWake: () => {},
      heardHops: 0,
      statedHops: 0,
      highestRevision: 0,
    };
    member.leaders.unshift(leader);
    this.perform(leader, step.effects);
  }

  /** Ends all leaders of a cluster; what they had asked for may have been done or not. */
  crash(cluster: string): void {
    const member = this.member(cluster);
    for (const leader of member.leaders) end(leader);
    member.leaders = [];
  }

  /** Deposed leaders learn that they are. */
  retire(cluster: string): void {
    const { leaders } = this.member(cluster);
    for (const leader of leaders.splice(1)) end(leader);
  }

  /** The cluster's policy is evaluated by its present leader. */
  evaluate(cluster: string): void {
    const leader = this.leader(cluster);
    if (leader === undefined) return;
    const nowMs = this.nowOf(leader.member);
    const decision = leader.member.policy(leader.state, nowMs);
    this.dispatch(leader, { type: 'policy', decision, nowMs });
  }

  setPolicy(cluster: string, policy: WorldPolicy): void {
    this.member(cluster).policy = policy;
  }

  /** An operator's change. Throws what the controller throws. */
  operate(cluster: string, operation: ManualOperation): void {
    const leader = this.leader(cluster);
    if (leader !== undefined) this.dispatch(leader, { type: 'manual', operation, nowMs: this.nowOf(leader.member) });
  }

  /** Somebody else changes the stored layout. Whoever leads sees it, unless it goes unseen. */
  interfere(cluster: string, change: (layout: Layout) => Layout): void {
    const member = this.member(cluster);
    this.write(member, change(member.layout));
  }

  /**
   * The stored layout has become another, of which the world asks nothing: a segment was pruned or rolled over, or
   * somebody else is responsible. Whoever leads sees it, unless it goes unseen.
   */
  replace(cluster: string, layout: Layout): void {
    const member = this.member(cluster);
    if (member.layout !== layout) this.store(member, layout);
  }

  /** The clock of a cluster's leaders jumps. */
  jump(cluster: string, ms: number): void {
    this.member(cluster).skewMs += ms;
  }

  /** The topic is deleted and made again: its epochs begin anew, and another leader with them. */
  recreate(cluster: string, layout: Layout): void {
    this.crash(cluster);
    this.member(cluster).layout = layout;
    this.lastChangeAtMs = this.clock.nowMs;
    this.elect(cluster);
  }

  /** The next change of the layout fails. */
  failNextChange(cluster: string, failure: StoreFailure): void {
    this.member(cluster).failures.push(failure);
  }

  forgetFailures(): void {
    for (const { failures } of this.members.values()) failures.length = 0;
  }

  /** The replication set as one cluster knows it. */
  setMembers(cluster: string, members: readonly string[]): void {
    const member = this.member(cluster);
    member.members = members;
    const others = members.filter((other) => other !== cluster);
    for (const leader of member.leaders) {
      this.dispatch(leader, { type: 'members', members: others, nowMs: this.nowOf(member) });
    }
  }

  /** Whether the cluster has an endpoint for the exchange. */
  setSupported(cluster: string, isSupported: boolean): void {
    this.member(cluster).isSupported = isSupported;
  }

  /** Lets time pass until nothing has changed for `quietMs`. Throws when that does not happen within `limitMs`. */
  settle({ quietMs, limitMs }: { readonly quietMs: number; readonly limitMs: number }): void {
    const untilMs = this.clock.nowMs + limitMs;
    this.lastChangeAtMs = this.clock.nowMs;
    while (this.clock.nowMs < this.lastChangeAtMs + quietMs) {
      if (!this.clock.runNext()) return;
      if (this.clock.nowMs > untilMs) throw this.broken('the world', `no rest within ${limitMs} ms`);
    }
  }

  private member(cluster: string): Member {
    const member = this.members.get(cluster);
    if (member === undefined) throw new Error(`no cluster ${cluster} in this world`);
    return member;
  }

  private nowOf({ skewMs }: Member): number {
    return this.clock.nowMs + skewMs;
  }

  private leader(cluster: string): Leader | undefined {
    return this.member(cluster).leaders[0];
  }

  private tell(event: WorldEvent): void {
    this.options.onEvent?.(event);
  }

  // --- controllers

  private dispatch(leader: Leader, event: ControllerEvent): void {
    if (!leader.isAlive) return;
    const before = leader.state;
    const { state, effects } = (this.options.step ?? stepController)(before, event);
    leader.state = state;
    const { cluster } = leader.member;
    for (const effect of effects) {
      const complaint = complaintAbout(effect, event, before, state) ?? this.revisionOf(leader, effect);
      if (complaint !== undefined) throw this.broken(cluster, complaint);
    }
    this.noteChange(leader, statedShape(before), statedShape(state));
    this.perform(leader, effects);
  }

  /** Every state that a leader builds has a revision of its own, and they ascend (C14). */
  private revisionOf(leader: Leader, effect: ControllerEffect): string | undefined {
    const state = toldState(effect);
    if (state === undefined) return undefined;
    if (state.revision <= leader.highestRevision) return `revision ${state.revision} was told already`;
    leader.highestRevision = state.revision;
    return undefined;
  }

  private noteChange(leader: Leader, before: Shape, after: Shape): void {
    if (before === after || equalShapes(before, after)) return;
    const { member } = leader;
    this.lastChangeAtMs = this.clock.nowMs;
    member.shapeChanges++;
    leader.statedHops = leader.heardHops;
    count(member.added, boundariesOf(after), boundariesOf(before));
    count(member.removed, boundariesOf(before), boundariesOf(after));
  }

  private perform(leader: Leader, effects: readonly ControllerEffect[]): void {
    for (const effect of effects) {
      if (effect.type === 'report')
        this.tell({ type: 'report', cluster: leader.member.cluster, report: effect.report });
      else if (effect.type === 'wake') this.arm(leader, effect.atMs);
      else this.later(leader, () => this.execute(leader, effect));
    }
  }

  private arm(leader: Leader, atMs: number): void {
    leader.cancelWake();
    leader.cancelWake = this.clock.schedule(Math.max(0, atMs - this.nowOf(leader.member)), () => {
      this.dispatch(leader, { type: 'tick', nowMs: this.nowOf(leader.member) });
    });
  }

  /** Runs when the host gets round to it, if the leader is still there then. */
  private later(leader: Leader, run: () => void): void {
    const [least, most] = this.hostDelayMs;
    this.clock.schedule(least + Math.floor(this.random() * (most - least + 1)), () => {
      if (leader.isAlive) run();
    });
  }

  private execute(leader: Leader, effect: Exclude<ControllerEffect, { type: 'report' | 'wake' }>): void {
    switch (effect.type) {
      case 'commit':
        return this.commit(leader, effect.expectedEpoch, effect.layout);
      case 'perform':
        return this.operateHost(leader, effect.operation);
      case 'push':
        return this.push(leader, effect.peer, effect.pushId, effect.state);
      case 'answer':
        return this.answer(leader, effect.requestId, effect.result);
      case 'reload':
        return this.later(leader, () => {
          const { layout } = leader.member;
          this.dispatch(leader, { type: 'layout', layout, reloaded: true, nowMs: this.nowOf(leader.member) });
        });
    }
  }

  // --- layouts

  private commit(leader: Leader, expectedEpoch: number, layout: Layout): void {
    const { member } = leader;
    const failure = member.failures.shift();
    if (failure === 'before') return this.changeFailed(leader, 'the store is not there');
    if (member.layout.epoch !== expectedEpoch) {
      this.tell({ type: 'changeFailed', cluster: member.cluster, reason: 'somebody else was first' });
      return this.later(leader, () => {
        this.dispatch(leader, { type: 'conflict', layout: member.layout, nowMs: this.nowOf(member) });
      });
    }
    this.write(member, layout);
    if (failure === 'after') return this.changeFailed(leader, 'the store did not answer');
    this.later(leader, () => this.dispatch(leader, { type: 'committed', layout, nowMs: this.nowOf(member) }));
  }

  private operateHost(leader: Leader, operation: Operation): void {
    const { member } = leader;
    const failure = member.failures.shift();
    if (failure === 'before') return this.changeFailed(leader, 'the broker is not there');
    let layout: Layout;
    try {
      layout = executeOperation(member.layout, operation, this.nowOf(member));
    } catch (error) {
      if (error instanceof IsthmusError) return this.changeFailed(leader, error.message);
      throw error;
    }
    this.write(member, layout, operation);
    if (failure === 'after') return this.changeFailed(leader, 'the broker did not answer');
    this.later(leader, () => {
      this.dispatch(leader, { type: 'committed', layout: member.layout, nowMs: this.nowOf(member) });
    });
  }

  private changeFailed(leader: Leader, reason: string): void {
    const { member } = leader;
    this.tell({ type: 'changeFailed', cluster: member.cluster, reason });
    this.later(leader, () => {
      const { layout } = member;
      const random = this.random();
      this.dispatch(leader, { type: 'changeFailed', reason, layout, nowMs: this.nowOf(member), random });
    });
  }

  private write(member: Member, layout: Layout, operation?: Operation): void {
    const complaint = checkWrite(member.layout, layout);
    if (complaint !== undefined) throw this.broken(member.cluster, complaint);
    this.store(member, layout, operation);
  }

  private store(member: Member, layout: Layout, operation?: Operation): void {
    member.layout = layout;
    this.lastChangeAtMs = this.clock.nowMs;
    this.tell({ type: 'written', cluster: member.cluster, layout, ...(operation === undefined ? {} : { operation }) });
    for (const leader of member.leaders) {
      if (this.random() < this.unseenRate) continue;
      this.later(leader, () => this.dispatch(leader, { type: 'layout', layout, nowMs: this.nowOf(member) }));
    }
  }

  // --- the exchange

  private push(leader: Leader, peer: string, pushId: number, state: PeerState): void {
    const { cluster } = leader.member;
    this.tell({ type: 'push', from: cluster, to: peer, state });
    this.messages.send(cluster, peer, { type: 'push', sender: leader, pushId, state, hops: leader.statedHops + 1 });
    this.clock.schedule(this.options.requestTimeoutMs ?? 10_000, () => {
      this.pushFailed(leader, peer, pushId, 'no answer', false);
    });
  }

  private pushFailed(leader: Leader, peer: string, pushId: number, reason: string, unsupported: boolean): void {
    if (!leader.isAlive || leader.state.peers.get(peer)?.inFlight?.pushId !== pushId) return;
    this.tell({ type: 'pushFailed', from: leader.member.cluster, to: peer, reason });
    const random = this.random();
    const nowMs = this.nowOf(leader.member);
    this.dispatch(leader, { type: 'pushFailed', peer, pushId, reason, unsupported, nowMs, random });
  }

  private answer(leader: Leader, requestId: number, result: Omit<ExchangeResult, 'topic'>): void {
    const request = leader.requests.get(requestId);
    if (request === undefined) throw this.broken(leader.member.cluster, `request ${requestId} was answered twice`);
    leader.requests.delete(requestId);
    const { sender, pushId } = request;
    this.messages.send(leader.member.cluster, sender.member.cluster, {
      type: 'answer',
      sender,
      pushId,
      result,
      hops: leader.statedHops + 1,
    });
  }

  private arrive({ from, to, message }: Transit<WorldMessage>): void {
    if (message.type === 'push') return this.receive(from, to, message);
    const { sender, pushId } = message;
    if (message.type === 'refusal') return this.pushFailed(sender, from, pushId, 'no such endpoint', true);
    if (!sender.isAlive) return;
    this.tell({ type: 'answer', from, to, result: message.result });
    sender.heardHops = Math.max(sender.heardHops, message.hops);
    const random = this.random();
    const nowMs = this.nowOf(sender.member);
    this.dispatch(sender, { type: 'answered', peer: from, pushId, result: message.result, nowMs, random });
  }

  private receive(from: string, to: string, message: Extract<WorldMessage, { type: 'push' }>): void {
    const member = this.member(to);
    const { sender, pushId, state } = message;
    if (!member.isSupported) return this.messages.send(to, from, { type: 'refusal', sender, pushId });
    const [leader] = member.leaders;
    if (leader === undefined) return;
    this.tell({ type: 'arrival', from, to, state });
    const requestId = this.nextRequestId++;
    leader.requests.set(requestId, { sender, pushId });
    leader.heardHops = Math.max(leader.heardHops, message.hops);
    this.dispatch(leader, { type: 'pushed', requestId, from, state, nowMs: this.nowOf(member) });
  }

  private broken(cluster: string, rule: string): BrokenInvariant {
    return new BrokenInvariant(`convergence: ${cluster} at ${this.clock.nowMs} ms, seed ${this.options.seed}: ${rule}`);
  }
}

function newMember(from: WorldCluster, members: string[]): Member {
  const { cluster, layout, host = 'atomic', termless = false, options, policy } = from;
  const caps = { maxSegments: 64, maxEntryBucketsPerSegment: 64 };
  return {
    cluster,
    host,
    termless,
    options: { caps, ...options, cluster },
    policy: policy ?? (() => ({ coldMarks: { segments: [], buckets: [] } })),
    layout,
    term: 0,
    members,
    isSupported: true,
    leaders: [],
    failures: [],
    skewMs: 0,
    added: new Map(),
    removed: new Map(),
    shapeChanges: 0,
  };
}

function end(leader: Leader): void {
  leader.isAlive = false;
  leader.cancelWake();
}

/** What is wrong with an effect, given the state in which the event came and the one in which it left. */
function complaintAbout(
  effect: ControllerEffect,
  event: ControllerEvent,
  before: ControllerState,
  after: ControllerState,
): string | undefined {
  const told = toldState(effect);
  if (told !== undefined) return checkStatement(told);
  if (effect.type === 'commit') return checkRemoval(after, shapeOf(after.layout), shapeOf(effect.layout));
  if (effect.type !== 'perform') return undefined;
  // Where somebody else's change came with the event, it has altered the goal as well.
  const isOwn = event.type !== 'committed' || after.layout.epoch === before.layout.epoch + 1;
  if (!isOwn || event.type === 'layout' || event.type === 'changeFailed') return undefined;
  return checkPlan(before, after);
}

function toldState(effect: ControllerEffect): PeerState | undefined {
  if (effect.type === 'push') return effect.state;
  return effect.type === 'answer' ? effect.result.state : undefined;
}

function count(counts: Map<number, number>, now: readonly number[], before: readonly number[]): void {
  for (const boundary of now) {
    if (!before.includes(boundary)) counts.set(boundary, (counts.get(boundary) ?? 0) + 1);
  }
}
