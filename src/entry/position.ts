/**
 * Where an entry, or a part of one, came from: the value of the source-position property (E10). The ids are exact
 * 64-bit numbers; their order, which dedup compares, is in the dedup room.
 */
import { IsthmusError, show } from '../errors.js';

/** A position in a source segment. `part` is the end hash of a re-batched part (R11), absent for a whole entry. */
export interface SourcePosition {
  /** 0..2^63-1. */
  readonly ledgerId: bigint;
  /** 0..2^63-1. */
  readonly entryId: bigint;
  /** 0..0xFFFF. */
  readonly part?: number;
}

const LAST_ID = (1n << 63n) - 1n;
const FORM = /^(\d{1,19}):(\d{1,19})(?::(\d{1,5}))?$/;

/** `ledger:entry` or `ledger:entry:part`, decimal. Throws `invalidPosition` on numbers out of range. */
export function formatSourcePosition(position: SourcePosition): string {
  const { ledgerId, entryId, part } = position;
  checkPosition(position, position);
  return part === undefined ? `${ledgerId}:${entryId}` : `${ledgerId}:${entryId}:${part}`;
}

/** Reads exactly two or three non-negative decimal numbers. Throws `invalidPosition` on anything else (B28). */
export function parseSourcePosition(text: string): SourcePosition {
  const match = FORM.exec(text);
  if (match === null) {
    throw new IsthmusError(
      'invalidPosition',
      `source position ${show(text)}: two or three decimal numbers with colons`,
    );
  }
  const [, ledger, entry, part] = match as unknown as [string, string, string, string | undefined];
  const position: SourcePosition = {
    ledgerId: BigInt(ledger),
    entryId: BigInt(entry),
    ...(part === undefined ? {} : { part: Number(part) }),
  };
  checkPosition(position, text);
  return position;
}

/** The text `ledger:` of the last position written: entries come from one ledger for long. */
let lastLedgerId: bigint | undefined;
const ledgerText = new Uint8Array(24);
let ledgerLength = 0;

/**
 * Writes a position's text to `target`, which has room for 45 bytes, and returns its length. Ids of up to 53 bits
 * take a short way, since every forwarded entry passes here. Throws `invalidPosition`. @internal
 */
export function writePosition(target: Uint8Array, position: SourcePosition | string): number {
  if (typeof position !== 'string' && isLedgerReady(position.ledgerId)) {
    const entryId = Number(position.entryId);
    const { part } = position;
    if (isSmallId(position.entryId, entryId) && (part === undefined || isPart(part))) {
      for (let i = 0; i < ledgerLength; i++) target[i] = ledgerText[i] as number;
      const at = writeDecimal(target, ledgerLength, entryId);
      if (part === undefined) return at;
      target[at] = COLON;
      return writeDecimal(target, at + 1, part);
    }
  }
  if (typeof position === 'string') parseSourcePosition(position);
  const text = typeof position === 'string' ? position : formatSourcePosition(position);
  for (let i = 0; i < text.length; i++) target[i] = text.charCodeAt(i);
  return text.length;
}

/** True when `ledgerText` is that of this ledger; false for one beyond 53 bits, or none at all. */
function isLedgerReady(ledgerId: bigint): boolean {
  if (ledgerId === lastLedgerId) return true;
  const value = Number(ledgerId);
  if (!isSmallId(ledgerId, value)) return false;
  ledgerLength = writeDecimal(ledgerText, 0, value);
  ledgerText[ledgerLength++] = COLON;
  lastLedgerId = ledgerId;
  return true;
}

const COLON = 0x3a;
const ZERO = 0x30;

function isSmallId(id: unknown, value: number): boolean {
  return typeof id === 'bigint' && value >= 0 && value <= Number.MAX_SAFE_INTEGER;
}

function writeDecimal(target: Uint8Array, at: number, value: number): number {
  let digits = 1;
  for (let bound = 10; value >= bound; bound *= 10) digits++;
  let rest = value;
  let to = at + digits;
  // Beyond 31 bits a division is one of doubles; ids of that size are rare.
  for (; rest > 0x7fffffff; rest = Math.floor(rest / 10)) target[--to] = ZERO + (rest % 10);
  let small = rest | 0;
  while (to > at) {
    const tenth = (small / 10) | 0;
    target[--to] = ZERO + small - tenth * 10;
    small = tenth;
  }
  return at + digits;
}

function isPart(part: number): boolean {
  return Number.isInteger(part) && part >= 0 && part <= 0xffff;
}

function checkPosition({ ledgerId, entryId, part }: SourcePosition, shown: unknown): void {
  if (typeof ledgerId !== 'bigint' || typeof entryId !== 'bigint') {
    throw new IsthmusError('invalidPosition', `source position ${show(shown)}: ledger and entry ids are bigint`);
  }
  if (ledgerId < 0n || ledgerId > LAST_ID || entryId < 0n || entryId > LAST_ID) {
    throw new IsthmusError('invalidPosition', `source position ${show(shown)}: ids are 0..2^63-1`);
  }
  if (part !== undefined && !isPart(part)) {
    throw new IsthmusError('invalidPosition', `source position ${show(shown)}: a part is an integer of 0..0xFFFF`);
  }
}
