/** The stream that `lmdb-writer.ts` replicates: entries that say which they are. */
import { type EntryBuffers, formatSourcePosition, type SourcePosition } from 'isthmus';

/** The source segments. */
export const SOURCES = [0, 1];

/** Where the entry of a number stands in its source segment; the first is 1. */
export function sourcePosition(number: number): SourcePosition {
  return { ledgerId: 7n, entryId: BigInt(number) };
}

/** The number back from a position's text. */
export function numberOf(text: string): number {
  return Number(text.split(':')[1]);
}

/** Where an entry's key lies on the segment ring. */
export function hashOf(number: number): number {
  return (number * 40_503) & 0xffff;
}

/** The source and the number as text, and a filler: of many sizes, some larger than a page of the store. */
export function bodyOf(source: number, number: number): EntryBuffers {
  const head = new TextEncoder().encode(`${source} ${formatSourcePosition(sourcePosition(number))}\n`);
  return { head, payload: new Uint8Array(number % 11 === 0 ? 5000 : number % 100).fill(number & 0xff) };
}

/** The source and the number of a stored entry; throws when its bytes are not those that were sent. */
export function readBody(bytes: Uint8Array): { readonly source: number; readonly number: number } {
  const text = new TextDecoder().decode(bytes.subarray(0, bytes.indexOf(0x0a)));
  const [source = '', position = ''] = text.split(' ');
  const body = { source: Number(source), number: numberOf(position) };
  const { head, payload } = bodyOf(body.source, body.number);
  const isSame = Buffer.from(bytes).equals(Buffer.concat([head, payload]));
  if (!isSame) throw new Error(`an entry with the head ${JSON.stringify(text)} is not what was sent`);
  return body;
}
