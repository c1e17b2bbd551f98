/**
 * What each outcome of a batch produce request means: one table, whose rows are walked in order, and the first that fits
 * decides. `edge` is the class of an answer that something between here and the target gave.
 */
import { acceptedCount, errorText, isGoNotFound, retryAfterMs } from './answers.js';
import type { HttpOutcome } from './ports.js';
import type { StalledState } from './states.js';

/** What a lane does next. */
export type AnswerAction =
  | 'committed'
  /** Again after a while. */
  | 'retry'
  /** The remote as a whole: close its gate. */
  | 'gate'
  /** This cursor waits until somebody has acted. */
  | 'stall'
  /** Look whether the target has no such route, or something else answered. */
  | 'resolveRoute'
  /** The same records at once as they are. */
  | 'uncompressed'
  /** The target takes fewer messages than it seemed: the same records again in smaller requests. */
  | 'recapacity'
  /** A record was named: what stands before it goes alone. */
  | 'resendPrefix'
  /** One of the records is refused: halves, until it stands alone. */
  | 'bisect'
  | 'splitTooLarge'
  /** The first record stands for the topic, which takes none. */
  | 'blockFront';

/** What errors are counted by. */
export type ErrorClass = StalledState | 'edge' | 'encoding';

export interface AnswerRow {
  readonly name: string;
  readonly fits: (seen: Seen) => boolean;
  readonly action: AnswerAction;
  readonly state?: StalledState;
  /** Where it is another than the state. */
  readonly class?: 'edge' | 'encoding';
  /** The lane's bodies get smaller. */
  readonly shrinks?: (seen: Seen) => boolean;
  /** The records may have been stored nevertheless, so sending them again may store them twice. */
  readonly ambiguous?: boolean;
}

/** An outcome with what it answers. */
export interface ChunkOutcome {
  readonly outcome: HttpOutcome;
  readonly count: number;
  readonly compressed: boolean;
}

/** An outcome as the rows look at it. */
export interface Seen extends ChunkOutcome {
  /** 0 when there was no answer. */
  readonly status: number;
  /** The target's own error text. */
  readonly error: string | undefined;
}

const always = () => true;
const isUndecodable = ({ status, error }: Seen) =>
  status === 415 || (status === 400 && error?.startsWith('invalid json') === true);
const says = (prefix: string) => (seen: Seen) => seen.status === 400 && seen.error?.startsWith(prefix) === true;

/** `message 12: ...` */
const NAMED = /^message (\d{1,9}):/;

/** The rows, in order. */
export const ANSWER_TABLE: readonly AnswerRow[] = Object.freeze([
  {
    name: 'the guard refused the dial',
    fits: ({ outcome }) => outcome.type === 'refused',
    action: 'stall',
    state: 'destination_refused',
  },
  {
    name: 'TLS failed',
    fits: ({ outcome }) => outcome.type === 'tls',
    action: 'gate',
    state: 'tls_failed',
  },
  {
    name: 'another transport error',
    fits: ({ outcome }) => outcome.type !== 'answer',
    action: 'retry',
    state: 'unavailable',
    shrinks: ({ outcome }) => outcome.type === 'failed' && outcome.timeout,
    ambiguous: true,
  },
  {
    name: '202 for all records',
    fits: ({ status, outcome, count }) =>
      status === 202 && outcome.type === 'answer' && acceptedCount(outcome) === count,
    action: 'committed',
  },
  {
    name: '202 otherwise, or another 2xx',
    fits: ({ status }) => status >= 200 && status < 300,
    action: 'retry',
    state: 'unavailable',
    ambiguous: true,
  },
  {
    name: '3xx',
    fits: ({ status }) => status >= 300 && status < 400,
    action: 'stall',
    state: 'redirect_refused',
  },
  {
    name: "Go's bare 404",
    fits: ({ outcome }) => outcome.type === 'answer' && isGoNotFound(outcome),
    action: 'resolveRoute',
    state: 'no_batch_produce',
  },
  {
    name: "400, 401, 403 or 404 that is not the target's",
    fits: ({ status, error }) => [400, 401, 403, 404].includes(status) && error === undefined,
    action: 'retry',
    state: 'unavailable',
    class: 'edge',
  },
  {
    name: '415 or invalid json to a compressed request',
    fits: (seen) => seen.compressed && isUndecodable(seen),
    action: 'uncompressed',
    state: 'unavailable',
    class: 'encoding',
  },
  {
    name: '413, from whomever',
    fits: ({ status }) => status === 413,
    action: 'splitTooLarge',
    state: 'record_too_large',
  },
  {
    name: '429, from whomever',
    fits: ({ status }) => status === 429,
    action: 'gate',
    state: 'throttled',
  },
  { name: '400 too many messages', fits: says('too many messages'), action: 'recapacity' },
  {
    name: '400 message N',
    fits: ({ status, error }) => status === 400 && NAMED.test(error ?? ''),
    action: 'resendPrefix',
    state: 'rejected_record',
  },
  {
    name: '400 read body',
    fits: says('read body:'),
    action: 'retry',
    state: 'unavailable',
    shrinks: always,
  },
  {
    name: "another 400 of the target's",
    fits: ({ status }) => status === 400,
    action: 'bisect',
    state: 'rejected_record',
  },
  { name: "the target's 401", fits: ({ status }) => status === 401, action: 'gate', state: 'auth_failed' },
  { name: "the target's 403", fits: ({ status }) => status === 403, action: 'stall', state: 'forbidden' },
  { name: "the target's 404", fits: ({ status }) => status === 404, action: 'stall', state: 'target_missing' },
  {
    name: '409, from whomever',
    fits: ({ status }) => status === 409,
    action: 'blockFront',
    state: 'rejected_record',
  },
  {
    name: '408 or 5xx, from whomever',
    fits: ({ status }) => status === 408 || status >= 500,
    action: 'retry',
    state: 'unavailable',
    ambiguous: true,
  },
  {
    name: '415 to an uncompressed request',
    fits: ({ status }) => status === 415,
    action: 'retry',
    state: 'unavailable',
    class: 'edge',
  },
  {
    name: "another 4xx of the target's",
    fits: ({ status, error }) => status >= 400 && error !== undefined,
    action: 'bisect',
    state: 'rejected_record',
  },
  { name: 'anything else', fits: always, action: 'retry', state: 'unavailable', class: 'edge' },
] satisfies AnswerRow[]);

/** What a lane is told of one of its requests. */
export interface Verdict {
  readonly row: string;
  readonly action: AnswerAction;
  readonly state: StalledState | undefined;
  /** Undefined for what is no error. */
  readonly class: ErrorClass | undefined;
  readonly shrinks: boolean;
  readonly ambiguous: boolean;
  /** Which record of the request the target named, from 0. */
  readonly index: number | undefined;
  /** 0 when the target did not say. */
  readonly retryAfterMs: number;
  /** Undefined when there was no answer. */
  readonly status: number | undefined;
}

/** Walks the table. `nowMs` is what a date in `Retry-After` is held against. */
export function judgeAnswer(chunk: ChunkOutcome, nowMs: number): Verdict {
  const { outcome } = chunk;
  const answer = outcome.type === 'answer' ? outcome : undefined;
  const seen: Seen = {
    ...chunk,
    status: answer?.status ?? 0,
    error: answer === undefined ? undefined : errorText(answer),
  };
  const row = ANSWER_TABLE.find(({ fits }) => fits(seen)) as AnswerRow;
  const named = NAMED.exec(seen.error ?? '')?.[1];
  return {
    row: row.name,
    action: row.action,
    state: row.state,
    class: row.class ?? row.state,
    shrinks: row.shrinks?.(seen) === true,
    ambiguous: row.ambiguous === true,
    index: named === undefined ? undefined : Number(named),
    retryAfterMs: retryAfterMs(answer?.retryAfter, nowMs),
    status: answer?.status,
  };
}
