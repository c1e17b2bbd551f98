/**
 * A network in virtual time that does what networks do: it loses, delays, duplicates and reorders messages, and
 * links go down. Everything it does by chance comes from one seeded source. By hand it does nothing by itself: messages
 * wait until they are delivered, dropped or copied one by one, which is how scenarios are told.
 */
import type { VirtualClock } from './virtual-clock.js';

/** A source of numbers in [0, 1) that is the same for the same seed (mulberry32). */
export function seededRandom(seed: number): () => number {
  let a = seed | 0;
  return () => {
    a = (a + 0x6d2b79f5) | 0;
    let t = Math.imul(a ^ (a >>> 15), 1 | a);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** What a link does to messages. Rates are in 0..1. */
export interface LinkFaults {
  readonly lossRate: number;
  readonly duplicateRate: number;
  /** Each message takes a random time of this range, in whole milliseconds; so messages overtake each other. */
  readonly delayMs: readonly [least: number, most: number];
}

/** A network that works. */
export const NO_FAULTS: LinkFaults = Object.freeze({ lossRate: 0, duplicateRate: 0, delayMs: [10, 10] as const });

export interface LossyNetworkOptions<Message> {
  readonly clock: VirtualClock;
  readonly random: () => number;
  /** Hands a message over at its destination. */
  readonly deliver: (transit: Transit<Message>) => void;
  /** Default: none. */
  readonly faults?: LinkFaults;
  /** Messages wait for `deliver`, `drop` and `duplicate`; default false. */
  readonly byHand?: boolean;
}

/** A message on its way. */
export interface Transit<Message> {
  readonly from: string;
  readonly to: string;
  readonly message: Message;
}

export class LossyNetwork<Message> {
  faults: LinkFaults;
  /** Messages that wait to be handled by hand, the oldest first. */
  readonly waiting: Transit<Message>[] = [];
  private readonly cut = new Set<string>();

  constructor(private readonly options: LossyNetworkOptions<Message>) {
    this.faults = options.faults ?? NO_FAULTS;
  }

  send(from: string, to: string, message: Message): void {
    const transit = { from, to, message };
    if (this.options.byHand === true) {
      this.waiting.push(transit);
      return;
    }
    const { random } = this.options;
    if (random() < this.faults.lossRate) return;
    const copies = random() < this.faults.duplicateRate ? 2 : 1;
    for (let copy = 0; copy < copies; copy++) this.carry(transit);
  }

  /** Takes the link between two clusters down, in both directions; what is on its way is lost unless it heals in time. */
  partition(a: string, b: string): void {
    this.cut.add(linkOf(a, b));
  }

  heal(a: string, b: string): void {
    this.cut.delete(linkOf(a, b));
  }

  healAll(): void {
    this.cut.clear();
  }

  isCut(a: string, b: string): boolean {
    return this.cut.has(linkOf(a, b));
  }

  /** Hands over a message that waits. It is lost when its link is down. */
  deliver(transit: Transit<Message>): void {
    this.drop(transit);
    if (!this.isCut(transit.from, transit.to)) this.options.deliver(transit);
  }

  /** Loses a message that waits. */
  drop(transit: Transit<Message>): void {
    const at = this.waiting.indexOf(transit);
    if (at >= 0) this.waiting.splice(at, 1);
  }

  /** Makes a copy of a message, to be delivered once more. */
  duplicate({ from, to, message }: Transit<Message>): void {
    this.waiting.push({ from, to, message });
  }

  private carry(transit: Transit<Message>): void {
    const [least, most] = this.faults.delayMs;
    const delayMs = least + Math.floor(this.options.random() * (most - least + 1));
    this.options.clock.schedule(delayMs, () => {
      if (!this.isCut(transit.from, transit.to)) this.options.deliver(transit);
    });
  }
}

function linkOf(a: string, b: string): string {
  return a < b ? `${a}|${b}` : `${b}|${a}`;
}
