/**
 * The rule of the controller: `step(state, event)` gives the next state and the effects. It holds C7 to C22 together:
 * every event that may change the outcome ends in `settle`, which computes the next shape, asks for at most one change
 * of the layout at a time, and once there is nothing left to change answers peers and tells them what is new.
 */

import { IsthmusError, show } from '../errors.js';
import {
  applyShape,
  boundariesOf,
  equalShapes,
  goalShape,
  type Layout,
  planOperations,
  rebucketSegment,
  type Segment,
  shapeOf,
  siblingBoundaries,
  splitSegment,
} from '../layout/index.js';
import { equalBoundaries, FULL_RANGE, overlaps, unionBoundaries } from '../ring/index.js';
import { effectiveCaps } from './caps.js';
import type {
  ControllerEffect,
  ControllerEvent,
  ControllerOptions,
  ControllerReport,
  ControllerState,
  ControllerStep,
  ManualOperation,
  PeerRecord,
} from './controller-state.js';
import type { ExchangeResult } from './exchange.js';
import { both, equalMarks, marksDownTo, standingMarks, without, withoutMarks } from './marks.js';
import { DEFAULT_BUCKET_LIMIT, type NextShape, nextShape, type ShapeDifference, withAdded } from './next-shape.js';
import { type ColdMarks, isNewer, NO_MARKS, type PeerState, PROTOCOL_VERSION } from './peer-state.js';
import { alteredGoal } from './plan-goal.js';
import type { PolicyDecision } from './policy.js';
import {
  heardStates,
  heldShape,
  joinedBase,
  localMarks,
  type PeerStatement,
  sameStatement,
  statedMarks,
  statedShape,
  statementOf,
  unheardPeers,
} from './statement.js';
import { isBeyondBuckets, splitWish, wishOf } from './wish.js';

/** What a leader begins with. */
export interface ControllerStart {
  readonly options: ControllerOptions;
  /** The leader's election term, where the host has one (C14). */
  readonly term?: number | undefined;
  readonly layout: Layout;
  /** The replication set without the own cluster. */
  readonly members: readonly string[];
  readonly nowMs: number;
}

/** A new leader: it knows no peer yet, and begins by telling all of them its state (C18). */
export function startController({ options, term, layout, members, nowMs }: ControllerStart): ControllerStep {
  const resolved = {
    peerSilenceGraceMs: 30_000,
    antiEntropyMs: 60_000,
    retryInitialMs: 200,
    retryMaxMs: 30_000,
    bucketLimit: DEFAULT_BUCKET_LIMIT,
    ...options,
  };
  const state: ControllerState = {
    options: resolved,
    ...(term === undefined ? {} : { term }),
    layout,
    ...(options.operations === undefined ? {} : { goal: goalShape(layout) }),
    revision: 0,
    nextPushId: 1,
    peers: new Map(members.map((cluster) => [cluster, newRecord(cluster, nowMs)])),
    manualMarks: NO_MARKS,
    isChanging: false,
    changeAttempts: 0,
    waiting: [],
    antiEntropyAtMs: nowMs + resolved.antiEntropyMs,
  };
  const turn = new Turn(state, nowMs);
  turn.settle();
  return turn.end();
}

/** What one event leads to. Throws, and changes nothing, on a manual operation that breaks a rule. */
export function stepController(state: ControllerState, event: ControllerEvent): ControllerStep {
  const turn = new Turn(state, event.nowMs);
  turn.handle(event);
  return turn.end();
}

function newRecord(cluster: string, sinceMs: number): PeerRecord {
  return {
    cluster,
    sinceMs,
    unsupported: false,
    dirty: true,
    attempts: 0,
    refused: false,
    leftOut: false,
    wentBack: false,
  };
}

/** Sets members, and takes away those that are set to undefined. */
function updated<T extends object>(value: T, change: { [K in keyof T]?: T[K] | undefined }): T {
  const next = { ...value, ...change } as Record<string, unknown>;
  for (const [name, member] of Object.entries(change)) if (member === undefined) delete next[name];
  return next as T;
}

/** One step under construction. */
class Turn {
  private readonly effects: ControllerEffect[] = [];
  private readonly statement: PeerStatement;
  /** The one time at which a peer without an endpoint is asked again (C19). */
  private isAntiEntropy = false;

  constructor(
    private s: ControllerState,
    private readonly nowMs: number,
  ) {
    this.statement = statementOf(s);
  }

  handle(event: ControllerEvent): void {
    switch (event.type) {
      case 'tick':
        return this.tick();
      case 'layout':
        return this.seen(event.layout, event.reloaded === true);
      case 'committed':
        return this.committed(event.layout);
      case 'conflict':
        this.adopt(event.layout);
        this.set({ isChanging: false, seenLayout: undefined });
        return this.settle();
      case 'changeFailed':
        return this.changeFailed(event.reason, event.layout, event.random);
      case 'pushed':
        return this.pushed(event.requestId, event.from, event.state);
      case 'answered':
        return this.answered(event.peer, event.pushId, event.result, event.random);
      case 'pushFailed':
        return this.pushFailed(event);
      case 'policy':
        return this.decided(event.decision);
      case 'manual':
        return this.operate(event.operation);
      case 'members':
        return this.changeMembers(event.members);
    }
  }

  /** Ends the turn: what changed is told, and the next timer is set. */
  end(): ControllerStep {
    if (!sameStatement(this.statement, statementOf(this.s))) {
      for (const { cluster } of this.s.peers.values()) this.setPeer(cluster, { dirty: true });
    }
    for (const { cluster } of this.s.peers.values()) this.push(cluster);
    const wakeAtMs = this.nextWake();
    if (wakeAtMs !== this.s.wakeAtMs) {
      this.set({ wakeAtMs });
      this.effects.push({ type: 'wake', atMs: wakeAtMs });
    }
    return { state: this.s, effects: this.effects };
  }

  /** Computes the next shape and asks for the next change towards it, or closes what waited for the last one. */
  settle(): void {
    if (this.s.isChanging) return;
    const stated = statedShape(this.s);
    this.dropFallenMarks();
    if (this.s.wish !== undefined && withAdded(stated, this.s.wish) === stated) this.set({ wish: undefined });
    const next = this.next();
    this.noteLeftOut(next);
    this.noteDivergence();
    if (this.s.changeRetryAtMs !== undefined) {
      return this.answerAll({ code: 'failed', message: 'the last change of the layout failed and is tried again' });
    }
    if (this.change(next)) return;
    this.dropMarksBetweenNoSiblings(next);
    // A plan that ended short of its goal leaves the layout as the statement, which may want something else (C22).
    if (!equalShapes(stated, statedShape(this.s))) return this.settle();
    this.answerAll();
  }

  private next(): NextShape {
    const { options, wish } = this.s;
    const peers = heardStates(this.s);
    const local = statedShape(this.s);
    const marks = localMarks(this.s);
    const foldLimit =
      options.foldLimit ?? peers.reduce((sum, { caps }) => sum + caps.maxSegments, options.caps.maxSegments);
    return nextShape({
      local: wish === undefined ? local : withAdded(local, wish),
      // What is asked for is demanded, whatever a mark says.
      localMarks: wish === undefined ? marks : withoutMarks(marks, wish),
      base: this.s.layout.base,
      peers,
      unheard: unheardPeers(this.s),
      foldLimit,
      bucketLimit: options.bucketLimit,
      equalWidth: options.operations?.unequalBuckets === false,
    });
  }

  /** Asks for the next change; false when the layout is where it should be, as far as the host can go. */
  private change(next: NextShape): boolean {
    const { layout, options } = this.s;
    if (options.operations === undefined) {
      const changed = applyShape(layout, next.shape, { nowMs: this.nowMs, base: next.base });
      if (changed === layout) return false;
      this.set({ isChanging: true });
      this.noteMerges(next);
      this.effects.push({ type: 'commit', expectedEpoch: layout.epoch, layout: changed });
      return true;
    }
    const { operations } = planOperations(layout, next.shape, options.operations, { base: next.base });
    const [operation] = operations;
    if (operation === undefined) {
      // At the end of a plan the layout as reached is what the cluster states (C22); a wish out of reach is over.
      this.set({ goal: undefined, wish: undefined, performing: undefined });
      return false;
    }
    // From here on the goal carries the wish.
    this.set({ isChanging: true, goal: next.shape, wish: undefined, performing: operation });
    this.noteMerges(next);
    this.effects.push({ type: 'perform', operation });
    return true;
  }

  private noteMerges({ removed }: NextShape): void {
    if (removed.segments.length > 0) this.set({ lastMergeAtMs: this.nowMs });
  }

  private noteLeftOut({ leftOut }: NextShape): void {
    for (const { cluster, leftOut: was } of this.s.peers.values()) {
      const is = leftOut.includes(cluster);
      if (is && !was) this.report({ type: 'leftOut', peer: cluster });
      if (is !== was) this.setPeer(cluster, { leftOut: is });
    }
  }

  private noteDivergence(): void {
    const shape = statedShape(this.s);
    for (const { cluster, state, divergedSinceMs } of this.s.peers.values()) {
      if (state === undefined) continue;
      const differs = !equalShapes(shape, state.shape);
      if (differs && divergedSinceMs === undefined) this.setPeer(cluster, { divergedSinceMs: this.nowMs });
      if (!differs && divergedSinceMs !== undefined) {
        this.setPeer(cluster, { divergedSinceMs: undefined, lastLagMs: this.nowMs - divergedSinceMs });
      }
    }
  }

  /** Marks fall for good, so that none comes back with its boundary: whoever made it has to make it again (C11). */
  private dropFallenMarks(): void {
    const shape = statedShape(this.s);
    const held = heldShape(this.s);
    const base = joinedBase(this.s);
    this.keepMarks((marks) => ({
      segments: standingMarks(marks, shape, base).marks.segments,
      buckets: standingMarks(marks, held, base).marks.buckets,
    }));
  }

  /**
   * Siblings are judged on the joined set (C10), of which a host that cannot make all boundaries has only a part: what
   * stays, and lies between no siblings there, is not cold.
   */
  private dropMarksBetweenNoSiblings({ shape, base }: NextShape): void {
    const staying = without(boundariesOf(shape), siblingBoundaries(shape, base));
    this.keepMarks((marks) => ({ ...marks, segments: without(marks.segments, staying) }));
  }

  private keepMarks(standing: (marks: ColdMarks) => ColdMarks): void {
    const { policyMarks, manualMarks } = this.s;
    if (policyMarks !== undefined) this.set({ policyMarks: standing(policyMarks) });
    if (manualMarks === NO_MARKS) return;
    const kept = standing(manualMarks);
    // A mark whose boundary is gone has taken effect; one whose boundary stands has fallen.
    const fallen = both(without(manualMarks.segments, kept.segments), boundariesOf(statedShape(this.s)));
    if (fallen.length > 0) this.report({ type: 'markDropped', boundaries: fallen });
    this.setManualMarks(kept);
  }

  private setManualMarks(marks: ColdMarks): void {
    this.set({ manualMarks: marks.segments.length + marks.buckets.length === 0 ? NO_MARKS : marks });
  }

  // --- layouts

  private seen(layout: Layout, reloaded: boolean): void {
    const isOther = reloaded ? layout.epoch !== this.s.layout.epoch : layout.epoch > this.s.layout.epoch;
    if (reloaded) {
      this.isAntiEntropy = true;
      for (const { cluster } of this.s.peers.values()) this.setPeer(cluster, { dirty: true });
    }
    if (!isOther) return;
    if (this.s.isChanging) return this.set({ seenLayout: layout });
    this.adopt(layout);
    this.settle();
  }

  /** The change that was asked for is made; a host without atomic changes may have let others in before it. */
  private committed(layout: Layout): void {
    const { seenLayout } = this.s;
    if (layout.epoch === this.s.layout.epoch + 1) this.set({ layout });
    else this.adopt(layout);
    this.set({ isChanging: false, changeAttempts: 0, changeRetryAtMs: undefined, seenLayout: undefined });
    // What was seen while the change was under way may be a commit that came after it.
    if (seenLayout !== undefined && seenLayout.epoch > layout.epoch) this.adopt(seenLayout);
    this.settle();
  }

  /** Takes a layout that somebody else made; a goal on the way takes over what they did (C22). */
  private adopt(layout: Layout): void {
    const { layout: before, options, performing } = this.s;
    if (options.operations === undefined) return this.set({ layout });
    // One whose epoch went back is no continuation: the topic was recreated, or restored.
    const isNext = layout.epoch >= before.epoch;
    const goal = isNext ? alteredGoal(statedShape(this.s), before, layout, performing) : goalShape(layout);
    this.set({ layout, goal });
  }

  private changeFailed(reason: string, layout: Layout, random: number): void {
    const isOther = layout.epoch !== this.s.layout.epoch;
    if (isOther) this.adopt(layout);
    this.set({ isChanging: false, seenLayout: undefined });
    if (isOther) return this.settle();
    const { retryInitialMs, retryMaxMs } = this.s.options;
    const wait = Math.ceil(random * Math.min(retryMaxMs, retryInitialMs * 2 ** this.s.changeAttempts));
    this.set({ changeAttempts: this.s.changeAttempts + 1, changeRetryAtMs: this.nowMs + wait });
    this.answerAll({ code: 'failed', message: `the layout could not be changed: ${reason}` });
  }

  // --- peers

  private pushed(requestId: number, from: string, state: PeerState): void {
    const { term } = this.s;
    const record = this.s.peers.get(from);
    if (record === undefined || state.cluster !== from) {
      return this.refuseStranger(requestId, from);
    }
    if (term !== undefined && state.receiverTerm !== term) {
      // Not folded, not remembered, not counted as heard: it may undo a merge that its sender has not heard of (C18).
      const message = `the push names term ${show(state.receiverTerm)}; the leader's is ${term}`;
      this.answer(requestId, from, { code: 'wrongTerm', message });
      return;
    }
    this.setPeer(from, { unsupported: false });
    // It can be reached again, so a push that waits for that need not wait longer.
    if (!record.refused) this.setPeer(from, { attempts: 0, retryAtMs: undefined });
    this.learn(record.cluster, state);
    // A repeated push waits as the first one does: an answer says that the fold is committed (C15).
    this.set({ waiting: [...this.s.waiting, { requestId, peer: from }] });
    this.settle();
  }

  private refuseStranger(requestId: number, cluster: string): void {
    const message = `${show(cluster)} is not in the replication set of this topic`;
    this.effects.push({ type: 'answer', requestId, result: { error: { code: 'notMember', message } } });
  }

  /** Keeps a peer's state if it is newer; true when it is. */
  private learn(cluster: string, state: PeerState): boolean {
    const record = this.s.peers.get(cluster);
    if (record === undefined) return false;
    if (!isNewer(state, record.state)) {
      const wentBack = state.epoch < (record.state?.epoch ?? 0);
      if (wentBack && !record.wentBack) this.report({ type: 'wentBack', peer: cluster, epoch: state.epoch });
      this.setPeer(cluster, { heardAtMs: this.nowMs, wentBack });
      return false;
    }
    this.setPeer(cluster, {
      state: withWhatStays(state, record.state),
      heardAtMs: this.nowMs,
      unsupported: false,
      wentBack: false,
    });
    // A newer state of a lower epoch is that of a topic recreated or restored, which has acknowledged nothing (C14).
    if (state.epoch < (record.state?.epoch ?? 0)) this.setPeer(cluster, { ackedEpoch: undefined, dirty: true });
    return true;
  }

  private answered(peer: string, pushId: number, result: Omit<ExchangeResult, 'topic'>, random: number): void {
    const record = this.s.peers.get(peer);
    if (record?.inFlight?.pushId !== pushId) return;
    const { inFlight } = record;
    this.setPeer(peer, { inFlight: undefined, unsupported: false, refused: result.error !== undefined });
    const learnt = result.state !== undefined && result.state.cluster === peer && this.learn(peer, result.state);
    if (result.error === undefined) {
      this.setPeer(peer, { ackedEpoch: inFlight.epoch, attempts: 0, retryAtMs: undefined, lastError: undefined });
    } else {
      this.setPeer(peer, { dirty: true, lastError: `${result.error.code}: ${result.error.message}` });
      // The answer has told the term to name, so the next push goes at once; only one that fails again waits.
      if (result.error.code === 'wrongTerm' && record.attempts === 0) this.setPeer(peer, { attempts: 1 });
      else this.retryLater(peer, random);
    }
    if (learnt || record.unsupported) this.settle();
  }

  private pushFailed(event: Extract<ControllerEvent, { type: 'pushFailed' }>): void {
    const { peer, pushId, reason, unsupported, random } = event;
    const record = this.s.peers.get(peer);
    if (record?.inFlight?.pushId !== pushId) return;
    this.setPeer(peer, { inFlight: undefined, dirty: true, refused: false, lastError: reason });
    if (!unsupported && !record.unsupported) return this.retryLater(peer, random);
    // Asked again on the anti-entropy timer; until then it counts neither as unheard nor by its caps (C19).
    this.setPeer(peer, { unsupported: true, dirty: false, attempts: 0, retryAtMs: undefined });
    if (!record.unsupported) this.settle();
  }

  /** Exponential backoff with full jitter (C16). */
  private retryLater(peer: string, random: number): void {
    const { retryInitialMs, retryMaxMs } = this.s.options;
    const attempts = (this.s.peers.get(peer)?.attempts ?? 0) + 1;
    const wait = Math.ceil(random * Math.min(retryMaxMs, retryInitialMs * 2 ** (attempts - 1)));
    this.setPeer(peer, { attempts, retryAtMs: this.nowMs + wait });
  }

  /** Pushes to a peer that has something to hear and is not being told already. */
  private push(cluster: string): void {
    const record = this.s.peers.get(cluster);
    if (record === undefined || !record.dirty || record.inFlight !== undefined) return;
    if (record.unsupported && !this.isAntiEntropy) return;
    if (record.retryAtMs !== undefined && record.retryAtMs > this.nowMs) return;
    const pushId = this.s.nextPushId;
    const state = this.ownState(cluster);
    this.set({ nextPushId: pushId + 1 });
    this.setPeer(cluster, { dirty: false, retryAtMs: undefined, inFlight: { pushId, epoch: state.epoch } });
    this.effects.push({ type: 'push', peer: cluster, pushId, state });
  }

  private ownState(receiver: string): PeerState {
    this.set({ revision: this.s.revision + 1 });
    const { options, term, layout, revision } = this.s;
    const base = joinedBase(this.s);
    const coldMarks = statedMarks(this.s);
    const receiverTerm = this.s.peers.get(receiver)?.state?.term;
    return {
      cluster: options.cluster,
      ...(term === undefined ? {} : { term }),
      epoch: layout.epoch,
      revision,
      shape: statedShape(this.s),
      ...(base.length === 0 ? {} : { base }),
      ...(coldMarks === undefined ? {} : { coldMarks }),
      caps: options.caps,
      ...(options.operations?.unequalBuckets === false ? { equalWidth: true } : {}),
      protocolVersion: PROTOCOL_VERSION,
      sentAtMs: this.nowMs,
      ...(receiverTerm === undefined ? {} : { receiverTerm }),
    };
  }

  private answer(requestId: number, peer: string, error?: ExchangeResult['error']): void {
    const state = this.ownState(peer);
    this.effects.push({ type: 'answer', requestId, result: error === undefined ? { state } : { state, error } });
  }

  private answerAll(error?: ExchangeResult['error']): void {
    const { waiting } = this.s;
    this.set({ waiting: [] });
    for (const { requestId, peer } of waiting) {
      const leftOut = this.s.peers.get(peer)?.leftOut === true;
      const limit = { code: 'foldLimit' as const, message: 'the boundaries of this state do not fit the fold limit' };
      this.answer(requestId, peer, error ?? (leftOut ? limit : undefined));
    }
  }

  private changeMembers(members: readonly string[]): void {
    const { peers } = this.s;
    const kept = members.map((cluster) => [cluster, peers.get(cluster) ?? newRecord(cluster, this.nowMs)] as const);
    const { waiting } = this.s;
    for (const { requestId, peer } of waiting) if (!members.includes(peer)) this.refuseStranger(requestId, peer);
    this.set({ peers: new Map(kept), waiting: waiting.filter(({ peer }) => members.includes(peer)) });
    this.settle();
  }

  // --- the local policy and the operator

  private decided({ action, coldMarks }: PolicyDecision): void {
    this.set({ policyMarks: coldMarks });
    if (action !== undefined) this.act(action);
    this.settle();
  }

  /** Takes up a policy's action, if the caps and the silence of peers allow it now. */
  private act(action: NonNullable<PolicyDecision['action']>): void {
    const { layout, options, peers, isChanging, goal, wish: asked } = this.s;
    // The policy decides again on the layout as it then is.
    if (isChanging || goal !== undefined || asked !== undefined) return;
    const silent = unheardPeers(this.s).filter(
      (cluster) => this.nowMs < (peers.get(cluster)?.sinceMs ?? 0) + options.peerSilenceGraceMs,
    );
    if (silent.length > 0) return this.report({ type: 'deferred', action: action.type, unheard: silent });
    const before = shapeOf(layout);
    const wish = wishOf(layout, action);
    const after = withAdded(before, wish);
    if (after === before) return;
    const { caps } = effectiveCaps(options.caps, heardStates(this.s));
    const isBeyond =
      action.type === 'split' ? after.cells.length > caps.maxSegments : isBeyondBuckets(before, after, caps);
    if (isBeyond) return this.report({ type: 'capped', action: action.type });
    this.set(action.type === 'split' ? { lastSplitAtMs: this.nowMs } : { lastRebucketAtMs: this.nowMs });
    this.set({ wish });
  }

  private operate(operation: ManualOperation): void {
    const { layout, manualMarks } = this.s;
    const shape = statedShape(this.s);
    switch (operation.type) {
      case 'split': {
        const { segmentId, at } = operation;
        // Refuses what is no active segment, and what does not lie inside it.
        splitSegment(layout, segmentId, { nowMs: this.nowMs, ...(at === undefined ? {} : { at }) });
        this.set({ lastSplitAtMs: this.nowMs });
        return this.ask(splitWish(layout.segments.get(segmentId) as Segment, at));
      }
      case 'merge': {
        const { boundary } = operation;
        if (!siblingBoundaries(shape, joinedBase(this.s)).includes(boundary)) {
          throw new IsthmusError(
            'invalidOperation',
            `${show(boundary)} is no boundary between siblings: only those merge`,
          );
        }
        const segments = unionBoundaries(manualMarks.segments, [boundary]);
        this.set({ manualMarks: { ...manualMarks, segments } });
        return this.settle();
      }
      case 'rebucket':
        return this.rebucket(operation.segmentId, operation.splits);
      case 'withdraw': {
        this.setManualMarks(
          'boundary' in operation
            ? { ...manualMarks, segments: without(manualMarks.segments, [operation.boundary]) }
            : { ...manualMarks, buckets: manualMarks.buckets.filter(({ range }) => !overlaps(range, operation.range)) },
        );
        return this.settle();
      }
    }
  }

  /** What is new in the list is asked for, what is missing from it is marked, what it names is no longer (C12). */
  private rebucket(segmentId: number, splits: readonly number[]): void {
    const { layout, manualMarks } = this.s;
    const shape = statedShape(this.s);
    const segment = layout.segments.get(segmentId);
    const range = segment?.range ?? FULL_RANGE;
    const wish = { segments: [], buckets: [{ range, boundaries: splits }] };
    const isListed = segment?.state === 'active' && equalBoundaries(segment.entryBucketSplits, splits);
    const held = heldShape(this.s);
    const marks = isListed ? marksDownTo(manualMarks, held, range, splits) : undefined;
    if (marks === undefined || (equalMarks(marks, manualMarks) && withAdded(shape, wish) === shape)) {
      // Refuses what is no active segment, no list of boundaries, or no change.
      rebucketSegment(layout, segmentId, splits, { nowMs: this.nowMs });
    }
    this.setManualMarks(marks ?? marksDownTo(manualMarks, held, range, splits));
    this.set({ lastRebucketAtMs: this.nowMs });
    this.ask(wish);
  }

  /** What the operator asks for is kept until the layout has it, whatever is under way or fails meanwhile. */
  private ask(wish: ShapeDifference): void {
    const { segments, buckets } = this.s.wish ?? { segments: [], buckets: [] };
    const joined = { segments: unionBoundaries(segments, wish.segments), buckets: [...buckets, ...wish.buckets] };
    this.set({ wish: joined, changeRetryAtMs: undefined });
    this.settle();
  }

  // --- time

  private tick(): void {
    const { antiEntropyAtMs, options, changeRetryAtMs } = this.s;
    // The timer has fired, perhaps a little early: whatever is still to come needs a new one.
    this.set({ wakeAtMs: undefined });
    if (antiEntropyAtMs <= this.nowMs) {
      this.set({ antiEntropyAtMs: this.nowMs + options.antiEntropyMs });
      // Another leader's commit may be unseen, so the layout is read before it is told (C16).
      this.effects.push({ type: 'reload' });
    }
    if (changeRetryAtMs !== undefined && changeRetryAtMs <= this.nowMs) {
      this.set({ changeRetryAtMs: undefined });
      this.settle();
    }
  }

  private nextWake(): number {
    const { antiEntropyAtMs, changeRetryAtMs, peers } = this.s;
    let next = Math.min(antiEntropyAtMs, changeRetryAtMs ?? antiEntropyAtMs);
    for (const { retryAtMs } of peers.values()) next = Math.min(next, retryAtMs ?? next);
    return next;
  }

  // --- the state

  private set(change: { [K in keyof ControllerState]?: ControllerState[K] | undefined }): void {
    this.s = updated(this.s, change);
  }

  private setPeer(cluster: string, change: { [K in keyof PeerRecord]?: PeerRecord[K] | undefined }): void {
    const record = this.s.peers.get(cluster);
    if (record === undefined) return;
    this.s = { ...this.s, peers: new Map(this.s.peers).set(cluster, updated(record, change)) };
  }

  private report(report: ControllerReport): void {
    this.effects.push({ type: 'report', report });
  }
}

/** A peer's newer state, with what it does not take back of the one before by not stating it. */
function withWhatStays(state: PeerState, before: PeerState | undefined): PeerState {
  if (before === undefined) return state;
  // Bases are stated onwards: if one could shrink again, two clusters that hear of each other's would pass a boundary
  // that neither has to and fro for ever (C10).
  const base = unionBoundaries(before.base ?? [], state.base ?? []);
  const withBase = base.length === 0 ? state : { ...state, base };
  // A leader that has not evaluated its policy yet takes no mark back (C18).
  if (state.coldMarks !== undefined || before.coldMarks === undefined) return withBase;
  return { ...withBase, coldMarks: standingMarks(before.coldMarks, state.shape, base).marks };
}
