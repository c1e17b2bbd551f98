/**
 * A segment that several processes share: claimed, replicated while the claim holds, given back or lost, and claimed
 * again. Its cursor is read anew with each claim, since others have moved it meanwhile; a session of its own tells the
 * processes apart (R15).
 */
import { messageOf } from '../errors.js';
import type { Segment } from '../layout/index.js';
import type { Clock, CursorRecord, CursorStore, EntrySource, SegmentClaim } from '../ports/index.js';
import type { SegmentDriver } from './segment.js';

/** What claiming needs of the replicator. */
export interface ClaimHost {
  readonly source: EntrySource;
  readonly cursors: CursorStore;
  readonly clock: Clock;
  /** Takes up a segment that is this process's own now. */
  begin(segment: Segment, record: CursorRecord): SegmentDriver;
  /** It is not this process's own any more. */
  end(segment: Segment): void;
  /** The cursors cannot be read; undefined: they can again. */
  failed(reason: string | undefined): void;
}

const RETRY_MS = 1_000;
const MAX_RETRY_MS = 10_000;

/** Runs until the segment is drained and acknowledged, has failed for good, or the signal aborts. */
export async function shareSegment(segment: Segment, host: ClaimHost, signal: AbortSignal): Promise<void> {
  const { source, clock } = host;
  for (;;) {
    const claim = await source.claim?.(segment.segmentId, signal);
    if (claim === undefined) return;
    try {
      const driver = host.begin(segment, await freshRecord(segment.segmentId, host, signal));
      const how = await Promise.race([claim.ending, driver.ended]);
      if (how === 'lost') driver.abandon();
      if (how === 'asked') driver.dispatch({ type: 'stop' });
      const end = await driver.ended;
      if (end === 'failed') return;
      if (end === 'drained') {
        await untilAcknowledged(driver, claim, clock, signal);
        if (driver.isAcknowledged) return;
      }
      // Who was replaced may have its turn again; everything else that stops a segment is an operator's to mend, here.
      const { waitingFor } = driver.status();
      const isMended = waitingFor.for !== 'operator' || waitingFor.reason === 'fenced';
      if (!isMended && how !== 'lost') await claim.ending;
    } finally {
      await claim.release().catch(() => undefined);
    }
    host.end(segment);
    await clock.sleep(RETRY_MS, signal);
  }
}

/**
 * A drained segment is kept until the source counts it as acknowledged: the last acknowledgement may be lost, and
 * whatever holds no entry of anybody's may be left; nobody would make up for it later, and the source would keep the
 * segment as garbage.
 */
async function untilAcknowledged(
  driver: SegmentDriver,
  claim: SegmentClaim,
  clock: Clock,
  signal: AbortSignal,
): Promise<void> {
  const ending = new AbortController();
  void claim.ending.then(() => ending.abort());
  const either = AbortSignal.any([signal, ending.signal]);
  for (let waitMs = RETRY_MS; !ending.signal.aborted; waitMs = Math.min(MAX_RETRY_MS, waitMs * 2)) {
    await driver.refreshBacklog();
    if (driver.isAcknowledged) return;
    await clock.sleep(waitMs, either).catch(() => signal.throwIfAborted());
  }
}

/** The cursor as it is stored now, in a session later than any before. */
async function freshRecord(segmentId: number, host: ClaimHost, signal: AbortSignal): Promise<CursorRecord> {
  for (;;) {
    try {
      const records = await host.cursors.load();
      host.failed(undefined);
      const session = 1 + Math.max(0, ...Array.from(records.values(), (record) => record.session));
      return { drained: false, skipped: [], checkpoints: new Map(), ...records.get(segmentId), session };
    } catch (error) {
      signal.throwIfAborted();
      host.failed(`the cursors: ${messageOf(error)}`);
    }
    await host.clock.sleep(RETRY_MS, signal);
  }
}
