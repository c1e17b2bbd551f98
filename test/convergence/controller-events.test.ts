/**
 * A controller that is told anything: stale, doubled and unasked answers, layouts out of nowhere, peers that come and go,
 * clocks that jump. Whatever it is, these hold. Two clusters whose hosts do as they should are told of in the simulation.
 */
import fc from 'fast-check';
import {
  type ControllerEffect,
  type ControllerEvent,
  type ControllerState,
  type ControllerStep,
  controllerStatus,
  type PeerState,
  startController,
  stepController,
} from 'isthmus';
import { arbControllerEvent, arbControllerOptions, arbLayout } from 'isthmus/testing';
import { expect, it } from 'vitest';
import { IsthmusError } from '../../src/errors.js';
import { executeOperation, type Layout, shapeOf } from '../../src/layout/index.js';
import { checkPlan, checkRemoval, checkStatement, checkWrite } from '../../src/testing/convergence-invariants.js';

const START_MS = 1_700_000_000_000;
const PEERS = ['b', 'c'];

type Change = Extract<ControllerEffect, { type: 'commit' | 'perform' }>;
type Push = Extract<ControllerEffect, { type: 'push' }>;

/** What the world saw of one controller, and the rules that it holds it to. */
class Witness {
  state: ControllerState;
  /** What can be answered, answered before or not: the last few. */
  asked: ControllerEffect[] = [];
  /** Everything in order, to be told when a rule breaks. */
  readonly story: (ControllerEvent | ControllerEffect)[] = [];
  private isChangeOut = false;
  private timerAtMs: number | undefined;
  private readonly pushes = new Map<string, number>();
  private lastPushId = 0;
  private readonly requests: number[] = [];
  private told = { epoch: -1, revision: -1 };

  constructor({ state, effects }: ControllerStep) {
    this.state = frozen(state);
    this.judge(effects, undefined, state);
  }

  tell(event: ControllerEvent): void {
    this.story.push(event);
    const before = this.state;
    this.note(event, before);
    let step: ControllerStep;
    try {
      step = stepController(before, frozen(event));
    } catch (error) {
      // Only what an operator asks for is refused; the state, which is frozen, is as it was.
      expect([event.type, error instanceof IsthmusError]).toEqual(['manual', true]);
      return;
    }
    this.state = frozen(step.state);
    this.judge(step.effects, event, before);
  }

  /** What an event ends. An answer to a change has no id: any is taken for that of the change that is out. */
  private note(event: ControllerEvent, { layout, peers }: ControllerState): void {
    if (event.type === 'committed' || event.type === 'conflict' || event.type === 'changeFailed') {
      this.isChangeOut = false;
    }
    if (event.type === 'tick') this.timerAtMs = undefined;
    if (event.type === 'pushed') this.requests.push(event.requestId);
    if (event.type === 'answered' || event.type === 'pushFailed') {
      if (this.pushes.get(event.peer) === event.pushId) this.pushes.delete(event.peer);
    }
    if (event.type === 'members') {
      for (const cluster of peers.keys()) if (!event.members.includes(cluster)) this.pushes.delete(cluster);
    }
    // A topic that was recreated or restored begins again.
    if ('layout' in event && event.layout.epoch < layout.epoch) this.told = { ...this.told, epoch: event.layout.epoch };
  }

  private judge(
    effects: readonly ControllerEffect[],
    event: ControllerEvent | undefined,
    before: ControllerState,
  ): void {
    const { state } = this;
    for (const effect of effects) {
      this.story.push(effect);
      this.judgeEffect(effect, event, before);
      this.asked = [...this.asked, effect].slice(-12);
    }
    expect(state.isChanging).toBe(this.isChangeOut);
    // Who pushed is answered as soon as nothing is under way, and the clock will go on.
    if (!state.isChanging) expect(this.requests).toEqual([]);
    expect(this.timerAtMs).toBeTypeOf('number');
    for (const peer of controllerStatus(state, event?.nowMs ?? START_MS).peers) {
      expect(peer.converged.length + peer.diverged.length > 0).toBe(
        peer.condition === 'heard' || isHeard(state, peer.cluster),
      );
    }
  }

  private judgeEffect(effect: ControllerEffect, event: ControllerEvent | undefined, before: ControllerState): void {
    switch (effect.type) {
      case 'commit':
      case 'perform':
        return this.judgeChange(effect, event, before);
      case 'push':
        return this.judgePush(effect);
      case 'wake':
        this.timerAtMs = effect.atMs;
        return;
      case 'answer': {
        const index = this.requests.indexOf(effect.requestId);
        expect(index, 'a push is answered once').toBeGreaterThanOrEqual(0);
        this.requests.splice(index, 1);
        if (effect.result.state !== undefined) this.judgeStated(effect.result.state);
      }
    }
  }

  private judgeChange(change: Change, event: ControllerEvent | undefined, before: ControllerState): void {
    const { state } = this;
    expect(this.isChangeOut, 'one change at a time').toBe(false);
    this.isChangeOut = true;
    expect(change.type).toBe(state.options.operations === undefined ? 'commit' : 'perform');
    if (change.type === 'commit') {
      expect(change.expectedEpoch).toBe(state.layout.epoch);
      expect(checkWrite(state.layout, change.layout)).toBeUndefined();
      expect(checkRemoval(state, shapeOf(state.layout), shapeOf(change.layout))).toBeUndefined();
      return;
    }
    expect(executeOperation(state.layout, change.operation, START_MS).epoch).toBe(state.layout.epoch + 1);
    // A layout that somebody else has made alters the goal as well.
    const isOwn = event !== undefined && !('layout' in event);
    if (isOwn) expect(checkPlan(before, state)).toBeUndefined();
  }

  private judgePush({ peer, pushId, state }: Push): void {
    expect([...this.state.peers.keys()]).toContain(peer);
    expect(pushId).toBeGreaterThan(this.lastPushId);
    this.lastPushId = pushId;
    expect(this.pushes.get(peer), 'one push at a time').toBeUndefined();
    this.pushes.set(peer, pushId);
    this.judgeStated(state);
  }

  /** What is stated is valid, and newer than all that was stated before (C14). */
  private judgeStated(state: PeerState): void {
    expect(checkStatement(state)).toBeUndefined();
    expect(state.revision).toBeGreaterThan(this.told.revision);
    expect(state.epoch).toBeGreaterThanOrEqual(this.told.epoch);
    this.told = { epoch: state.epoch, revision: state.revision };
  }
}

const isHeard = ({ peers }: ControllerState, cluster: string) => peers.get(cluster)?.state !== undefined;

/** Nothing in it can be changed in place any more. */
function frozen<T>(value: T): T {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value) || ArrayBuffer.isView(value)) return value;
  Object.freeze(value);
  for (const member of value instanceof Map ? value.values() : Object.values(value)) frozen(member);
  return value;
}

it('holds its rules, whatever it is told, and refuses nothing but what an operator asks for', () => {
  const turns = fc.array(fc.record({ seed: fc.nat(), isStray: fc.boolean() }), { maxLength: 40, size: 'max' });
  const start = {
    options: arbControllerOptions('a'),
    layout: arbLayout({ maxSteps: 4 }),
    term: fc.option(fc.nat({ max: 3 }), { nil: undefined }),
  };
  fc.assert(
    fc.property(fc.record(start), turns, ({ options, layout, term }, list) => {
      const witness = new Witness(startController({ options, layout, term, members: PEERS, nowMs: START_MS }));
      try {
        for (const { seed, isStray } of list) witness.tell(nextEvent(witness, seed, isStray));
      } catch (error) {
        throw new Error(`after\n${witness.story.map((what) => fc.stringify(what)).join('\n')}`, { cause: error });
      }
    }),
    { seed: 1, numRuns: 120 },
  );
});

/** One event, by its number: on the way to this state, or out of nowhere. */
function nextEvent({ state, asked }: Witness, seed: number, isStray: boolean): ControllerEvent {
  const sinceMs = Math.max(state.wakeAtMs ?? START_MS, START_MS) - 60_000;
  const layout: Layout | undefined = isStray ? undefined : state.layout;
  const arbitrary = arbControllerEvent({ ...(layout && { layout }), peers: PEERS, asked, sinceMs, unasked: isStray });
  const [event] = fc.sample(arbitrary, { seed, numRuns: 1 });
  if (event === undefined) throw new Error('nothing was drawn');
  return event;
}
