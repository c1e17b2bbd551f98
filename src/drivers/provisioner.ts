/**
 * The provisioner of one topic towards one remote: runs the machine of the provisioning room over the administration of
 * both clusters, and keeps a replicator running just as long as the machine says that the topic is there. Before every
 * producer the replicator asks for a permit, which is a fresh look: a producer can create what it writes to.
 */
import { Notifier } from '../notifier.js';
import type { Clock, Random, TopicAdmin, TopicName } from '../ports/index.js';
import {
  type Creation,
  PROVISIONING_REASONS,
  type ProvisioningChange,
  type ProvisioningCounters,
  type ProvisioningDecision,
  type ProvisioningEffect,
  type ProvisioningEvent,
  type ProvisioningOptions,
  type ProvisioningPhase,
  type ProvisioningState,
  phaseOf,
  type ReplicationScope,
  startProvisioning,
  stepProvisioning,
} from '../provisioning/index.js';
import { newCounters, type SegmentWait } from '../replication/index.js';
import { systemClock } from './clock.js';
import { answerOf, ClusterAdmin, type ConnectAdmin, performCreation } from './cluster-admin.js';
import { EventStream } from './events.js';
import type { ProducerPermit, ProvisionedReplicator, ProvisionedRun } from './provisioned-run.js';
import type { ReplicatorStatus } from './replicator.js';
import { Timer } from './timer.js';

/** What a provisioner runs on. */
export interface ProvisionerPorts {
  /** The source cluster: only looked at. */
  readonly local: ConnectAdmin<Pick<TopicAdmin, 'lookUps'>>;
  readonly remote: ConnectAdmin<TopicAdmin>;
  /** A new replicator; it is started and stopped once. */
  readonly replicator: (run: ProvisionedRun) => ProvisionedReplicator;
  /** Default: the clock of this process. */
  readonly clock?: Clock;
  /** Default: `Math.random`. */
  readonly random?: Random;
}

export interface ProvisionerOptions extends ProvisioningOptions {
  readonly topic: TopicName;
  /** The remote cluster's name. */
  readonly cluster: string;
  /** How long one look, or one creating call, may take in milliseconds; default 30,000. */
  readonly callLimitMs?: number;
}

/**
 * The status of the replicator, so that a provisioner can stand in its place. While none runs, `failure` says
 * `notProvisioned` with the reason, and the rest is that of the one before, if any.
 */
export interface ProvisionerStatus extends ReplicatorStatus {
  readonly provisioning: {
    readonly phase: ProvisioningPhase;
    /** Absent before the first look. */
    readonly decision?: ProvisioningDecision;
    /** What an operator can do about the decision, while nothing is replicated. */
    readonly remedy?: string;
    /** What replication as a whole waits for, while nothing is replicated. */
    readonly waitingFor?: SegmentWait;
    readonly counters: ProvisioningCounters;
  };
}

export type ProvisionerEvent =
  /** Once for each change of what is known or done: a line for the log. */
  | { readonly type: 'changed'; readonly change: ProvisioningChange }
  /** A creating call has ended, as the remote says; what came of it is read afterwards. */
  | { readonly type: 'created'; readonly creation: Creation; readonly answer: string }
  /** The replicator could not be made, started or stopped. */
  | { readonly type: 'failed'; readonly error: unknown };

/** A running provisioner. Iterating it gives the events from then on. */
export interface Provisioner extends AsyncIterable<ProvisionerEvent> {
  start(): void;
  /** Stops the replicator and looks no more. A creating call under way is cancelled; what came of it is not known. */
  stop(): Promise<void>;
  status(): ProvisionerStatus;
  /** To be told when an operator has expanded the local topic (update-partitioned-topic). */
  partitionsUpdated(): void;
}

/** A provisioner for one topic and one remote. It does nothing until it is started, and is started once. Throws `invalidArgument`. */
export function createProvisioner(ports: ProvisionerPorts, options: ProvisionerOptions): Provisioner {
  return new TopicProvisioner(ports, options);
}

class TopicProvisioner implements Provisioner {
  private state: ProvisioningState;
  private readonly firstEffects: readonly ProvisioningEffect[];
  private readonly local: ClusterAdmin<Pick<TopicAdmin, 'lookUps'>>;
  private readonly remote: ClusterAdmin<TopicAdmin>;
  private readonly clock: Clock;
  private readonly random: Random;
  private readonly timer: Timer;
  private readonly events = new EventStream<ProvisionerEvent>();
  private readonly decided = new Notifier();
  private readonly stopping = new AbortController();
  private readonly tasks = new Set<Promise<void>>();
  private readonly queue: ProvisioningEvent[] = [];
  private isStepping = false;
  private isStarted = false;
  private current: ProvisionedRun | undefined;
  /** The one that runs, or ran last. */
  private replicator: ProvisionedReplicator | undefined;

  constructor(
    private readonly ports: ProvisionerPorts,
    private readonly options: ProvisionerOptions,
  ) {
    const { clock = systemClock, random = { next: Math.random } } = ports;
    const { callLimitMs = 30_000 } = options;
    this.clock = clock;
    this.random = random;
    this.local = new ClusterAdmin(ports.local, clock, callLimitMs);
    this.remote = new ClusterAdmin(ports.remote, clock, callLimitMs);
    this.timer = new Timer(clock, () => this.dispatch({ type: 'tick' }));
    const { state, effects } = startProvisioning(options);
    this.state = state;
    this.firstEffects = effects;
  }

  start(): void {
    if (this.isStarted) return;
    this.isStarted = true;
    this.perform(this.firstEffects);
  }

  async stop(): Promise<void> {
    this.isStarted = true;
    this.dispatch({ type: 'end' });
    this.timer.clear();
    this.stopping.abort();
    while (this.tasks.size > 0) await Promise.all(this.tasks);
    this.events.close();
  }

  partitionsUpdated(): void {
    if (this.isStarted) this.dispatch({ type: 'updated' });
  }

  status(): ProvisionerStatus {
    const { decision, replicator, counters, hasEnded } = this.state;
    const none = { remote: this.options.cluster, segments: [], counters: newCounters(), pinnedSegments: [] };
    const last: ReplicatorStatus = this.replicator?.status() ?? { ...none, state: 'idle' };
    const isAbsent = replicator.type !== 'running';
    const message = isAbsent && decision !== undefined ? wordsOf(decision) : undefined;
    return {
      ...last,
      ...(isAbsent ? { state: hasEnded ? 'stopped' : 'idle' } : {}),
      ...(message === undefined ? {} : { failure: `notProvisioned: ${message}` }),
      provisioning: {
        phase: phaseOf(this.state),
        ...(decision === undefined ? {} : { decision }),
        ...(message === undefined || decision === undefined
          ? {}
          : {
              remedy: PROVISIONING_REASONS[decision.reason],
              waitingFor: { for: 'operator', reason: 'notProvisioned', message },
            }),
        counters,
      },
    };
  }

  [Symbol.asyncIterator](): AsyncIterator<ProvisionerEvent> {
    return this.events.read();
  }

  /** One event after the other, those that effects bring about included: a later `wake` must not come before an earlier one. */
  private dispatch(event: ProvisioningEvent): void {
    this.queue.push(event);
    if (this.isStepping) return;
    this.isStepping = true;
    for (let next = this.queue.shift(); next !== undefined; next = this.queue.shift()) {
      const { state, effects } = stepProvisioning(this.state, next);
      this.state = state;
      this.perform(effects);
    }
    this.isStepping = false;
    this.decided.wake();
  }

  private perform(effects: readonly ProvisioningEffect[]): void {
    for (const effect of effects) {
      switch (effect.type) {
        case 'look':
          this.run(this.look(effect.lookId));
          break;
        case 'create':
          this.run(this.create(effect.creation));
          break;
        case 'start':
          this.begin(effect.scope);
          break;
        case 'stop':
          this.run(this.rest());
          break;
        case 'wake':
          this.timer.set(effect.atMs);
          break;
        case 'log':
          this.events.emit({ type: 'changed', change: effect.change });
          break;
      }
    }
  }

  private async look(lookId: number): Promise<void> {
    const { topic } = this.options;
    const { signal } = this.stopping;
    const [local, remote] = await Promise.all([this.local.shape(topic, signal), this.remote.shape(topic, signal)]);
    this.dispatch({ type: 'looked', lookId, local, remote, ...this.drawn() });
  }

  private async create(creation: Creation): Promise<void> {
    const answer = await this.remote.use(
      this.stopping.signal,
      async (admin, signal) => {
        return answerOf(await performCreation(admin, this.options.topic, creation, signal));
      },
      ({ failure, reason }) => `${failure}: ${reason}`,
    );
    this.events.emit({ type: 'created', creation, answer });
    this.dispatch({ type: 'created' });
  }

  private begin(scope: ReplicationScope): void {
    const run: ProvisionedRun = {
      scope,
      permit: (partition) => this.permit(run, partition),
      // What a replicator tells that was stopped is not told of the one that runs now.
      lost: () => {
        if (this.isCurrent(run)) this.dispatch({ type: 'lost' });
      },
    };
    this.current = run;
    try {
      this.replicator = this.ports.replicator(run);
      this.replicator.start();
    } catch (error) {
      this.events.emit({ type: 'failed', error });
      this.dispatch({ type: 'stopped', ...this.drawn() });
    }
  }

  private isCurrent(run: ProvisionedRun): boolean {
    return this.current === run && this.state.replicator.type === 'running';
  }

  private async rest(): Promise<void> {
    try {
      await this.replicator?.stop();
    } catch (error) {
      this.events.emit({ type: 'failed', error });
    }
    this.dispatch({ type: 'stopped', ...this.drawn() });
  }

  private async permit(run: ProvisionedRun, partition: number | undefined): Promise<ProducerPermit> {
    const neededLookId = this.state.lookId + 1;
    this.dispatch({ type: 'ask' });
    while (this.isCurrent(run) && this.state.decidedLookId < neededLookId) {
      // Only the end of the provisioner aborts, and then the run is not the current one either.
      await this.decided.changed(this.stopping.signal).catch(() => undefined);
    }
    const { decision } = this.state;
    if (decision?.type !== 'replicate') return refuse(decision === undefined ? 'not looked at' : wordsOf(decision));
    if (!this.isCurrent(run)) return refuse('the replicator is being stopped');
    const { scope } = decision;
    if (partition === undefined || (scope.type === 'partitioned' && scope.partitions.includes(partition))) {
      return { type: 'granted' };
    }
    return refuse(`partition ${partition} is not replicated: ${wordsOf(decision)}`);
  }

  private drawn(): { readonly nowMs: number; readonly random: number } {
    return { nowMs: this.clock.now(), random: this.random.next() };
  }

  /** Runs a task to its end; what is aborted by `stop` has not failed. */
  private run(task: Promise<void>): void {
    const guarded = task
      .catch((error: unknown) => {
        if (!this.stopping.signal.aborted) this.events.emit({ type: 'failed', error });
      })
      .finally(() => this.tasks.delete(guarded));
    this.tasks.add(guarded);
  }
}

function refuse(why: string): ProducerPermit {
  return { type: 'refused', reason: `notProvisioned: ${why}` };
}

function wordsOf({ reason, message }: ProvisioningDecision): string {
  return `${reason}: ${message}`;
}
