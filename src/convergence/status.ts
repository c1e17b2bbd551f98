/** What a controller can say of itself and its peers ("What convergence means, and how it is seen"). */
import { equalCells, type Shape } from '../layout/index.js';
import type { HashRange } from '../ring/index.js';
import { type CapMismatch, effectiveCaps } from './caps.js';
import type { ControllerState } from './controller-state.js';
import type { Caps, ColdMarks } from './peer-state.js';
import { heardStates, localMarks, statedShape, unheardPeers } from './statement.js';

export interface PeerStatus {
  readonly cluster: string;
  readonly condition: 'heard' | 'unheard' | 'unsupported';
  /** Ranges of the segment ring on which both shapes agree, and on which they do not; empty while it is unheard. */
  readonly converged: readonly HashRange[];
  readonly diverged: readonly HashRange[];
  /** The epoch of the own layout that the peer last acknowledged. */
  readonly ackedEpoch?: number;
  /** The age of its last state, in milliseconds. */
  readonly ageMs?: number;
  /** How long the shapes have differed, or how long they did last; undefined when they never have. */
  readonly lagMs?: number;
  readonly mismatches: readonly CapMismatch[];
  /** Its demands do not fit the fold limit. */
  readonly leftOut: boolean;
  /** Its epoch went back: a restored or recreated topic whose states are ignored until they are newer. */
  readonly wentBack: boolean;
  readonly lastError?: string;
}

export interface ControllerStatus {
  readonly cluster: string;
  readonly epoch: number;
  readonly shape: Shape;
  readonly coldMarks: ColdMarks;
  readonly effectiveCaps: Caps;
  /** A change of the layout is under way, or waits to be tried again. */
  readonly changing: boolean;
  /** Merges wait for these. */
  readonly unheard: readonly string[];
  readonly peers: readonly PeerStatus[];
}

/** The status of a controller at a time. */
export function controllerStatus(state: ControllerState, nowMs: number): ControllerStatus {
  const own = statedShape(state);
  const { caps, mismatches } = effectiveCaps(state.options.caps, heardStates(state));
  const peers = [...state.peers.values()].map((record): PeerStatus => {
    const { cluster, unsupported, ackedEpoch, heardAtMs, divergedSinceMs, lastLagMs, lastError } = record;
    const lagMs = divergedSinceMs === undefined ? lastLagMs : nowMs - divergedSinceMs;
    const peer = record.state;
    return {
      cluster,
      condition: unsupported ? 'unsupported' : peer === undefined ? 'unheard' : 'heard',
      ...(peer === undefined ? { converged: [], diverged: [] } : compareRanges(own, peer.shape)),
      ...(ackedEpoch === undefined ? {} : { ackedEpoch }),
      ...(heardAtMs === undefined ? {} : { ageMs: nowMs - heardAtMs }),
      ...(lagMs === undefined ? {} : { lagMs }),
      mismatches: mismatches.filter((mismatch) => mismatch.cluster === cluster),
      leftOut: record.leftOut,
      wentBack: record.wentBack,
      ...(lastError === undefined ? {} : { lastError }),
    };
  });
  return {
    cluster: state.options.cluster,
    epoch: state.layout.epoch,
    shape: own,
    coldMarks: localMarks(state),
    effectiveCaps: caps,
    changing: state.isChanging || state.changeRetryAtMs !== undefined,
    unheard: unheardPeers(state),
    peers,
  };
}

/** The ranges on which two shapes have the same cells, and the rest; neighbours are told as one range. */
export function compareRanges(
  a: Shape,
  b: Shape,
): { readonly converged: readonly HashRange[]; readonly diverged: readonly HashRange[] } {
  const converged: HashRange[] = [];
  const diverged: HashRange[] = [];
  const others = new Map(b.cells.map((cell) => [cell.range.start, cell]));
  for (const cell of a.cells) {
    const ranges = equalCells(cell, others.get(cell.range.start)) ? converged : diverged;
    const last = ranges.at(-1);
    if (last !== undefined && last.end + 1 === cell.range.start) {
      ranges[ranges.length - 1] = { start: last.start, end: cell.range.end };
    } else {
      ranges.push(cell.range);
    }
  }
  return { converged, diverged };
}
