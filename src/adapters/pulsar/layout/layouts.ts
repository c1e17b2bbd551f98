/**
 * The layout of a scalable topic as its cluster tells it: one layout session, kept open and opened anew with a backoff,
 * for all who read and watch. A broker tells one epoch several times, and each time the whole layout.
 */
import { messageOf } from '../../../errors.js';
import { formatLayout, type Layout, parseLayout, type Segment } from '../../../layout/index.js';
import { Notifier } from '../../../notifier.js';
import type { Clock, LayoutReader } from '../../../ports/index.js';
import { type Closed, type LayoutUpdate, type PulsarClient, SERVER_ERROR, type Session } from '../protocol/index.js';
import { after, processClock } from '../protocol/time.js';

export interface PulsarLayoutsOptions {
  /** With the right to produce or to consume. */
  readonly client: PulsarClient;
  /** `topic://tenant/namespace/name`; it is never created. */
  readonly topic: string;
  /** Default: the clock of this process. */
  readonly clock?: Clock;
}

const RETRY_INITIAL_MS = 100;
const RETRY_MAX_MS = 10_000;
/** How long `load` waits for a session. */
const LOAD_MS = 20_000;

/** The session is opened with the first question, and closed by `close`. */
export class PulsarLayouts implements LayoutReader {
  private readonly clock: Clock;
  private readonly changes = new Notifier();
  private readonly closing = new AbortController();
  private readonly closed: Promise<undefined>;
  private following: Promise<void> | undefined;
  private current: Layout | undefined;
  private session: Session | undefined;
  /** Why there is no session now. */
  private failure = 'not asked yet';

  constructor(private readonly options: PulsarLayoutsOptions) {
    this.clock = options.clock ?? processClock;
    this.closed = new Promise((resolve) => {
      this.closing.signal.addEventListener('abort', () => resolve(undefined), { once: true });
    });
  }

  /** The layout as last told, whether or not there is a session now. */
  get latest(): Layout | undefined {
    return this.current;
  }

  /** Why there is no session now; undefined while there is one, or none was needed yet. */
  get trouble(): string | undefined {
    return this.session === undefined && this.following !== undefined ? this.failure : undefined;
  }

  async load(): Promise<Layout> {
    this.follow();
    const limitMs = this.clock.now() + LOAD_MS;
    for (;;) {
      if (this.current !== undefined && this.session !== undefined) return this.current;
      const waitMs = limitMs - this.clock.now();
      if (waitMs <= 0 || this.closing.signal.aborted) {
        throw new Error(`the layout of ${this.options.topic} is not known: ${this.failure}`);
      }
      await this.change(waitMs);
    }
  }

  async *watch(signal: AbortSignal): AsyncIterable<Layout> {
    this.follow();
    let told: Layout | undefined;
    while (!signal.aborted && !this.closing.signal.aborted) {
      const { current } = this;
      if (current !== undefined && current !== told) {
        told = current;
        yield current;
        continue;
      }
      await this.changes.changed(signal).catch(() => undefined);
    }
  }

  /** A layout that was read in another way, such as after an operation. Returns the newest that is known. */
  take(epoch: number, segments: Iterable<Segment>): Layout {
    const told = [...segments];
    const { current } = this;
    if (current !== undefined && epoch <= current.epoch && !isOfAnother(current, told)) return current;
    this.current = layoutOf(epoch, told);
    this.changes.wake();
    return this.current;
  }

  async close(): Promise<void> {
    this.closing.abort();
    this.session?.close();
    this.session = undefined;
    this.failure = 'it is not followed any more';
    this.changes.wake();
    await this.following;
  }

  private follow(): void {
    this.following ??= this.keepSession(this.closing.signal).catch(() => undefined);
  }

  private async keepSession(signal: AbortSignal): Promise<void> {
    let retryMs = RETRY_INITIAL_MS;
    while (!signal.aborted) {
      const ended = await this.openSession();
      if (typeof ended === 'string') this.failure = ended;
      else {
        retryMs = RETRY_INITIAL_MS;
        // A session that is closed from here says nothing more.
        const closed = await Promise.race([ended.closed, this.closed]);
        if (closed === undefined) return;
        this.failure = reasonOf(closed);
        this.session = undefined;
      }
      this.changes.wake();
      if (signal.aborted) return;
      await this.clock.sleep(retryMs, signal);
      retryMs = Math.min(RETRY_MAX_MS, retryMs * 2);
    }
  }

  /** The end of a session that was opened, or why there is none. */
  private async openSession(): Promise<string | { readonly closed: Promise<Closed> }> {
    const { client, topic } = this.options;
    let onClosed: (closed: Closed) => void = () => undefined;
    const closed = new Promise<Closed>((resolve) => {
      onClosed = resolve;
    });
    const result = await client.openLayoutSession(topic, { onUpdate: (update) => this.tell(update), onClosed });
    if (result.type === 'refused') {
      // One that is created again begins anew, at a lower epoch.
      if (result.code === SERVER_ERROR.topicNotFound) this.current = undefined;
      return `${result.message} (error ${result.code})`;
    }
    if (result.type !== 'opened') return result.reason;
    if (this.closing.signal.aborted) {
      result.session.close();
      return 'closed';
    }
    this.session = result.session;
    this.tell(result.first);
    return { closed };
  }

  private tell({ epoch, segments }: LayoutUpdate): void {
    try {
      this.take(epoch, segments);
    } catch (error) {
      // A layout that breaks its own rules is not followed; the last good one stands, and operators see why.
      this.failure = messageOf(error);
    }
    this.changes.wake();
  }

  /** Waits for news, but not for long. */
  private async change(waitMs: number): Promise<void> {
    const limit = new AbortController();
    const stopTimer = after(this.clock, waitMs, () => limit.abort());
    await this.changes.changed(limit.signal).catch(() => undefined);
    stopTimer();
  }
}

/**
 * True for segments, told under no higher epoch, of a topic that was deleted and created again: epochs begin anew there,
 * and the session goes on. An older layout of the same topic has no segment that is younger than all of the newer one.
 */
function isOfAnother(current: Layout, told: readonly Segment[]): boolean {
  const youngest = Math.max(...Array.from(current.segments.values(), ({ createdAtMs }) => createdAtMs));
  return told.some(({ createdAtMs }) => createdAtMs > youngest);
}

/** A layout from what a cluster tells of it; ids are never reused, and the newest segment is never pruned before its successors are there. */
function layoutOf(epoch: number, told: Iterable<Segment>): Layout {
  const segments = new Map(Array.from(told, (segment) => [segment.segmentId, segment]));
  const nextSegmentId = 1 + Math.max(-1, ...segments.keys());
  return parseLayout(formatLayout({ epoch, nextSegmentId, segments, active: [], properties: {}, deleted: false }));
}

function reasonOf(closed: Closed): string {
  switch (closed.type) {
    case 'closedByBroker':
      return 'the broker has closed the session';
    case 'refused':
      return `${closed.message} (error ${closed.code})`;
    case 'disconnected':
      return closed.reason;
  }
}
