/**
 * Whether a connection may go to an address: the one place where that is judged, for addresses that a URL names and
 * for those that a resolver gives alike. Private networks may be reached, for a remote is mostly another site of one
 * owner; what serves the machine itself, or its cloud, may not (Narad, address guard).
 */
import { type AddressBytes, type AddressRange, formatAddress, isIn, parseAddress, parseRange } from './address.js';
import { formsOf } from './forms.js';

export type DenialCause =
  | 'unspecified'
  | 'loopback'
  | 'compatible'
  | 'linkLocal'
  | 'metadata'
  | 'multicast'
  | 'broadcast'
  | 'siteLocal'
  | 'discard';

const DENIED: readonly { readonly range: AddressRange; readonly cause: DenialCause }[] = (
  [
    ['0.0.0.0/8', 'unspecified'],
    ['::/128', 'unspecified'],
    ['127.0.0.0/8', 'loopback'],
    ['::1/128', 'loopback'],
    ['::/96', 'compatible'],
    // The metadata service of most clouds, and what hands credentials to containers, lie here.
    ['169.254.0.0/16', 'linkLocal'],
    ['fe80::/10', 'linkLocal'],
    // Metadata: AWS, Google, Oracle, Azure, Alibaba.
    ['fd00:ec2::/32', 'metadata'],
    ['fd20:ce::254/128', 'metadata'],
    ['fd00:c1::a9fe:a9fe/128', 'metadata'],
    ['168.63.129.16/32', 'metadata'],
    ['100.100.100.200/32', 'metadata'],
    ['224.0.0.0/4', 'multicast'],
    ['ff00::/8', 'multicast'],
    ['255.255.255.255/32', 'broadcast'],
    // Not in Narad's table: addresses that were given up (RFC 3879), and those that lead nowhere (RFC 6666).
    ['fec0::/10', 'siteLocal'],
    ['100::/64', 'discard'],
  ] as const
).map(([range, cause]) => ({ range: parseRange(range), cause }));

export type AddressVerdict =
  | { readonly type: 'permitted'; readonly address: PinnedAddress }
  | { readonly type: 'denied'; readonly cause: DenialCause | 'notAnAddress' };

/** An address to connect to, in its one spelling; an IPv4-mapped one has become IPv4. */
export interface PinnedAddress {
  readonly address: string;
  readonly family: 4 | 6;
}

/**
 * Judges an address as a resolver or a socket writes it. Every form of it must be clear: denied by no range, or lying
 * in a range that the operator allows. What embeds a public address, such as one behind NAT64, is permitted.
 */
export function classifyAddress(text: string, allowed: readonly AddressRange[] = []): AddressVerdict {
  const bytes = parseAddress(text);
  if (bytes === undefined) return { type: 'denied', cause: 'notAnAddress' };
  const forms = formsOf(bytes);
  for (const form of forms) {
    const cause = causeOf(form);
    if (cause !== undefined && !allowed.some((range) => isIn(range, form))) return { type: 'denied', cause };
  }
  const outermost = forms[0] ?? bytes;
  return {
    type: 'permitted',
    address: { address: formatAddress(outermost), family: outermost.length === 4 ? 4 : 6 },
  };
}

function causeOf(form: AddressBytes): DenialCause | undefined {
  return DENIED.find(({ range }) => isIn(range, form))?.cause;
}
