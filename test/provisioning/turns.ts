/**
 * Provisioners whose every call waits for its turn: a test says in which order calls are carried out and answered, and
 * when time passes. Nothing else decides what happens first.
 */
import { type AdminCall, type AdminFault, MemoryTopicAdmins } from 'isthmus/adapters/memory';
import { createProvisioner, type ProvisionedRun, type Provisioner } from 'isthmus/drivers';
import type { TopicCreations, TopicName } from '../../src/ports/index.js';
import type { ProvisioningPolicy } from '../../src/provisioning/index.js';
import { newCounters } from '../../src/replication/index.js';
import { HandClock } from '../support/hand-clock.js';

export const topic: TopicName = { tenant: 'public', namespace: 'default', name: 'orders' };
export const ISTHMUS = 'isthmus';

/** What an operator does by hand. */
export function by(admins: MemoryTopicAdmins, cluster: string): TopicCreations {
  return admins.admin(cluster, 'operator').creations;
}

/** The creating calls that were made, operators' own left out. */
export function creationsOf({ calls }: MemoryTopicAdmins): string[] {
  return calls.flatMap(({ caller, creates, call }) => (caller === ISTHMUS && creates ? [call] : []));
}

/** A replicator that replicates nothing, and tells of itself. */
export class IdleReplicator {
  state: 'idle' | 'running' | 'stopped' = 'idle';

  constructor(
    readonly remote: string,
    readonly run: ProvisionedRun,
  ) {}

  start(): void {
    if (this.state !== 'idle') throw new Error('a replicator is started once');
    this.state = 'running';
  }

  async stop(): Promise<void> {
    this.state = 'stopped';
  }

  status() {
    return { remote: this.remote, state: this.state, segments: [], counters: newCounters(), pinnedSegments: [] };
  }
}

export class Turns {
  readonly clock = new HandClock();
  readonly admins: MemoryTopicAdmins;
  /** Every replicator that was made, by the remote it writes to. */
  readonly replicators: IdleReplicator[] = [];
  readonly provisioners = new Map<string, Provisioner>();
  private readonly waiting: (() => void)[] = [];

  constructor(fault: (call: AdminCall) => AdminFault | undefined = () => undefined) {
    const turn = async (call: AdminCall): Promise<AdminFault | undefined> => {
      if (call.caller === ISTHMUS) await new Promise<void>((resolve) => this.waiting.push(resolve));
      return call.caller === ISTHMUS ? fault(call) : undefined;
    };
    this.admins = new MemoryTopicAdmins({ before: turn, after: turn });
    for (const cluster of ['a', 'b']) this.admins.addNamespace(cluster, topic);
  }

  /** Starts a provisioner from one cluster to the other. */
  provision(from: string, to: string, policy: ProvisioningPolicy): Provisioner {
    const provisioner = createProvisioner(
      {
        local: () => this.admins.admin(from, ISTHMUS),
        remote: () => this.admins.admin(to, ISTHMUS),
        replicator: (run) => {
          const replicator = new IdleReplicator(to, run);
          this.replicators.push(replicator);
          return replicator;
        },
        clock: this.clock,
        random: { next: () => 0.5 },
      },
      { topic, cluster: to, policy },
    );
    this.provisioners.set(`${from} to ${to}`, provisioner);
    provisioner.start();
    return provisioner;
  }

  /** How many replicators run towards a cluster. */
  running(to: string): number {
    return this.replicators.filter(({ remote, state }) => remote === to && state === 'running').length;
  }

  /** One thing happens: the call that was drawn goes on, or, where nothing waits, time passes. */
  async step(drawn: number): Promise<void> {
    const [next] = this.waiting.splice(drawn % Math.max(1, this.waiting.length), 1);
    if (next === undefined) this.passTime();
    else next();
    await settled();
  }

  /** Time passes up to what is waited for next, whoever else waits for an answer. */
  passTime(): void {
    const next = Math.min(...this.clock.awaited);
    if (Number.isFinite(next)) this.clock.advance(Math.max(0, next - this.clock.now()));
  }

  /** Everybody gets turns in order, for long enough that whatever can come to an end has come to it. */
  async toTheEnd(steps = 100): Promise<void> {
    for (let i = 0; i < steps; i++) await this.step(0);
  }

  async stop(): Promise<void> {
    await Promise.all(Array.from(this.provisioners.values(), (provisioner) => provisioner.stop()));
  }
}

/** Lets everything run that waits for nothing but its turn on the event loop. */
function settled(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
