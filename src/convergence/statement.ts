/**
 * What a controller says of its topic: its shape, its marks and its base grid, with what it knows of its peers.
 */
import { equalShapes, goalShape, joinShapes, type Shape, shapeOf } from '../layout/index.js';
import { equalBoundaries, unionBoundaries } from '../ring/index.js';
import type { ControllerState } from './controller-state.js';
import { equalMarks, standingMarks, uniteMarks } from './marks.js';
import { type ColdMarks, NO_MARKS, type PeerState } from './peer-state.js';

/** The shape that a controller states: the goal while its host is on the way to it, else that of the layout (C22). */
export function statedShape({ goal, layout }: Pick<ControllerState, 'goal' | 'layout'>): Shape {
  return goal ?? shapeOf(layout);
}

/**
 * Where a mark on buckets still means something: in what is stated, and on the way to a goal also in what the host has
 * left of what that lets go. A plan may end short of it, and then the host has that for good (C12, C22).
 */
export function heldShape({ goal, layout }: Pick<ControllerState, 'goal' | 'layout'>): Shape {
  return goal === undefined ? shapeOf(layout) : joinShapes(goal, goalShape(layout));
}

/** The cluster's own marks as far as they stand (C11): the policy's and the operator's. */
export function localMarks(state: ControllerState): ColdMarks {
  const { policyMarks = NO_MARKS, manualMarks } = state;
  const shape = statedShape(state);
  const base = joinedBase(state);
  return uniteMarks(
    standingMarks(policyMarks, shape, base).marks,
    standingMarks(manualMarks, shape, base).marks,
    shape,
  );
}

/** The marks that a controller states; undefined until its policy has been evaluated (C18). */
export function statedMarks(state: ControllerState): ColdMarks | undefined {
  return state.policyMarks === undefined ? undefined : localMarks(state);
}

/** The base grid of the layout and of every peer heard (C10). */
export function joinedBase({ layout, peers }: Pick<ControllerState, 'layout' | 'peers'>): readonly number[] {
  let base = layout.base ?? [];
  for (const { state } of peers.values()) base = unionBoundaries(base, state?.base ?? []);
  return base;
}

/** Members that were not heard yet, without those that have no endpoint (C9, C18, C19). */
export function unheardPeers({ peers }: Pick<ControllerState, 'peers'>): string[] {
  return [...peers.values()]
    .filter(({ state, unsupported }) => state === undefined && !unsupported)
    .map(({ cluster }) => cluster);
}

/** The states of the peers that count: heard, and with an endpoint. */
export function heardStates({ peers }: Pick<ControllerState, 'peers'>): PeerState[] {
  return [...peers.values()].flatMap(({ state, unsupported }) => (state === undefined || unsupported ? [] : [state]));
}

/** What of a state its receivers act upon: when it changes, they are told. */
export type PeerStatement = Pick<PeerState, 'epoch' | 'shape' | 'base' | 'coldMarks'>;

export function statementOf(state: ControllerState): PeerStatement {
  const coldMarks = statedMarks(state);
  return {
    epoch: state.layout.epoch,
    shape: statedShape(state),
    base: joinedBase(state),
    ...(coldMarks === undefined ? {} : { coldMarks }),
  };
}

export function sameStatement(a: PeerStatement, b: PeerStatement): boolean {
  return (
    a.epoch === b.epoch &&
    equalShapes(a.shape, b.shape) &&
    equalBoundaries(a.base ?? [], b.base ?? []) &&
    equalMarks(a.coldMarks, b.coldMarks)
  );
}
