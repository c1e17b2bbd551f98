/**
 * Whom a remote's connections trust, as a short text that a credential can be bound to: the system's roots, or the
 * certificates of the remote alone.
 */
import { createHash, X509Certificate } from 'node:crypto';
import { IsthmusError } from '../errors.js';
import { fromBase64 } from './bytes.js';

const SYSTEM_ROOTS = 'system-roots';
const BEGIN = '-----BEGIN CERTIFICATE-----';
const END = '-----END CERTIFICATE-----';
const MAX_PEM_BYTES = 64 * 1024;
const MAX_CERTIFICATES = 16;

/**
 * The anchor of a remote: `system-roots` without certificates, else the SHA-512, as 128 hex digits, of the
 * certificates in their order, each written anew as PEM. How they were wrapped does not matter; their order does.
 * Throws `invalidArgument` for a text that `splitPem` refuses.
 */
export function trustAnchorOf(caPem: string | undefined): string {
  if (caPem === undefined) return SYSTEM_ROOTS;
  const hash = createHash('sha512');
  for (const certificate of splitPem(caPem)) hash.update(toPem(certificate));
  return hash.digest('hex');
}

/** True for a text that `trustAnchorOf` can have given. */
export function isTrustAnchor(text: unknown): boolean {
  return typeof text === 'string' && (text === SYSTEM_ROOTS || /^[0-9a-f]{128}$/.test(text));
}

/**
 * Refuses, as `invalidArgument`, a CA bundle that is not 1..16 certificates in PEM and nothing else, in at most 64 KiB,
 * each of them a readable X.509 certificate.
 */
export function checkCaPem(value: unknown): string {
  if (typeof value !== 'string') refuse('must be text');
  for (const [i, certificate] of splitPem(value).entries()) {
    try {
      new X509Certificate(certificate);
    } catch (cause) {
      throw new IsthmusError('invalidArgument', `CA bundle: certificate ${i + 1} is not X.509`, { cause });
    }
  }
  return value;
}

/** The bytes of each certificate. Line by line, so that no text, however odd, takes long to refuse. */
function splitPem(pem: string): Buffer[] {
  if (Buffer.byteLength(pem) > MAX_PEM_BYTES) refuse(`must have at most ${MAX_PEM_BYTES} bytes`);
  const certificates: Buffer[] = [];
  let open: string | undefined;
  for (const line of pem.split('\n').map((raw) => raw.trim())) {
    if (line === BEGIN && open === undefined) open = '';
    else if (line === END && open) {
      const bytes = fromBase64(open) ?? refuse(`certificate ${certificates.length + 1} is not base64`);
      certificates.push(bytes);
      open = undefined;
    } else if (open !== undefined) open += line;
    else if (line !== '') refuse('must be certificates in PEM and nothing else');
  }
  if (open !== undefined) refuse('ends within a certificate');
  if (certificates.length < 1 || certificates.length > MAX_CERTIFICATES) {
    refuse(`has ${certificates.length} certificates, must have 1..${MAX_CERTIFICATES}`);
  }
  return certificates;
}

function toPem(certificate: Buffer): string {
  const lines = certificate.toString('base64').match(/.{1,64}/g) ?? [];
  return `${[BEGIN, ...lines, END].join('\n')}\n`;
}

function refuse(rule: string): never {
  throw new IsthmusError('invalidArgument', `CA bundle: ${rule}`);
}
