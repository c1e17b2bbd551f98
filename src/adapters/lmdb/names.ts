/** Names that become part of keys. */
import { IsthmusError, show } from '../../errors.js';

/** LMDB's keys are of 1978 bytes at most, and a character takes up to three of UTF-8. */
const MOST_LENGTH = 512;

/** Throws `invalidArgument` for a name that cannot stand in a key: there, a zero ends it. */
export function checkName(what: string, name: unknown): void {
  if (typeof name === 'string' && name.length >= 1 && name.length <= MOST_LENGTH && !name.includes('\0')) return;
  const rule = `a name is a text of 1 to ${MOST_LENGTH} characters without a zero`;
  throw new IsthmusError('invalidArgument', `${what} ${show(name)}: ${rule}`);
}
