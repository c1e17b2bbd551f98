/**
 * The driver of the layout controller: runs the machine of the convergence room against the ports of one topic. It
 * turns effects into calls and what comes of them into events, keeps the timer, and evaluates the local policy.
 */
import {
  type ControllerEffect,
  type ControllerEvent,
  type ControllerOptions,
  type ControllerReport,
  type ControllerState,
  type ControllerStatus,
  controllerStatus,
  type ExchangeResult,
  effectiveCaps,
  heardStates,
  joinedBase,
  type LocalPolicy,
  type ManualOperation,
  NO_MARKS,
  type PeerState,
  startController,
  stepController,
} from '../convergence/index.js';
import { IsthmusError, messageOf, show } from '../errors.js';
import type { Layout } from '../layout/index.js';
import type { Clock, LayoutHost, LoadSource, PeerChannel, Random } from '../ports/index.js';
import { systemClock } from './clock.js';
import { EventStream } from './events.js';
import { commitLayout, healSegments } from './layout-change.js';

/** What a controller runs on. */
export interface LayoutControllerPorts {
  readonly host: LayoutHost;
  readonly channel: PeerChannel;
  /** The local policy with what it decides on; without it the controller only follows its peers and its operator. */
  readonly policy?: { readonly policy: LocalPolicy; readonly loads: LoadSource } | undefined;
  /** Default: the clock of this process. */
  readonly clock?: Clock;
  /** Default: `Math.random`. */
  readonly random?: Random;
}

/** How a controller is set up. */
export interface LayoutControllerOptions extends Omit<ControllerOptions, 'operations'> {
  /** The topic's name, the same on every cluster. */
  readonly topic: string;
  /** The clusters of the replication set, the own one included or not. */
  readonly members: readonly string[];
  /** This leader's election term (C14). */
  readonly term?: number;
  /** How often the policy is evaluated, in milliseconds; default 60,000. */
  readonly policyIntervalMs?: number;
  /** How long a layout change may be tried again after the store could not be reached, in milliseconds; default 1,000. */
  readonly retryDelayMs?: number;
}

/** Something that an operator or a host may want to know at once. */
export type LayoutControllerEvent =
  /** The layout has changed, here or by somebody else. */
  | { readonly type: 'layout'; readonly layout: Layout }
  | { readonly type: 'report'; readonly report: ControllerReport }
  /** A port failed in a way that its contract does not allow; the controller goes on. */
  | { readonly type: 'failed'; readonly error: unknown };

/** Pushes to one peer since the controller was made. */
export interface ExchangeCounts {
  readonly succeeded: number;
  readonly failed: number;
}

/** The running controller of one topic. Iterating it gives the events from then on. */
export interface LayoutController extends AsyncIterable<LayoutControllerEvent> {
  readonly topic: string;
  /** Loads the layout, heals what a crash has left, and tells every peer. */
  start(): Promise<void>;
  /** Ends the exchange; a change under way is finished first. */
  stop(): Promise<void>;
  /** Undefined before the layout has been loaded. */
  status(): ControllerStatus | undefined;
  /** How many pushes to each peer were answered, and how many failed. */
  exchanges(): ReadonlyMap<string, ExchangeCounts>;
  /** Answers a peer's push, once what it leads to is committed (C15). `from` is the cluster that was authenticated. */
  receive(from: string, state: PeerState): Promise<ExchangeResult>;
  /** An operator's change (C12). Throws `invalidOperation` or `invalidArgument`, and then nothing has changed. */
  operate(operation: ManualOperation): void;
  /** Replaces the replication set (C19). */
  changeMembers(members: readonly string[]): void;
  /** Evaluates the policy now, rather than at the next interval. */
  evaluatePolicy(): Promise<void>;
}

/** A controller for one topic. It does nothing until it is started. */
export function createLayoutController(
  ports: LayoutControllerPorts,
  options: LayoutControllerOptions,
): LayoutController {
  return new TopicController(ports, options);
}

class TopicController implements LayoutController {
  private state: ControllerState | undefined;
  private readonly clock: Clock;
  private readonly random: Random;
  private readonly events = new EventStream<LayoutControllerEvent>();
  private readonly stopping = new AbortController();
  private readonly tasks = new Set<Promise<void>>();
  private readonly requests = new Map<number, (result: Omit<ExchangeResult, 'topic'>) => void>();
  private nextRequestId = 1;
  private readonly exchangeCounts = new Map<string, ExchangeCounts>();
  private timer: AbortController | undefined;
  private members: readonly string[];

  constructor(
    private readonly ports: LayoutControllerPorts,
    private readonly options: LayoutControllerOptions,
  ) {
    this.clock = ports.clock ?? systemClock;
    this.random = ports.random ?? { next: Math.random };
    this.members = options.members;
  }

  get topic(): string {
    return this.options.topic;
  }

  async start(): Promise<void> {
    const { host } = this.ports;
    const { signal } = this.stopping;
    const layout = await this.retrying(() => this.load(true));
    const { topic: _, members: __, term, policyIntervalMs: ___, retryDelayMs: ____, ...options } = this.options;
    const step = startController({
      options: host.segments.supports.atomicLayoutChange ? options : { ...options, operations: host.segments.supports },
      term,
      layout,
      members: this.otherMembers(),
      nowMs: this.clock.now(),
    });
    this.state = step.state;
    this.perform(step.effects);
    this.run(this.watch(signal));
    if (this.ports.policy === undefined) {
      // A host without a policy states that nothing is cold: it would hold its peers' marks up otherwise (C18).
      this.dispatch({ type: 'policy', decision: { coldMarks: NO_MARKS }, nowMs: this.clock.now() });
    } else {
      this.run(this.evaluateRegularly(signal));
    }
  }

  async stop(): Promise<void> {
    this.stopping.abort();
    this.timer?.abort();
    while (this.tasks.size > 0) await Promise.all(this.tasks);
    for (const [requestId, resolve] of this.requests) {
      this.requests.delete(requestId);
      resolve({ error: { code: 'notLeader', message: 'the controller of this topic has been stopped' } });
    }
    this.events.close();
  }

  status(): ControllerStatus | undefined {
    return this.state === undefined ? undefined : controllerStatus(this.state, this.clock.now());
  }

  exchanges(): ReadonlyMap<string, ExchangeCounts> {
    return new Map(this.exchangeCounts);
  }

  private countExchange(peer: string, hasSucceeded: boolean): void {
    const { succeeded, failed } = this.exchangeCounts.get(peer) ?? { succeeded: 0, failed: 0 };
    const [success, failure] = hasSucceeded ? [1, 0] : [0, 1];
    this.exchangeCounts.set(peer, { succeeded: succeeded + success, failed: failed + failure });
  }

  async receive(from: string, state: PeerState): Promise<ExchangeResult> {
    if (this.state === undefined || this.stopping.signal.aborted) {
      return { topic: this.topic, error: { code: 'notLeader', message: 'this topic is not led here now' } };
    }
    const requestId = this.nextRequestId++;
    const result = await new Promise<Omit<ExchangeResult, 'topic'>>((resolve) => {
      this.requests.set(requestId, resolve);
      this.dispatch({ type: 'pushed', requestId, from, state, nowMs: this.clock.now() });
    });
    return { topic: this.topic, ...result };
  }

  operate(operation: ManualOperation): void {
    if (this.state === undefined) {
      throw new IsthmusError('invalidOperation', `the controller of ${show(this.topic)} has not been started`);
    }
    this.dispatch({ type: 'manual', operation, nowMs: this.clock.now() });
  }

  changeMembers(members: readonly string[]): void {
    this.members = members;
    this.dispatch({ type: 'members', members: this.otherMembers(), nowMs: this.clock.now() });
  }

  async evaluatePolicy(): Promise<void> {
    const { policy } = this.ports;
    if (policy === undefined || this.state === undefined) return;
    const { loads, consumers } = await policy.loads.read();
    const { state } = this;
    const nowMs = this.clock.now();
    const { lastSplitAtMs, lastMergeAtMs, lastRebucketAtMs } = state;
    const decision = policy.policy.decide({
      layout: { ...state.layout, base: joinedBase(state) },
      loads,
      consumers,
      caps: effectiveCaps(state.options.caps, heardStates(state)).caps,
      nowMs,
      ...(state.policyMarks === undefined ? {} : { standingMarks: state.policyMarks }),
      lastSplitAtMs,
      lastMergeAtMs,
      lastRebucketAtMs,
    });
    this.dispatch({ type: 'policy', decision, nowMs });
  }

  [Symbol.asyncIterator](): AsyncIterator<LayoutControllerEvent> {
    return this.events.read();
  }

  private otherMembers(): string[] {
    return this.members.filter((cluster) => cluster !== this.options.cluster);
  }

  /** The stored layout; on a host that isthmus writes, after what a crash has left half done is put right. */
  private async load(removeOrphans = false): Promise<Layout> {
    const { host } = this.ports;
    if (!isAtomic(host)) return host.store.load();
    return healSegments(host.store, host.segments, { nowMs: this.clock.now(), removeOrphans });
  }

  private dispatch(event: ControllerEvent): void {
    if (this.state === undefined) return;
    const before = this.state.layout;
    const { state, effects } = stepController(this.state, event);
    this.state = state;
    if (state.layout !== before) this.events.emit({ type: 'layout', layout: state.layout });
    this.perform(effects);
  }

  private perform(effects: readonly ControllerEffect[]): void {
    for (const effect of effects) {
      switch (effect.type) {
        case 'commit':
          this.run(this.commit(effect.expectedEpoch, effect.layout));
          break;
        case 'perform':
          this.run(this.operateHost(effect));
          break;
        case 'push':
          this.run(this.push(effect));
          break;
        case 'answer':
          this.requests.get(effect.requestId)?.(effect.result);
          this.requests.delete(effect.requestId);
          break;
        case 'reload':
          this.run(this.reload());
          break;
        case 'wake':
          this.arm(effect.atMs);
          break;
        case 'report':
          this.events.emit({ type: 'report', report: effect.report });
          break;
      }
    }
  }

  private async commit(expectedEpoch: number, layout: Layout): Promise<void> {
    const { host } = this.ports;
    if (!isAtomic(host)) throw new Error('a commit was asked of a host that performs operations');
    const result = await settled(() => commitLayout(host.store, host.segments, expectedEpoch, layout));
    if (result.type === 'committed') {
      return this.dispatch({ type: 'committed', layout, nowMs: this.clock.now() });
    }
    // Not even whether the commit went through is known until the layout has been read again.
    const now = await this.retrying(() => this.load());
    const nowMs = this.clock.now();
    if (result.type === 'conflict') this.dispatch({ type: 'conflict', layout: now, nowMs });
    else {
      const random = this.random.next();
      this.dispatch({ type: 'changeFailed', reason: result.reason, layout: now, nowMs, random });
    }
  }

  private async operateHost({ operation }: Extract<ControllerEffect, { type: 'perform' }>): Promise<void> {
    const { host } = this.ports;
    if (isAtomic(host)) throw new Error('an operation was asked of a host that commits layouts');
    const result = await settled(() => host.segments.perform(operation));
    if (result.type === 'performed') {
      return this.dispatch({ type: 'committed', layout: result.layout, nowMs: this.clock.now() });
    }
    const layout = await this.retrying(() => this.load());
    const random = this.random.next();
    this.dispatch({ type: 'changeFailed', reason: result.reason, layout, nowMs: this.clock.now(), random });
  }

  private async push({ peer, pushId, state }: Extract<ControllerEffect, { type: 'push' }>): Promise<void> {
    const { channel } = this.ports;
    const { signal } = this.stopping;
    const reply = await settled(() => channel.exchange(peer, [{ topic: this.topic, state }], signal));
    const nowMs = this.clock.now();
    const random = this.random.next();
    const [result] = reply.type === 'answered' ? reply.results : [];
    const isAnswer = result !== undefined && result.topic === this.topic;
    this.countExchange(peer, isAnswer && result.error === undefined);
    if (reply.type !== 'answered') {
      const unsupported = reply.type === 'unsupported';
      return this.dispatch({ type: 'pushFailed', peer, pushId, reason: reply.reason, unsupported, nowMs, random });
    }
    if (!isAnswer) {
      const reason = 'the answer holds no result for the topic';
      return this.dispatch({ type: 'pushFailed', peer, pushId, reason, unsupported: false, nowMs, random });
    }
    this.dispatch({ type: 'answered', peer, pushId, result, nowMs, random });
  }

  private async reload(): Promise<void> {
    let before: number | undefined;
    let layout: Layout;
    do {
      before = this.state?.layout.epoch;
      layout = await this.retrying(() => this.ports.host.store.load());
      // What was read before a commit and comes after it is older than what is known, not another topic.
    } while (this.state !== undefined && this.state.layout.epoch !== before && layout.epoch < this.state.layout.epoch);
    this.dispatch({ type: 'layout', layout, nowMs: this.clock.now(), reloaded: true });
  }

  private async watch(signal: AbortSignal): Promise<void> {
    for await (const layout of this.ports.host.store.watch(signal)) {
      this.dispatch({ type: 'layout', layout, nowMs: this.clock.now() });
    }
  }

  private async evaluateRegularly(signal: AbortSignal): Promise<void> {
    const { policyIntervalMs = 60_000 } = this.options;
    while (!signal.aborted) {
      try {
        await this.evaluatePolicy();
      } catch (error) {
        // Loads that cannot be read are no loads: nothing is decided on them.
        this.events.emit({ type: 'failed', error });
      }
      await this.clock.sleep(policyIntervalMs, signal);
    }
  }

  private arm(atMs: number): void {
    this.timer?.abort();
    const timer = new AbortController();
    this.timer = timer;
    if (this.stopping.signal.aborted) return;
    this.run(
      this.clock.sleep(Math.max(0, atMs - this.clock.now()), timer.signal).then(
        () => this.dispatch({ type: 'tick', nowMs: this.clock.now() }),
        () => undefined,
      ),
    );
  }

  /** Asks until a store that cannot be reached answers, or the controller is stopped. */
  private async retrying<T>(ask: () => Promise<T>): Promise<T> {
    for (;;) {
      try {
        return await ask();
      } catch (error) {
        this.stopping.signal.throwIfAborted();
        this.events.emit({ type: 'failed', error });
        await this.clock.sleep(this.options.retryDelayMs ?? 1000, this.stopping.signal);
      }
    }
  }

  private run(task: Promise<void>): void {
    const guarded = task
      .catch((error: unknown) => {
        if (!this.stopping.signal.aborted) this.events.emit({ type: 'failed', error });
      })
      .finally(() => this.tasks.delete(guarded));
    this.tasks.add(guarded);
  }
}

function isAtomic(
  host: LayoutHost,
): host is Extract<LayoutHost, { segments: { supports: { atomicLayoutChange: true } } }> {
  return host.segments.supports.atomicLayoutChange;
}

/** A rejection as a failure with a reason: the machine tries it again. */
async function settled<T>(ask: () => Promise<T>): Promise<T | { readonly type: 'failed'; readonly reason: string }> {
  try {
    return await ask();
  } catch (error) {
    return { type: 'failed', reason: messageOf(error) };
  }
}
