/** The members of the cluster that sends, as one of them asks the others. */
import type { CheckedParent, MemberReport, Posture, ReleaseReading } from '../sender/index.js';

/** What a member is asked to check, as it can travel between members. */
export interface MemberCheck {
  readonly remote: string;
  /** The topic there. */
  readonly topic: string;
  readonly parent: CheckedParent;
  readonly credentialVersion: number;
}

/** Asks members. A rejection is a member that does not answer. */
export interface ClusterMembers {
  /** All members, this one among them, those that are down too. */
  names(): readonly string[];
  /** What their releases apply; `error` where it could not be read. */
  releases(): Promise<ReleaseReading>;
  posture(member: string, signal: AbortSignal): Promise<Posture>;
  /** The other side answers with its sender's `checkHere`. Not asked of this node. */
  check(member: string, check: MemberCheck, signal: AbortSignal): Promise<MemberReport>;
}
