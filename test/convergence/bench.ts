/** One controller with its host at hand, for tests of the machine step by step. */
import {
  type ControllerEffect,
  type ControllerEvent,
  type ControllerOptions,
  type ControllerState,
  controllerStatus,
  type ExchangeErrorCode,
  type ExchangeResult,
  type ManualOperation,
  type PeerState,
  type PolicyDecision,
  startController,
  statedShape,
  stepController,
} from '../../src/convergence/index.js';
import { executeOperation, type Layout, type Operation, parseLayout, shapeOf } from '../../src/layout/index.js';
import { layoutText, marks, marksText, peer, shape, shapeText } from './shorthand.js';

export const START_MS = 1_700_000_000_000;

type Timeless<E> = E extends unknown ? Omit<E, 'nowMs'> : never;

/** A controller with its host at hand: changes wait until they are committed, pushes until they are answered. */
export class Bench {
  state: ControllerState;
  nowMs = START_MS;
  /** What the last event led to. */
  told: string[] = [];
  private effects: readonly ControllerEffect[] = [];

  constructor(cells: string, { members = ['b'], term, base, ...options }: Partial<ControllerOptions> & Start = {}) {
    const layout = firstLayout(cells, base);
    const caps = { maxSegments: 64, maxEntryBucketsPerSegment: 64 };
    const step = startController({
      options: { cluster: 'a', caps, ...options },
      term,
      layout,
      members,
      nowMs: START_MS,
    });
    this.state = step.state;
    this.note(step.effects);
  }

  /** What an event leads to, but for the timer. */
  send(event: Timeless<ControllerEvent>): string[] {
    const { state, effects } = stepController(this.state, { ...event, nowMs: this.nowMs } as ControllerEvent);
    this.state = state;
    this.note(effects);
    return this.told;
  }

  private note(effects: readonly ControllerEffect[]): void {
    this.effects = effects;
    this.told = effects.filter(({ type }) => type !== 'wake').map(effectText);
  }

  get wakesInMs(): number | undefined {
    const wake = this.effects.find((effect) => effect.type === 'wake');
    return wake === undefined ? undefined : wake.atMs - this.nowMs;
  }

  after(ms: number): string[] {
    this.nowMs += ms;
    return this.send({ type: 'tick' });
  }

  push(state: PeerState, requestId = 1): string[] {
    return this.send({ type: 'pushed', requestId, from: state.cluster, state });
  }

  answer(state: PeerState | undefined, code?: ExchangeErrorCode, from = state?.cluster ?? 'b'): string[] {
    const pushId = this.state.peers.get(from)?.inFlight?.pushId ?? -1;
    const error = code === undefined ? {} : { error: { code, message: 'so it is' } };
    const result = { ...(state && { state }), ...error };
    return this.send({ type: 'answered', peer: from, pushId, result, random: 0.5 });
  }

  failPush(cluster: string, unsupported = false): string[] {
    return this.failPushOf(cluster, this.state.peers.get(cluster)?.inFlight?.pushId ?? -1, unsupported);
  }

  failPushOf(cluster: string, pushId: number, unsupported = false): string[] {
    return this.send({ type: 'pushFailed', peer: cluster, pushId, reason: 'no answer', unsupported, random: 0.5 });
  }

  decide(cold: string, action?: PolicyDecision['action']): string[] {
    return this.send({ type: 'policy', decision: { coldMarks: marks(cold), action } });
  }

  operate(operation: ManualOperation): string[] {
    return this.send({ type: 'manual', operation });
  }

  /** The change that was asked for last is made. */
  commit(): string[] {
    const effect = this.effects.find(({ type }) => type === 'commit' || type === 'perform');
    if (effect?.type === 'commit') return this.send({ type: 'committed', layout: effect.layout });
    if (effect?.type !== 'perform') throw new Error('nothing to commit');
    return this.send({ type: 'committed', layout: this.performed(effect.operation) });
  }

  /** The layout after an operation of a broker. */
  performed(operation: Operation, layout = this.state.layout): Layout {
    return executeOperation(layout, operation, START_MS);
  }

  /** Commits until nothing is asked any more; gives the operations. */
  finish(): string[] {
    const operations: string[] = [];
    while (this.state.isChanging) {
      const asked = this.told.filter((line) => line.startsWith('perform') || line.startsWith('commit'));
      operations.push(...asked);
      this.commit();
    }
    return operations;
  }

  get operation(): Operation {
    const effect = this.effects.find(({ type }) => type === 'perform');
    if (effect?.type !== 'perform') throw new Error('no operation is asked for');
    return effect.operation;
  }

  get layout(): string {
    return layoutText(this.state.layout);
  }

  get stated(): string {
    return shapeText(statedShape(this.state));
  }

  get cold(): string {
    return marksText(controllerStatus(this.state, this.nowMs).coldMarks);
  }

  statusOf(cluster: string) {
    return controllerStatus(this.state, this.nowMs).peers.find((status) => status.cluster === cluster);
  }
}

/** Segments 1, 2 and so on, at epoch 1, with no past. */
function firstLayout(cells: string, base: readonly number[] | undefined): Layout {
  const segments = shape(cells).cells.map(({ range, entryBucketSplits }, i) => ({
    segmentId: i + 1,
    hashRange: range,
    state: 'ACTIVE',
    parentIds: [],
    childIds: [],
    createdAtEpoch: 1,
    sealedAtEpoch: -1,
    createdAtMs: START_MS,
    sealedAtMs: -1,
    entryBucketSplits,
  }));
  return parseLayout({
    epoch: 1,
    nextSegmentId: segments.length + 1,
    segments: Object.fromEntries(segments.map((segment) => [segment.segmentId, segment])),
    properties: {},
    deleted: false,
    ...(base && { base }),
  });
}

interface Start {
  readonly members?: readonly string[];
  readonly term?: number;
  readonly base?: readonly number[];
}

export function effectText(effect: ControllerEffect): string {
  switch (effect.type) {
    case 'commit':
      return `commit ${shapeText(shapeOf(effect.layout))}`;
    case 'perform': {
      const { operation } = effect;
      if (operation.type === 'merge') return `perform merge ${operation.leftId} ${operation.rightId}`;
      if (operation.type === 'split') return `perform split ${operation.segmentId}`;
      return `perform rebucket ${operation.segmentId} to ${operation.buckets}`;
    }
    case 'push':
      return `push ${effect.peer} ${stateText(effect.state)}`;
    case 'answer':
      return `answer ${effect.requestId} ${resultText(effect.result)}`;
    case 'report': {
      const { type, ...report } = effect.report;
      return `report ${[type, ...Object.values(report)].join(' ')}`;
    }
    default:
      return effect.type;
  }
}

function resultText({ state, error }: Omit<ExchangeResult, 'topic'>): string {
  return [...(error === undefined ? [] : [error.code]), ...(state === undefined ? [] : [stateText(state)])].join(' ');
}

function stateText(state: PeerState): string {
  const { coldMarks } = state;
  const cold = coldMarks === undefined ? ' cold ?' : marksText(coldMarks) === '' ? '' : ` cold ${marksText(coldMarks)}`;
  return `${shapeText(state.shape)}${cold}${state.equalWidth === true ? ' equal-width' : ''}`;
}

/** A bench that has met its peers: everybody is heard and has acknowledged. */
export function met(
  cells: string,
  options: Partial<ControllerOptions> & Start = {},
  peers?: readonly PeerState[],
): Bench {
  const bench = new Bench(cells, options);
  bench.decide('');
  for (const state of peers ?? (options.members ?? ['b']).map((cluster) => peer(cluster, cells, { cold: '' }))) {
    bench.answer(state);
  }
  for (let pushes = 0; pushes < 3; pushes++) {
    for (const { inFlight, state } of bench.state.peers.values()) {
      if (inFlight !== undefined && state !== undefined) bench.answer(state);
    }
  }
  bench.finish();
  return bench;
}

/** A policy's wish to split. */
export function split(segmentId: number): PolicyDecision['action'] {
  return { type: 'split', segmentId, reason: 'load' };
}
