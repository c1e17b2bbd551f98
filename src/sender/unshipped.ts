/**
 * The proof, before a remote child or its parent is deleted, that everything was shipped. The order is the proof: first
 * the backlogs of all members, then the lag of all cursors. A record leaves a backlog only once it is committed to the
 * parent, and from then on the lag counts it; read the other way round, it could fall between the two.
 */

/** A member reads at most so many records of its backlog for one question, for so long. */
export const SCAN_LIMITS = Object.freeze({ records: 1_000_000, ms: 12_000 });

/** Records of the parent that a member has accepted and not committed. */
export interface Backlog {
  readonly records: number;
  /** It could not read to the end, so there may be more. */
  readonly isCapped: boolean;
}

/** How far behind the cursor of a partition is, in records. */
export interface CursorLag {
  readonly partition: number;
  readonly lag: number;
}

/** Asks the cluster. A rejection, or one that is later than 15 s, is a member or an owner that did not answer. */
export interface UnshippedPorts {
  backlog(member: string): Promise<Backlog>;
  /** The lags that an owner has of the parent's remote children's cursors. */
  lags(owner: string): Promise<readonly CursorLag[]>;
}

export interface UnshippedQuestion {
  readonly members: readonly string[];
  readonly owners: readonly string[];
  /** Every partition has one cursor for each remote child that is asked about. */
  readonly partitions: number;
  readonly cursorsPerPartition: number;
}

/** What was counted, whatever follows from it. */
export interface UnshippedCount {
  readonly lagMessages: number;
  /** Every partition was reported exactly as often as it has cursors. */
  readonly lagComplete: boolean;
  readonly dispatchBacklog: Readonly<Record<string, number>>;
  readonly notAnswering: readonly string[];
  /** Members whose backlog was too long to read. */
  readonly backlogOverScanLimit: readonly string[];
}

/** Asks all backlogs, and then all lags. */
export async function countUnshipped(ports: UnshippedPorts, question: UnshippedQuestion): Promise<UnshippedCount> {
  const { members, owners } = question;
  const backlogs = await Promise.allSettled(members.map((member) => ports.backlog(member)));
  const lags = await Promise.allSettled(owners.map((owner) => ports.lags(owner)));
  const dispatchBacklog: Record<string, number> = {};
  const silent = new Set<string>();
  const capped: string[] = [];
  backlogs.forEach((answer, index) => {
    const member = members[index] ?? '';
    if (answer.status === 'fulfilled') dispatchBacklog[member] = answer.value.records;
    else silent.add(member);
    if (answer.status === 'fulfilled' && answer.value.isCapped) capped.push(member);
  });
  const cursors: CursorLag[] = [];
  lags.forEach((answer, index) => {
    if (answer.status === 'rejected') silent.add(owners[index] ?? '');
    else cursors.push(...answer.value);
  });
  return {
    lagMessages: cursors.reduce((sum, { lag }) => sum + lag, 0),
    lagComplete: isComplete(cursors, question),
    dispatchBacklog,
    notAnswering: [...silent],
    backlogOverScanLimit: capped,
  };
}

function isComplete(cursors: readonly CursorLag[], { partitions, cursorsPerPartition }: UnshippedQuestion): boolean {
  const found = new Map<number, number>();
  for (const { partition } of cursors) found.set(partition, (found.get(partition) ?? 0) + 1);
  return found.size === partitions && [...found.values()].every((times) => times === cursorsPerPartition);
}

/** Whether nothing is left; anything that could not be counted may be something. */
export function isShipped(count: UnshippedCount): boolean {
  return (
    count.lagMessages === 0 &&
    count.lagComplete &&
    Object.values(count.dispatchBacklog).every((records) => records === 0) &&
    count.notAnswering.length === 0 &&
    count.backlogOverScanLimit.length === 0
  );
}

export type DeleteAnswer =
  | { readonly allowed: true; readonly count: UnshippedCount }
  | { readonly allowed: false; readonly status: 409; readonly count: UnshippedCount };

/** Whether a delete may go on; `force` passes over what is left, and the counts are audited all the same. */
export function judgeDelete(count: UnshippedCount, force: boolean): DeleteAnswer {
  return isShipped(count) || force ? { allowed: true, count } : { allowed: false, status: 409, count };
}
