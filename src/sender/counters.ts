/** What a node's sender counts. The names are those of the metrics a broker of this kind exports, without its prefix. */
import type { ErrorClass } from './answer-table.js';
import type { ReadClass } from './answers.js';

/** Counts of one remote on one node. */
export interface RemoteCounters {
  /** Failed requests with records, and failed target checks, by class. */
  remoteErrorsTotal: { [name in ErrorClass | ReadClass]?: number };
  /** Records whose request failed without telling whether they were stored, counted at the failure. */
  remoteResentRecordsTotal: number;
  /** Bytes of bodies after compression and before it; of failed requests too. */
  remoteWireBytesTotal: number;
  remoteBodyBytesTotal: number;
  /** All requests, by the status of the answer, or `error`. */
  remoteRequestsTotal: { [code: string]: number };
}

export function newRemoteCounters(): RemoteCounters {
  return {
    remoteErrorsTotal: {},
    remoteResentRecordsTotal: 0,
    remoteWireBytesTotal: 0,
    remoteBodyBytesTotal: 0,
    remoteRequestsTotal: {},
  };
}

/** Counts of one link on one node. */
export interface LinkCounters {
  fanoutRemoteCheckFailuresTotal: number;
  fanoutRemoteSkippedRecordsTotal: number;
  fanoutRemoteRereadsTotal: number;
  /** Records that the parent's retention took before they were sent. */
  fanoutChildDroppedMessages: number;
}

export function newLinkCounters(): LinkCounters {
  return {
    fanoutRemoteCheckFailuresTotal: 0,
    fanoutRemoteSkippedRecordsTotal: 0,
    fanoutRemoteRereadsTotal: 0,
    fanoutChildDroppedMessages: 0,
  };
}

/** Adds one under a name. */
export function count<Name extends string>(counts: { [name in Name]?: number }, name: Name): void {
  counts[name] = (counts[name] ?? 0) + 1;
}
