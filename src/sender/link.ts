/** One attachment of a parent to a topic of a remote, as a node runs it: its record, its check, and its cursors. */
import { newLinkCounters } from './counters.js';
import type { GateWaiter } from './gate.js';
import type { Hub } from './hub.js';
import type { LinkRecord } from './ports.js';
import type { RemoteShare } from './remote-share.js';
import { TargetCheck } from './target-check.js';

/** What a link's change is told to. */
export interface LinkCursor extends GateWaiter {
  /** The link's record, or the remote, has changed: what waits for somebody to act tries again. */
  changed(): void;
  /** The link is gone. */
  cancel(): void;
}

export class Link {
  readonly counters = newLinkCounters();
  readonly cursors = new Set<LinkCursor>();
  readonly check: TargetCheck;
  /** When a target last accepted records; it only grows. */
  lastSuccessMs: number | undefined;

  constructor(
    public record: LinkRecord,
    readonly remote: RemoteShare,
    hub: Hub,
  ) {
    const told = () => {
      for (const cursor of this.cursors) hub.run(cursor);
    };
    this.check = new TargetCheck(hub, remote, () => this.record, this.counters, told);
  }

  /** A new record of the same attachment. */
  update(record: LinkRecord): void {
    this.record = record;
    this.changed();
  }

  changed(): void {
    this.check.hurry();
    for (const cursor of this.cursors) cursor.changed();
  }

  isSkipped(partition: number, offset: number): boolean {
    return this.record.skips.some((skip) => skip.partition === partition && skip.offset === offset);
  }
}
