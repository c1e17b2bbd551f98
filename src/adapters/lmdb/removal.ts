/**
 * Removing what deleted segments leave behind, some rows a transaction: one transaction for a segment of a million
 * entries would hold up every append for as long as it takes. A segment's row goes last, so that what a crash cuts
 * off is found and finished at the next opening.
 */
import { entryKey } from './entry-keys.js';
import type { Environment } from './environment.js';
import { rowsOf } from './windows.js';
import type { WriteQueue } from './write-queue.js';
import type { WriteTransaction } from './write-transaction.js';

/** How many rows go at once. */
const ROWS = 1024;

/** A deleted segment. */
interface Remains {
  readonly topicId: number;
  readonly segmentId: number;
}

/** Removes what is left of deleted segments in the whole store; rejects when the store stops. */
export async function removeDeleted(environment: Environment, queue: WriteQueue): Promise<void> {
  for (const remains of remainsIn(environment)) {
    while (await queue.transact((transaction) => removeSome(transaction, remains))) {
      // The queue puts the appends that wait meanwhile into the same transactions.
    }
  }
}

function remainsIn({ tables }: Environment): Remains[] {
  const remains: Remains[] = [];
  for (const { key, value } of tables.segments.getRange({})) {
    if (value.state === 'deleted') remains.push({ topicId: key[0], segmentId: key[1] });
  }
  return remains;
}

/** True while there is more to remove. */
function removeSome(transaction: WriteTransaction, { topicId, segmentId }: Remains): boolean {
  const { tables } = transaction;
  if (transaction.segment(topicId, segmentId)?.state !== 'deleted') return false;
  const range = { start: entryKey(topicId, segmentId, 0), end: entryKey(topicId, segmentId + 1, 0), limit: ROWS };
  const entries = [...tables.entries.getKeys(range)];
  for (const key of entries) tables.entries.removeSync(key);
  if (entries.length === ROWS) return true;
  const windows = [...tables.windows.getKeys({ ...rowsOf(topicId, segmentId), limit: ROWS })];
  for (const key of windows) tables.windows.removeSync(key);
  if (windows.length === ROWS) return true;
  for (const key of [...tables.acknowledged.getKeys({ start: [topicId], end: [topicId + 1] })]) {
    if (key[2] === segmentId) tables.acknowledged.removeSync(key);
  }
  transaction.putSegment(topicId, segmentId, undefined);
  return false;
}
