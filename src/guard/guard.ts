/**
 * Where a node may connect to, as the operator configured it, and the order in which a dial is judged: port, host,
 * list of hosts, then every address that the host resolves to (Narad, order of a dial). Values in, verdicts out.
 */
import { isIP } from 'node:net';
import { IsthmusError, show } from '../errors.js';
import { type AddressRange, parseRange } from './address.js';
import { canonicalHost, isPort } from './canonical.js';
import { type AddressVerdict, classifyAddress, type PinnedAddress } from './classify.js';
import { isMapped } from './forms.js';

export interface GuardOptions {
  /**
   * Hosts that may be reached: names and addresses, each exactly, and `*.name` for all names below that one at any
   * depth, itself not. Empty or absent: all.
   */
  readonly allowedHosts?: readonly string[];
  /** Ports that may be reached, 1..65535; default 443. */
  readonly allowedPorts?: readonly number[];
  /** Ranges, `address/bits`, that may be reached though the guard denies them; IPv4 for IPv4-mapped ones. */
  readonly allowAddresses?: readonly string[];
}

/** Why a dial was refused, in Narad's words for it: fit for a label of a metric. */
export type RefusalReason =
  /** The host is neither name nor address, or no address of it may be reached. */
  | 'address'
  | 'port'
  /** The host is not among the allowed ones. */
  | 'allowlist'
  /** Another host was asked for than the one that was judged. */
  | 'redirect';

export interface DialRefusal {
  readonly type: 'refused';
  readonly reason: RefusalReason;
}

/** Connect to these, in this order, and to nothing else. */
export interface DialPermit {
  readonly type: 'permitted';
  readonly addresses: readonly [PinnedAddress, ...PinnedAddress[]];
}

/** A target before it is resolved. An address is judged at once, for it passes by every resolver. */
export type DialVerdict = DialRefusal | DialPermit | { readonly type: 'resolve'; readonly host: string };

export class Guard {
  private readonly hosts: ReadonlySet<string>;
  private readonly suffixes: readonly string[];
  private readonly ports: ReadonlySet<number>;
  private readonly ranges: readonly AddressRange[];

  /** Throws `invalidArgument` for an entry that breaks its rule: a guard with a hole is none. */
  constructor({ allowedHosts = [], allowedPorts = [443], allowAddresses = [] }: GuardOptions = {}) {
    const patterns = allowedHosts.map(readPattern);
    this.hosts = new Set(patterns.filter((pattern) => !pattern.startsWith('.')));
    this.suffixes = patterns.filter((pattern) => pattern.startsWith('.'));
    this.ports = new Set(allowedPorts.map(readPort));
    this.ranges = allowAddresses.map(readRange);
  }

  /** Judges a target before it is resolved. */
  judgeTarget(target: { readonly host: string; readonly port: number }): DialVerdict {
    if (!this.ports.has(target.port)) return { type: 'refused', reason: 'port' };
    const host = canonicalHost(target.host);
    if (host === undefined) return { type: 'refused', reason: 'address' };
    if (!this.isAllowedHost(host)) return { type: 'refused', reason: 'allowlist' };
    return isIP(host) === 0 ? { type: 'resolve', host } : this.judgeResolved([host]);
  }

  /**
   * Judges all that a host resolved to. Those that may be reached are permitted in their order; when there are none,
   * or the resolver gave none, the dial is refused. It is judged anew for every connection: what a name resolved to
   * before says nothing of now.
   */
  judgeResolved(addresses: readonly string[]): DialRefusal | DialPermit {
    const [first, ...rest] = addresses.flatMap((text) => {
      const verdict = this.judgeAddress(text);
      return verdict.type === 'permitted' ? [verdict.address] : [];
    });
    return first === undefined
      ? { type: 'refused', reason: 'address' }
      : { type: 'permitted', addresses: [first, ...rest] };
  }

  /** Judges one address, as a resolver gave it or a socket tells it. */
  judgeAddress(text: string): AddressVerdict {
    return classifyAddress(text, this.ranges);
  }

  private isAllowedHost(host: string): boolean {
    if (this.hosts.size + this.suffixes.length === 0 || this.hosts.has(host)) return true;
    // An address ends in a number and a name does not, so no suffix takes in an address.
    return this.suffixes.some((suffix) => host.endsWith(suffix));
  }
}

/** A host, or a dot and the name below which a host must be. */
function readPattern(entry: unknown): string {
  if (typeof entry === 'string') {
    const isSuffix = entry.startsWith('*.');
    const host = canonicalHost(isSuffix ? entry.slice(2) : entry.replace(/^\[(.*)\]$/, '$1'));
    if (host !== undefined && !(isSuffix && isIP(host) !== 0)) return isSuffix ? `.${host}` : host;
  }
  throw new IsthmusError(
    'invalidArgument',
    `allowed host ${show(entry)} is no name, no address and no *. before a name`,
  );
}

function readRange(text: unknown): AddressRange {
  const range = parseRange(text);
  if (!isMapped(range.bytes)) return range;
  throw new IsthmusError('invalidArgument', `${show(text)} is IPv4-mapped and would hold no address: write it as IPv4`);
}

function readPort(port: unknown): number {
  if (isPort(port)) return port;
  throw new IsthmusError('invalidArgument', `allowed port ${show(port)} is not in 1..65535`);
}
