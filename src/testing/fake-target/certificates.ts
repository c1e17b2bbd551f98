/**
 * Throw-away certificates (RFC 5280), made in this process: an authority that nobody else trusts, and certificates that
 * it gives to servers. Keys are ECDSA over P-256.
 */
import { createHash, generateKeyPairSync, type KeyObject, randomBytes, sign } from 'node:crypto';
import { isIP } from 'node:net';
import { bits, context, identifier, integer, octets, sequence, set, time, utf8, yes } from './der.js';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

const ECDSA_SHA256 = sequence(identifier('1.2.840.10045.4.3.2'));
const COMMON_NAME = identifier('2.5.4.3');
const SERVER_AUTH = identifier('1.3.6.1.5.5.7.3.1');
const EXTENSION = {
  subjectKey: '2.5.29.14',
  keyUsage: '2.5.29.15',
  names: '2.5.29.17',
  basicConstraints: '2.5.29.19',
  authorityKey: '2.5.29.35',
  extendedUsage: '2.5.29.37',
} as const;
/** The bits of keyUsage, the first one leftmost: signing in the first case, certificates and revocation lists in the other. */
const USAGE = { signs: bits(Buffer.from([0x80]), 7), certifies: bits(Buffer.from([0x06]), 1) } as const;

/** A certificate and its private key, both PEM. */
export interface ServerCertificate {
  readonly certificatePem: string;
  readonly keyPem: string;
}

export interface CertificateOptions {
  /** Host names and IP addresses that it speaks for; default `localhost`, `127.0.0.1` and `::1`. */
  readonly names?: readonly string[];
  /** Milliseconds since the epoch; default an hour ago. */
  readonly fromMs?: number;
  /** Milliseconds since the epoch; default 30 days from now. */
  readonly toMs?: number;
}

/** An authority of its own. */
export interface CertificateAuthority {
  /** Its certificate, for those who are to trust it. */
  readonly pem: string;
  /** A certificate for a server, with a new key. Throws `invalidArgument` for a time before 1950 or after 9999. */
  issue(options?: CertificateOptions): ServerCertificate;
}

/** Makes an authority. `name` is for readers only. */
export function createAuthority(name = 'isthmus throw-away authority'): CertificateAuthority {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const keyId = keyIdOf(publicKey);
  const make = (
    subject: string,
    key: KeyObject,
    options: CertificateOptions,
    extensions: readonly Buffer[],
  ): string => {
    const { fromMs = Date.now() - HOUR_MS, toMs = Date.now() + 30 * DAY_MS } = options;
    const body = sequence(
      context(0, integer(Buffer.from([2])), { constructed: true }),
      integer(serialNumber()),
      ECDSA_SHA256,
      nameOf(name),
      sequence(time(fromMs), time(toMs)),
      nameOf(subject),
      key.export({ type: 'spki', format: 'der' }),
      context(3, sequence(...extensions), { constructed: true }),
    );
    return pemOf(sequence(body, ECDSA_SHA256, bits(sign('sha256', body, privateKey))));
  };
  const pem = make(name, publicKey, {}, [
    extension(EXTENSION.basicConstraints, sequence(yes()), true),
    extension(EXTENSION.keyUsage, USAGE.certifies, true),
    extension(EXTENSION.subjectKey, octets(keyId)),
  ]);
  return {
    pem,
    issue(options = {}) {
      const { names = ['localhost', '127.0.0.1', '::1'] } = options;
      const own = generateKeyPairSync('ec', { namedCurve: 'P-256' });
      const certificatePem = make(names[0] ?? 'nobody', own.publicKey, options, [
        extension(EXTENSION.basicConstraints, sequence(), true),
        extension(EXTENSION.keyUsage, USAGE.signs, true),
        extension(EXTENSION.extendedUsage, sequence(SERVER_AUTH)),
        extension(EXTENSION.names, sequence(...names.map(alternativeName))),
        extension(EXTENSION.subjectKey, octets(keyIdOf(own.publicKey))),
        extension(EXTENSION.authorityKey, sequence(context(0, keyId))),
      ]);
      return { certificatePem, keyPem: own.privateKey.export({ type: 'pkcs8', format: 'pem' }) as string };
    },
  };
}

function extension(id: string, value: Uint8Array, isCritical = false): Buffer {
  return sequence(identifier(id), ...(isCritical ? [yes()] : []), octets(value));
}

function nameOf(text: string): Buffer {
  return sequence(set(sequence(COMMON_NAME, utf8(text))));
}

/** A host name under tag 2, or the bytes of an address under tag 7. */
function alternativeName(name: string): Buffer {
  return isIP(name) === 0 ? context(2, Buffer.from(name, 'ascii')) : context(7, addressBytes(name));
}

function addressBytes(address: string): Buffer {
  if (isIP(address) === 4) return Buffer.from(address.split('.').map(Number));
  const [head = '', tail] = address.split('::');
  const groups = (part: string) => (part === '' ? [] : part.split(':').map((group) => Number.parseInt(group, 16)));
  const [left, right] = [groups(head), groups(tail ?? '')];
  const all = [...left, ...Array<number>(8 - left.length - right.length).fill(0), ...right];
  return Buffer.from(all.flatMap((group) => [group >> 8, group & 0xff]));
}

/** 16 bytes that are neither negative nor led by a zero. */
function serialNumber(): Buffer {
  const bytes = randomBytes(16);
  bytes[0] = ((bytes[0] ?? 0) & 0x7f) | 0x40;
  return bytes;
}

/** The usual way: the digest of the key itself, without what names its kind. */
function keyIdOf(key: KeyObject): Buffer {
  const { x = '', y = '' } = key.export({ format: 'jwk' });
  const point = Buffer.concat([Buffer.from([4]), Buffer.from(x, 'base64url'), Buffer.from(y, 'base64url')]);
  return createHash('sha1').update(point).digest();
}

function pemOf(der: Buffer): string {
  const lines = der.toString('base64').match(/.{1,64}/g) ?? [];
  return ['-----BEGIN CERTIFICATE-----', ...lines, '-----END CERTIFICATE-----', ''].join('\n');
}
