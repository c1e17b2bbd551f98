/** What is refused before a sender takes it in: names, limits and offsets outside their rules. */
import { IsthmusError, show } from '../errors.js';
import type { LinkRecord, RemoteLookup, Slab } from './ports.js';

const TOPIC_NAME = /^[A-Za-z0-9._-]{1,200}$/;
const REMOTE_ID = /^[0-9a-f]{16}$/;

/** The limits of a remote: what each may be, and what it is when nothing is said. */
export const REMOTE_LIMITS = Object.freeze({
  maxInFlight: { least: 1, most: 256, default: 16 },
  requestTimeoutMs: { least: 5_000, most: 120_000, default: 30_000 },
  checkIntervalMs: { least: 10_000, most: 3_600_000, default: 60_000 },
});

/** Throws `invalidArgument` for an ID, a version or a limit outside its range. */
export function checkLimits(lookup: RemoteLookup): void {
  if (lookup.state !== 'ready') return;
  const { remoteId, credentialVersion, limits } = lookup;
  if (!REMOTE_ID.test(remoteId)) throw refused('remoteId', remoteId, 'it must be 16 lower-case hexadecimal digits');
  if (!Number.isSafeInteger(credentialVersion) || credentialVersion < 1) {
    throw refused('credentialVersion', credentialVersion, 'it must be an integer of at least 1');
  }
  for (const [name, { least, most }] of Object.entries(REMOTE_LIMITS)) {
    const value = limits[name as keyof typeof REMOTE_LIMITS];
    if (!Number.isSafeInteger(value) || value < least || value > most) {
      throw refused(name, value, `it must be an integer from ${least} to ${most}`);
    }
  }
}

/** A topic's name as it may stand in a path. */
export function checkTopicName(name: string, value: string): void {
  if (!TOPIC_NAME.test(value) || value === '.' || value === '..') {
    throw refused(name, value, 'it must be 1 to 200 letters, digits, dots, underscores and hyphens, not . or ..');
  }
}

export function checkLink(child: string, record: LinkRecord): void {
  if (record.child !== child) throw refused('record.child', record.child, `it must be the link's child ${show(child)}`);
  checkTopicName('child', record.child);
  checkTopicName('topic', record.topic);
  checkTopicName('parent', record.parent);
  checkOffset('attachEpoch', record.attachEpoch);
}

/** A count from 0 that a number can hold exactly. */
export function checkOffset(name: string, value: number): void {
  if (!Number.isSafeInteger(value) || value < 0) throw refused(name, value, 'it must be a safe integer of at least 0');
}

/** A slab that goes back, or leaves a gap that it does not own up to, would lose records or send them in another order. */
export function checkSlab({ records, nextOffset, lost }: Slab, offset: number): void {
  checkOffset('nextOffset', nextOffset);
  let next = offset;
  if (lost !== undefined) {
    checkOffset('lost.from', lost.from);
    if (lost.from < offset || lost.to < lost.from) throw refused('lost', lost, `it must be offsets from ${offset} on`);
    next = lost.to + 1;
  }
  for (const { offset: at } of records) {
    checkOffset('offset', at);
    if (at < next) throw refused('offset', at, `records of a slab ascend, and this one follows ${next - 1}`);
    next = at + 1;
  }
  if (nextOffset < next) throw refused('nextOffset', nextOffset, `it must be at least ${next}`);
}

/** What is wrong with a value, and the rule it breaks. */
export function refused(name: string, value: unknown, rule: string): IsthmusError {
  return new IsthmusError('invalidArgument', `${name} ${show(value)}: ${rule}`);
}
