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

/**
 * Writes a position's text to `target`, which has room for 45 bytes, and returns its length. Ids of up to 53 bits
 * take a short way, since every forwarded entry passes here. Throws `invalidPosition`. @internal
 */
export function writePosition(target: Uint8Array, position: SourcePosition | string): number {
  if (typeof position !== 'string') {
    const ledgerId = Number(position.ledgerId);
    const entryId = Number(position.entryId);
    if (isSmallId(position.ledgerId, ledgerId) && isSmallId(position.entryId, entryId) && position.part === undefined) {
      const at = writeDecimal(target, 0, ledgerId);
      target[at] = COLON;
      return writeDecimal(target, at + 1, entryId);
    }
  } else parseSourcePosition(position);
  const text = typeof position === 'string' ? position : formatSourcePosition(position);
  for (let i = 0; i < text.length; i++) target[i] = text.charCodeAt(i);
  return text.length;
}

const COLON = 0x3a;

function isSmallId(id: unknown, value: number): boolean {
  return typeof id === 'bigint' && value >= 0 && value <= Number.MAX_SAFE_INTEGER;
}

function writeDecimal(target: Uint8Array, at: number, value: number): number {
  let digits = 1;
  for (let bound = 10; value >= bound; bound *= 10) digits++;
  let rest = value;
  for (let to = at + digits - 1; to >= at; to--) {
    const tenth = Math.floor(rest / 10);
    target[to] = 0x30 + (rest - tenth * 10);
    rest = tenth;
  }
  return at + digits;
}

function checkPosition({ ledgerId, entryId, part }: SourcePosition, shown: unknown): void {
  if (typeof ledgerId !== 'bigint' || typeof entryId !== 'bigint') {
    throw new IsthmusError('invalidPosition', `source position ${show(shown)}: ledger and entry ids are bigint`);
  }
  if (ledgerId < 0n || ledgerId > LAST_ID || entryId < 0n || entryId > LAST_ID) {
    throw new IsthmusError('invalidPosition', `source position ${show(shown)}: ids are 0..2^63-1`);
  }
  if (part !== undefined && !(Number.isInteger(part) && part >= 0 && part <= 0xffff)) {
    throw new IsthmusError('invalidPosition', `source position ${show(shown)}: a part is an integer of 0..0xFFFF`);
  }
}
