/** Keys, certificates and tokens for brokers of the tests, made when they are needed. */
import { execFileSync } from 'node:child_process';
import { createHmac, generateKeyPairSync } from 'node:crypto';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** PEM files: a key (PKCS8) and a certificate that vouches for itself, so that it is its own authority. */
export interface Certificate {
  readonly keyFile: string;
  readonly certificateFile: string;
  /** The certificate's text. */
  readonly pem: string;
}

/** A certificate for 127.0.0.1 and localhost, good for two days. Needs openssl on the path. */
export function makeCertificate(folder: string): Certificate {
  mkdirSync(folder, { recursive: true });
  const [keyFile, certificateFile, settings] = ['key.pem', 'certificate.pem', 'openssl.cnf'].map((name) =>
    join(folder, name),
  ) as [string, string, string];
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
  writeFileSync(keyFile, privateKey.export({ type: 'pkcs8', format: 'pem' }), { mode: 0o600 });
  writeFileSync(
    settings,
    `[req]\ndistinguished_name=name\nx509_extensions=more\nprompt=no\n[name]\nCN=isthmus test\n[more]\n` +
      'subjectAltName=IP:127.0.0.1,DNS:localhost\nbasicConstraints=critical,CA:true\n',
  );
  const args = ['req', '-x509', '-new', '-key', keyFile, '-days', '2', '-config', settings, '-out', certificateFile];
  execFileSync('openssl', args, { stdio: 'pipe' });
  return { keyFile, certificateFile, pem: readFileSync(certificateFile, 'utf8') };
}

export interface TokenOptions {
  /** Seconds from now until it expires, also negative; absent: never. */
  readonly expiresInSeconds?: number;
}

/** A token of a role, as JSON Web Token with HS256. */
export function makeToken(secret: Buffer, role: string, { expiresInSeconds }: TokenOptions = {}): string {
  const now = Math.floor(Date.now() / 1000);
  const expiry = expiresInSeconds === undefined ? {} : { exp: now + expiresInSeconds };
  const body = [{ alg: 'HS256' }, { sub: role, ...expiry }]
    .map((part) => Buffer.from(JSON.stringify(part)).toString('base64url'))
    .join('.');
  return `${body}.${createHmac('sha256', secret).update(body).digest('base64url')}`;
}

/** PEM files of a key pair for end-to-end encryption of messages. */
export function makeEncryptionKey(folder: string, name: string): { publicKeyFile: string; privateKeyFile: string } {
  mkdirSync(folder, { recursive: true });
  const { publicKey, privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
  const [publicKeyFile, privateKeyFile] = [`${name}.public.pem`, `${name}.private.pem`].map((file) =>
    join(folder, file),
  ) as [string, string];
  writeFileSync(publicKeyFile, publicKey.export({ type: 'spki', format: 'pem' }));
  writeFileSync(privateKeyFile, privateKey.export({ type: 'pkcs8', format: 'pem' }), { mode: 0o600 });
  return { publicKeyFile, privateKeyFile };
}
