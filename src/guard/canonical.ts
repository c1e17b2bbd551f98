/**
 * The one spelling of a remote's URL. Credentials are sealed to it and hosts are matched by it, so two spellings of one
 * place must not differ, and one spelling must not mean two places. Refusals name the rule and never the URL: people
 * put secrets into URLs.
 */
import { posix } from 'node:path';
import { IsthmusError } from '../errors.js';
import { type AddressBytes, formatAddress, parseAddress } from './address.js';
import { formsOf } from './forms.js';

const MAX_URL_BYTES = 2048;
const MAX_HOST_LENGTH = 253;
const HTTPS_PORT = 443;

/** What of ASCII may not stand in a name. It is looked for before the parser sees it, which would read on at a slash. */
const OUTSIDE_NAMES = /[^A-Za-z0-9.\u0080-\u{10ffff}-]/u;
const LABEL = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/;

export interface CanonicalUrl {
  /** `https://`, host, port unless it is 443, path; no slash at the end. Base URL of all requests. */
  readonly href: string;
  /** A name in lower case and ASCII, or an address without brackets. */
  readonly host: string;
  readonly port: number;
  /** Empty, or a slash and what follows it. */
  readonly path: string;
}

/**
 * Reads a URL of https: at most 2048 bytes, without user, query, fragment, backslash, space and percent-escape.
 * Throws `invalidArgument`.
 */
export function canonicalUrl(text: unknown): CanonicalUrl {
  if (typeof text !== 'string' || Buffer.byteLength(text) > MAX_URL_BYTES) {
    refuse(`must be text of at most ${MAX_URL_BYTES} bytes`);
  }
  if (/[\s\p{Cc}\\%]/u.test(text)) refuse('has no space, control character, backslash or percent-escape');
  if (/[?#@]/.test(text)) refuse('has no query, fragment, user or password');
  const [, authority = '', rawPath = ''] = /^https:\/\/([^/]*)(.*)$/i.exec(text) ?? refuse('must begin with https://');
  const { host, port } = splitAuthority(authority);
  const path = canonicalPath(rawPath);
  const shown = host.includes(':') ? `[${host}]` : host;
  const href = `https://${shown}${port === HTTPS_PORT ? '' : `:${port}`}${path}`;
  // A name may grow on its way into ASCII; what is given must be readable again.
  if (href.length > MAX_URL_BYTES) refuse(`must have at most ${MAX_URL_BYTES} bytes in its canonical form`);
  return { href, host, port, path };
}

function splitAuthority(authority: string): { readonly host: string; readonly port: number } {
  const [, rawHost = '', rawPort] =
    /^(\[[^\]]*\]|[^:[\]]*)(?::(.*))?$/.exec(authority) ?? refuse('has one host, an IPv6 address in brackets');
  const host = rawHost.startsWith('[') ? canonicalIPv6Host(rawHost.slice(1, -1)) : canonicalHost(rawHost);
  if (host === undefined) return refuse('has a host that is a name or an address');
  if (rawPort === undefined) return { host, port: HTTPS_PORT };
  if (!/^[1-9][0-9]{0,4}$/.test(rawPort) || !isPort(Number(rawPort))) refuse('has a port of 1..65535');
  return { host, port: Number(rawPort) };
}

/** True for a port that can be dialled. */
export function isPort(port: unknown): port is number {
  return Number.isInteger(port) && (port as number) >= 1 && (port as number) <= 0xffff;
}

/**
 * The one spelling of a host without brackets: a name in lower case, ASCII and without a dot at its end, or an address.
 * A host that ends in a number is IPv4 in any of its spellings, octal, hex and short ones too, or it is refused; an
 * IPv4-mapped address is IPv4. Undefined for what is neither name nor address.
 */
export function canonicalHost(text: string): string | undefined {
  if (text.includes(':')) return canonicalIPv6Host(text);
  if (OUTSIDE_NAMES.test(text) || !URL.canParse(`https://${text}/`)) return undefined;
  const mapped = new URL(`https://${text}/`).hostname.replace(/\.$/, '');
  // The numbers of IPv4 are labels too.
  const isKnown = mapped.length <= MAX_HOST_LENGTH && mapped.split('.').every((label) => LABEL.test(label));
  return isKnown ? mapped : undefined;
}

function canonicalIPv6Host(text: string): string | undefined {
  const bytes: AddressBytes | undefined = text.includes(':') ? parseAddress(text) : undefined;
  const [outermost] = bytes === undefined ? [] : formsOf(bytes);
  return outermost && formatAddress(outermost);
}

function canonicalPath(raw: string): string {
  if (!/^[A-Za-z0-9._~/-]*$/.test(raw)) refuse('has a path of letters, digits and . _ ~ / - only');
  return raw === '' ? '' : posix.normalize(raw).replace(/\/$/, '');
}

function refuse(rule: string): never {
  throw new IsthmusError('invalidArgument', `the URL of a remote ${rule}`);
}
