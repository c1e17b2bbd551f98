/** What the end of a connection means to the sender, by how far it had come. */
import { constants } from 'node:os';
import { DialRefused } from '../../guard/index.js';
import type { HttpOutcome } from '../../sender/index.js';

/** How far a request's connection has come. */
export type Stage = 'dial' | 'handshake' | 'secure';

/** A time limit of the transport has passed. */
export class TimedOut extends Error {
  override readonly name = 'TimedOut';
}

/** Everything but an answer. */
export type NoAnswer = Exclude<HttpOutcome, { readonly type: 'answer' }>;

/**
 * The outcome of a request that an error ended. A certificate that is not trusted, a name that is not in it, an alert
 * and bytes that are no TLS are `tls`; a reset or a time limit during the handshake is as ordinary as any other.
 */
export function outcomeOf(error: Error, stage: Stage): NoAnswer {
  if (error instanceof DialRefused) return { type: 'refused' };
  if (error instanceof TimedOut) return { type: 'failed', timeout: true };
  const code = 'code' in error ? String(error.code) : '';
  if (code === 'ETIMEDOUT') return { type: 'failed', timeout: true };
  const isOfTls = code === 'EPROTO' || code.startsWith('ERR_SSL_');
  // What the checks of a certificate say has no number of the system.
  const isOfHandshake = stage === 'handshake' && code !== '' && !(code in constants.errno);
  return isOfTls || isOfHandshake ? { type: 'tls' } : { type: 'failed', timeout: false };
}
