/**
 * The rate limit towards one remote cluster, for both paths together, shared by all segments that replicate to it: a
 * cluster that comes back after a day must not fill the line. Off unless set.
 *
 * It is asked before a read is issued, so that nothing read waits in memory. How much a read will bring is not known
 * then, so an admission *claims* what it allows, in the same step, and nobody else is told of the same tokens; what the
 * read brought is charged when it comes back, as a debt where it was more. A claim lasts a second at most: a read that
 * is still out then is one that waits at the end of its segment, and must not keep others from reading; nor can a
 * claim that is never settled stop anything.
 *
 * Served in the order of asking, one read a key, and no read is told more than a tenth of a second's worth: a
 * round-robin in which neither many small readers nor one large backlog keeps the others waiting. Like the budget, and
 * for the same reason, it is a mutable machine without inputs other than its arguments.
 */
import { Line } from './line.js';
import { requireCount, requireLimit, SteadyTime, TokenBucket } from './token-bucket.js';

/** How long a read may be out before its claim is given to others. */
const CLAIM_MS = 1_000;

/** The most that one read is told to bring, as a share of a second's worth. */
const READ_SHARE = 1 / 10;

/** What may go to a remote cluster. A member that is absent is no limit; each must be at least 1. */
export interface RateLimitSettings {
  readonly bytesPerSecond?: number;
  readonly messagesPerSecond?: number;
}

/** The size of a read: wanted, allowed or done. */
export interface ReadSize {
  readonly bytes: number;
  readonly messages: number;
}

/** What the driver is to do. */
export type RateLimitEffect =
  /** This key may issue one read, of what is allowed or one entry where that is larger; `charge` or `release` ends it. */
  | { readonly type: 'admitted'; readonly key: string; readonly allowed: ReadSize }
  /** Call `tick` at this time; replaces the timer that was set. */
  | { readonly type: 'wake'; readonly atMs: number };

const NO_EFFECTS: readonly RateLimitEffect[] = Object.freeze([]);

/**
 * Bytes and messages per second to one remote. Every call takes the time, and returns what follows from it; one that
 * throws (`invalidArgument`) changes nothing.
 */
export class RateLimit {
  private readonly time: SteadyTime;
  private bytes: Limit | undefined;
  private messages: Limit | undefined;
  private readonly waiting = new Line<ReadSize>();

  constructor(settings: RateLimitSettings, nowMs: number) {
    checkSettings(settings);
    this.time = new SteadyTime(nowMs);
    this.apply(settings);
  }

  /** How many keys wait to be admitted. */
  get waitingCount(): number {
    return this.waiting.size;
  }

  /**
   * Asks to issue a read; answered by `admitted`, at once or later. `want` is what it would bring at most, or as far
   * as the reader can tell, both numbers at least 1; a reader that has caught up had better ask for little. A key that
   * waits already keeps its place; one whose read is out starts anew, and nothing is charged for that read.
   */
  admit(key: string, want: ReadSize, nowMs: number): readonly RateLimitEffect[] {
    requireCount('want.bytes', want.bytes, 1);
    requireCount('want.messages', want.messages, 1);
    this.settle(nowMs);
    this.endClaims(key);
    if (this.waiting.get(key) === undefined) this.waiting.append(key, want);
    return this.serve();
  }

  /** What the admitted read of a key has brought, zeros included. */
  charge(key: string, { bytes, messages }: ReadSize, nowMs: number): readonly RateLimitEffect[] {
    requireCount('bytes', bytes, 0);
    requireCount('messages', messages, 0);
    this.settle(nowMs);
    this.endClaims(key);
    this.bytes?.bucket.take(bytes);
    this.messages?.bucket.take(messages);
    return this.serve();
  }

  /** Ends whatever a key has, at no charge: its place in the line, or a read that failed or is not wanted any more. */
  release(key: string, nowMs: number): readonly RateLimitEffect[] {
    this.settle(nowMs);
    this.endClaims(key);
    this.waiting.leave(key);
    return this.serve();
  }

  /** The timer that was asked for has gone off; at any other time it does no harm. */
  tick(nowMs: number): readonly RateLimitEffect[] {
    this.settle(nowMs);
    this.time.woken();
    return this.serve();
  }

  /** Sets the limits anew, as a whole: an absent member switches its limit off. A debt of one that stays on stays. */
  configure(settings: RateLimitSettings, nowMs: number): readonly RateLimitEffect[] {
    checkSettings(settings);
    this.settle(nowMs);
    this.apply(settings);
    return this.serve();
  }

  private apply({ bytesPerSecond, messagesPerSecond }: RateLimitSettings): void {
    this.bytes = changed(this.bytes, bytesPerSecond, this.time.nowMs);
    this.messages = changed(this.messages, messagesPerSecond, this.time.nowMs);
  }

  private settle(clockMs: number): void {
    const nowMs = this.time.advance(clockMs);
    this.bytes?.settle(nowMs);
    this.messages?.settle(nowMs);
  }

  private endClaims(key: string): void {
    this.bytes?.endClaim(key);
    this.messages?.endClaim(key);
  }

  /** Admits in the order of the line as far as it goes, and sees to the timer for the first that has to wait. */
  private serve(): readonly RateLimitEffect[] {
    if (this.waiting.size === 0) return NO_EFFECTS;
    const effects: RateLimitEffect[] = [];
    for (let next = this.waiting.first; next !== undefined; next = this.waiting.first) {
      const { key, item: want } = next;
      const waitMs = Math.max(this.bytes?.readyInMs(want.bytes) ?? 0, this.messages?.readyInMs(want.messages) ?? 0);
      if (waitMs > 0) {
        const atMs = this.time.wakeAfter(waitMs);
        if (atMs !== undefined) effects.push({ type: 'wake', atMs });
        break;
      }
      this.waiting.leave(key);
      const bytes = this.bytes?.claim(key, want.bytes) ?? want.bytes;
      const messages = this.messages?.claim(key, want.messages) ?? want.messages;
      effects.push({ type: 'admitted', key, allowed: { bytes, messages } });
    }
    return effects;
  }
}

interface Claim {
  readonly amount: number;
  readonly untilMs: number;
}

/** One of the two resources: a bucket of one second's worth, and what of it is claimed. */
class Limit {
  readonly bucket: TokenBucket;
  /** In the order in which they end. */
  private readonly claims = new Line<Claim>();
  private claimed = 0;

  constructor(
    private perSecond: number,
    private settledAtMs: number,
  ) {
    this.bucket = new TokenBucket(perSecond, perSecond, settledAtMs);
  }

  settle(nowMs: number): void {
    this.bucket.settle(nowMs);
    this.settledAtMs = nowMs;
    for (let next = this.claims.first; next !== undefined && next.item.untilMs <= nowMs; next = this.claims.first) {
      this.endClaim(next.key);
    }
  }

  /** How long until a read that wants this much may go, or a claim ends and it is worth another look; 0 for now. */
  readyInMs(wanted: number): number {
    const waitMs = this.bucket.reachesInMs(this.claimed + this.told(wanted));
    const claim = this.claims.first?.item;
    return claim === undefined ? waitMs : Math.min(waitMs, claim.untilMs - this.settledAtMs);
  }

  /** Claims what a read is told it may bring. */
  claim(key: string, wanted: number): number {
    const amount = this.told(wanted);
    this.claims.append(key, { amount, untilMs: this.settledAtMs + CLAIM_MS });
    this.claimed += amount;
    return amount;
  }

  endClaim(key: string): void {
    this.claimed -= this.claims.leave(key)?.amount ?? 0;
  }

  resize(perSecond: number): void {
    this.perSecond = perSecond;
    this.bucket.resize(perSecond, perSecond);
  }

  private told(wanted: number): number {
    return Math.min(wanted, Math.max(1, Math.floor(this.perSecond * READ_SHARE)));
  }
}

function changed(limit: Limit | undefined, perSecond: number | undefined, nowMs: number): Limit | undefined {
  if (perSecond === undefined) return undefined;
  if (limit === undefined) return new Limit(perSecond, nowMs);
  limit.resize(perSecond);
  return limit;
}

function checkSettings({ bytesPerSecond, messagesPerSecond }: RateLimitSettings): void {
  if (bytesPerSecond !== undefined) requireLimit('bytesPerSecond', bytesPerSecond);
  if (messagesPerSecond !== undefined) requireLimit('messagesPerSecond', messagesPerSecond);
}
