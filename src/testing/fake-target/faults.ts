/** What goes wrong between a sender and a fake target, and what the target notes of each request. */
import type { TargetAnswer } from './answers.js';

/**
 * What becomes of one request. With `stores` the target takes the request first, so that only its answer is lost, late
 * or another; by default it does not see it.
 */
export type TargetFault =
  /** Something else answers: a proxy, or the target in a state that it is not in. */
  | { readonly type: 'answer'; readonly answer: TargetAnswer; readonly stores?: boolean }
  /** The connection is reset once the request is there. */
  | { readonly type: 'reset'; readonly stores?: boolean }
  /** No answer comes; the connection stays. */
  | { readonly type: 'silent'; readonly stores?: boolean }
  /** All of it takes so many milliseconds longer: before the target takes the request, or with `stores` after. */
  | { readonly type: 'slow'; readonly ms: number; readonly stores?: boolean }
  /** A batch is stored whole, and the answer names another count. */
  | { readonly type: 'accepted'; readonly count: number }
  /** The target's answer comes with its headers, and with so many bytes of its body before the connection is reset. */
  | { readonly type: 'cutAnswer'; readonly bytes: number };

/** Says what becomes of a request; undefined: nothing goes wrong. It is asked once, when the request is there. */
export type FaultRule = (request: SeenRequest) => TargetFault | undefined;

/** What a request asks for. */
export type RequestKind = 'batch' | 'children' | 'topic' | 'users' | 'other';

/** A request as it came in. */
export interface SeenRequest {
  /** Milliseconds since the epoch: when its head was there. */
  readonly atMs: number;
  readonly method: string;
  /** Below the target's base URL, with its query. */
  readonly path: string;
  readonly kind: RequestKind;
  /** Names in lower case; without the credential. */
  readonly headers: Readonly<Record<string, string | undefined>>;
  /** The user that it names, whatever the password; undefined without a credential. */
  readonly user: string | undefined;
  /** Bytes of the body, as sent. */
  readonly bodyBytes: number;
  /** Messages of a batch, where its body could be counted: 0 for the probe of a sender. */
  readonly messages: number | undefined;
  /** The fault that it met. */
  fault: TargetFault['type'] | undefined;
  /** What was answered, once it was. */
  status: number | undefined;
}

export function kindOf(path: string): RequestKind {
  const [plain = ''] = path.split('?', 1);
  if (plain === '/v1/users') return 'users';
  const [, rest] = /^\/v1\/topics\/[^/]+(|\/children|\/produce\/batch)$/.exec(plain) ?? [];
  if (rest === undefined) return 'other';
  return rest === '' ? 'topic' : rest === '/children' ? 'children' : 'batch';
}
