/** Arguments of callers that the protocol cannot carry, or that would do harm. */
import { IsthmusError, show } from '../../../errors.js';
import type { EntryPosition } from './types.js';

const MAX_ID = (1n << 63n) - 1n;

/** Refuses, as `invalidArgument`, an empty name, and a scheme under which a broker makes a shadow topic that no consumer reads. */
export function checkDataTopic(topic: string): void {
  if (topic !== '' && !topic.startsWith('topic://')) return;
  throw new IsthmusError('invalidArgument', `topic ${show(topic)}: data is in segment:// or persistent:// topics`);
}

/** Refuses, as `invalidArgument`, an id outside 0..2^63-1. */
export function checkId(name: string, id: bigint): void {
  if (id >= 0n && id <= MAX_ID) return;
  throw new IsthmusError('invalidArgument', `${name} is ${show(id)}: 0..2^63-1`);
}

/** Refuses, as `invalidArgument`, a position whose ids are out of range. */
export function checkPosition({ ledgerId, entryId }: EntryPosition): void {
  checkId('ledgerId', ledgerId);
  checkId('entryId', entryId);
}
