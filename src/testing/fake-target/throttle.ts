/** How a target slows down those who guess passwords. */

/** So many at once, and then one per interval. */
class Allowance {
  private left: number;
  private atMs = 0;

  constructor(
    private readonly most: number,
    private readonly refillMs: number,
  ) {
    this.left = most;
  }

  take(nowMs: number): boolean {
    this.left = Math.min(this.most, this.left + Math.max(0, nowMs - this.atMs) / this.refillMs);
    this.atMs = nowMs;
    if (this.left < 1) return false;
    this.left -= 1;
    return true;
  }
}

/** Failed logins: five of a user, then one in 12 s; 32 of the whole node, refilled at four a second. */
export class LoginThrottle {
  private readonly node = new Allowance(32, 250);
  private readonly users = new Map<string, Allowance>();

  /** Whether a wrong password of this user is still answered as one. */
  allows(user: string, nowMs: number): boolean {
    const own = this.users.get(user) ?? new Allowance(5, 12_000);
    this.users.set(user, own);
    return own.take(nowMs) && this.node.take(nowMs);
  }
}
