/** What is drawn at random: nonces, and once for each cluster and remote its salt and its id. */
import { randomBytes as nodeRandomBytes } from 'node:crypto';
import { IsthmusError } from '../errors.js';

/**
 * A source of random bytes, for nonces, salts and ids. It must be as good as that of node:crypto: two seals of one key
 * with one nonce give away both passwords.
 */
export type RandomBytes = (length: number) => Uint8Array;

/** Draws, and refuses a source that gives another number of bytes than it was asked for. */
export function draw(randomBytes: RandomBytes, length: number): Uint8Array {
  const drawn = randomBytes(length);
  if (drawn.length !== length) {
    throw new IsthmusError('invalidArgument', `randomBytes(${length}) gave ${drawn.length} bytes`);
  }
  return drawn;
}

/** A salt for a cluster that has none yet: 32 bytes, drawn once, kept for good and known to all its members. */
export function drawSalt(randomBytes: RandomBytes = nodeRandomBytes): Uint8Array {
  return draw(randomBytes, 32);
}

/** The id of a new remote: 16 lower-case hex digits. */
export function drawRemoteId(randomBytes: RandomBytes = nodeRandomBytes): string {
  return Buffer.from(draw(randomBytes, 8)).toString('hex');
}
