/**
 * The addresses that hide in an address. A translator or a tunnel on the way takes IPv4 out of IPv6 and goes there, so
 * each form is an address that the connection may reach, and all of them are judged (B15, B72).
 */
import { type AddressBytes, type AddressRange, isIn, parseRange } from './address.js';

type Embedding = (bytes: AddressBytes) => AddressBytes | undefined;

interface Transition {
  readonly range: AddressRange;
  readonly embeddings: readonly Embedding[];
}

const at =
  (...places: readonly number[]): Embedding =>
  (bytes) =>
    places.map((place) => bytes[place] ?? 0);

const inverted =
  (embedding: Embedding): Embedding =>
  (bytes) =>
    embedding(bytes)?.map((byte) => byte ^ 0xff);

/** Where only zeros lead, a shorter prefix is in use than this embedding needs, and no address is there. */
const unlessPadding =
  (embedding: Embedding): Embedding =>
  (bytes) => {
    const embedded = embedding(bytes);
    return embedded?.[0] === 0 ? undefined : embedded;
  };

const MAPPED = parseRange('::ffff:0:0/96');
/** Loopback and unspecified: the two of ::/96 that are themselves. */
const THEMSELVES = parseRange('::/127');

const TRANSITIONS: readonly Transition[] = [
  // IPv4-compatible, RFC 4291 2.5.5.1.
  { range: parseRange('::/96'), embeddings: [at(12, 13, 14, 15)] },
  // IPv4-translated, RFC 7915.
  { range: parseRange('::ffff:0:0:0/96'), embeddings: [at(12, 13, 14, 15)] },
  { range: parseRange('64:ff9b::/96'), embeddings: [at(12, 13, 14, 15)] },
  // Local NAT64, RFC 8215. Networks cut prefixes of 96, 48, 56 or 64 bits from it (RFC 6052, 2.2), and nothing tells
  // which one is in use.
  {
    range: parseRange('64:ff9b:1::/48'),
    embeddings: [
      at(12, 13, 14, 15),
      at(6, 7, 9, 10),
      unlessPadding(at(7, 9, 10, 11)),
      unlessPadding(at(9, 10, 11, 12)),
    ],
  },
  // 6to4, RFC 3056.
  { range: parseRange('2002::/16'), embeddings: [at(2, 3, 4, 5)] },
  // Teredo, RFC 4380: the server, and the client behind its mask.
  { range: parseRange('2001::/32'), embeddings: [at(4, 5, 6, 7), inverted(at(12, 13, 14, 15))] },
];

/** True for an IPv4-mapped address (RFC 4291, 2.5.5.2). */
export function isMapped(bytes: AddressBytes): boolean {
  return isIn(MAPPED, bytes);
}

/**
 * An address and what it embeds, the outermost first. An IPv4-mapped address is the IPv4 address and nothing else: the
 * socket goes there.
 */
export function formsOf(bytes: AddressBytes): AddressBytes[] {
  if (isMapped(bytes)) return [bytes.slice(12)];
  if (isIn(THEMSELVES, bytes)) return [bytes];
  const embeddings = TRANSITIONS.flatMap((transition) => (isIn(transition.range, bytes) ? transition.embeddings : []));
  return [bytes, ...embeddings.flatMap((embedding) => [embedding(bytes) ?? []].filter(({ length }) => length > 0))];
}
