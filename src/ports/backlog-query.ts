/** How much a subscription has still to consume of a segment: what the garbage collector of sealed segments asks. */
export interface BacklogQuery {
  /** The subscriptions of the topic, replication cursors not among them. */
  subscriptions(): Promise<readonly string[]>;
  /** Entries not acknowledged, 0 when drained. A rejection is an unknown, never a no (GC gate). */
  backlog(segmentId: number, subscription: string): Promise<number>;
}
