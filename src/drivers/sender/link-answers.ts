/** What is answered to who attaches, resumes, pauses, skips or tests. */
import type { CheckClass, CheckWarning, GateAnswer } from '../../sender/index.js';
import type { ShownReport } from './checks.js';

/** What came of a write or a test, with the status that an HTTP API would answer. */
export type LinkAnswer =
  | {
      readonly type: 'done';
      readonly status: 200 | 201;
      /** The target's ID; empty when it serves none; absent where nothing of it may be shown. */
      readonly targetId?: string;
      readonly warnings: readonly CheckWarning[];
      readonly reports: readonly ShownReport[];
    }
  | LinkRefusal;

export interface LinkRefusal {
  readonly type: 'refused';
  readonly status: number;
  /** For operators; it names no URL and no address. */
  readonly reason: string;
  /** What a check or a gate found. */
  readonly class?: CheckClass | Extract<GateAnswer, { readonly allowed: false }>['class'];
  /** Who found it, or falls short. */
  readonly members?: readonly string[];
  readonly retryAfterMs?: number;
  readonly reports?: readonly ShownReport[];
}

export function refused(status: number, reason: string): LinkRefusal {
  return { type: 'refused', status, reason };
}
