/**
 * A simulated world of whole clusters: in each a layout controller leads the topic, a host of either kind carries out
 * what it decides, and replicators follow the layouts that come of it, all on one virtual clock and from one seed. The
 * controllers are those of `ConvergenceWorld`, topics, processes and connections those of `ReplicationWorld`; each of
 * the two checks its own invariants after every step, and here a layout that one of them writes reaches the other.
 */
import type { stepController } from '../convergence/index.js';
import { equalShapes, shapeOf } from '../layout/index.js';
import { BrokenInvariant } from './convergence-invariants.js';
import { checkTheorem } from './convergence-theorem.js';
import { ConvergenceWorld, type WorldPolicy } from './convergence-world.js';
import { NO_FAULTS } from './lossy-network.js';
import { ReplicationWorld, type ReplicationWorldOptions } from './replication-world.js';

/** How a host is changed: by whole layouts, or by one operation at a time (C22). */
export type HostKind = 'atomic' | 'plan';

export interface ClusterWorldOptions extends Omit<ReplicationWorldOptions, 'onLayout'> {
  /** By cluster; default `atomic`. */
  readonly hosts: readonly HostKind[];
  /** The rule of the controllers; default the real one. For tests of the world itself. */
  readonly step?: typeof stepController;
}

/** Fast, so that controllers and replicators meet in the middle of what each does. */
const CONTROLLER = { antiEntropyMs: 2_000, retryInitialMs: 40, retryMaxMs: 400, peerSilenceGraceMs: 600 };
const REQUEST_TIMEOUT_MS = 300;
const EXCHANGE_FAULTS = { lossRate: 0.15, duplicateRate: 0.15, delayMs: [1, 80] } as const;

/** Rest is when rounds of anti-entropy have changed nothing. */
const QUIET_MS = 3 * CONTROLLER.antiEntropyMs + 1_000;
const REST_LIMIT_MS = 120_000;

export class ClusterWorld {
  readonly replication: ReplicationWorld;
  readonly controllers: ConvergenceWorld;
  private readonly policies = new Map<string, WorldPolicy>();

  constructor({ hosts, step, ...options }: ClusterWorldOptions) {
    this.replication = new ReplicationWorld({
      ...options,
      onLayout: (cluster, layout) => this.controllers.replace(cluster, layout),
    });
    const { clock, topics } = this.replication;
    this.controllers = new ConvergenceWorld({
      // Another course of chance than that of the replicators.
      seed: options.seed ^ 0x5eed,
      clock,
      clusters: topics.map(({ cluster, layout }, i) => {
        return { cluster, layout, host: hosts[i] ?? 'atomic', options: CONTROLLER };
      }),
      faults: EXCHANGE_FAULTS,
      hostDelayMs: [0, 25],
      unseenRate: 0.3,
      requestTimeoutMs: REQUEST_TIMEOUT_MS,
      ...(step === undefined ? {} : { step }),
      onEvent: (event) => {
        if (event.type === 'written') {
          this.replication.change(this.indexOf(event.cluster), 'layoutWritten', () => event.layout);
        } else if (event.type === 'report') this.replication.count(`report ${event.report.type}`);
        else if (event.type === 'changeFailed') this.replication.count('changeFailed');
      },
    });
    for (const cluster of this.controllers.clusters) this.controllers.elect(cluster);
  }

  /** What has happened, and how often. */
  get counts(): ReadonlyMap<string, number> {
    return this.replication.counts;
  }

  /** The policy of a cluster from now on, which its leader evaluates at once. */
  setPolicy(cluster: string, policy: WorldPolicy): void {
    this.policies.set(cluster, policy);
    this.controllers.setPolicy(cluster, policy);
    this.controllers.evaluate(cluster);
  }

  /** One evaluation in which the policy wants something done as well. */
  evaluateWith(cluster: string, action: ReturnType<WorldPolicy>['action']): void {
    const policy = this.policies.get(cluster) ?? withoutMarks;
    if (action === undefined) return this.setPolicy(cluster, policy);
    this.controllers.setPolicy(cluster, (state, nowMs) => ({ ...policy(state, nowMs), action }));
    this.controllers.evaluate(cluster);
    this.controllers.setPolicy(cluster, policy);
  }

  /** Everything works from now on, everybody leads once, and policies are evaluated a last time. */
  calm(): void {
    const { controllers } = this;
    this.replication.calm();
    controllers.network.healAll();
    controllers.network.faults = NO_FAULTS;
    controllers.hostDelayMs = [0, 0];
    controllers.unseenRate = 0;
    controllers.forgetFailures();
    for (const cluster of controllers.clusters) {
      controllers.setSupported(cluster, true);
      controllers.setMembers(cluster, controllers.clusters);
      if (controllers.state(cluster) === undefined) controllers.elect(cluster);
      controllers.retire(cluster);
    }
    for (const cluster of controllers.clusters) controllers.evaluate(cluster);
  }

  /** Runs until replicators have settled and controllers rest, and checks what must hold then. */
  settle(): void {
    this.replication.settle();
    this.controllers.settle({ quietMs: QUIET_MS, limitMs: REST_LIMIT_MS });
    this.replication.settle();
    this.replication.checkComplete();
    const complaint = checkTheorem(this.controllers);
    if (complaint !== undefined) throw new BrokenInvariant(`theorem: ${complaint}`);
  }

  /** Once all shapes are equal, everything goes as it is. Where a host cannot make a boundary they never are (C22). */
  checkVerbatim(): void {
    const [first, ...others] = this.replication.topics.map(({ layout }) => shapeOf(layout));
    const haveMet = others.every((shape) => first !== undefined && equalShapes(first, shape));
    this.replication.count(haveMet ? 'shapesMet' : 'shapesApart');
    if (haveMet) this.replication.checkVerbatim();
  }

  private indexOf(cluster: string): number {
    return this.replication.topics.findIndex((topic) => topic.cluster === cluster);
  }
}

const withoutMarks: WorldPolicy = () => ({ coldMarks: { segments: [], buckets: [] } });
