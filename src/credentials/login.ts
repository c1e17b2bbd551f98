/**
 * An opened credential, ready for use: the value of the Authorization header, which goes to the one remote that it was
 * sealed for and shows itself to nobody else (B75, B79).
 */
import { inspect } from 'node:util';
import { IsthmusError } from '../errors.js';
import type { Binding } from './binding.js';
import { Secret } from './secret.js';

const SHOWN = '[secret]';

export class RemoteLogin {
  /** Name of the remote that it is for. */
  readonly name: string;
  /** Counts up with every new ciphertext of the remote. */
  readonly credentialVersion: number;
  /** 12 hex digits that tell one password from another; fit to be shown. */
  readonly fingerprint: string;
  readonly #base: string;
  readonly #token: Secret;

  constructor(
    { name, url, username }: Binding,
    password: Secret,
    { credentialVersion, fingerprint }: { readonly credentialVersion: number; readonly fingerprint: string },
  ) {
    this.name = name;
    this.credentialVersion = credentialVersion;
    this.fingerprint = fingerprint;
    this.#base = url;
    this.#token = new Secret(Buffer.from(`${username}:${password.reveal()}`).toString('base64'));
  }

  /**
   * The Authorization header's value (RFC 7617) for a request to this URL. Throws `invalidArgument`, without the URL,
   * for any that does not lie below the remote's own: another port is another server.
   */
  authorizationFor(requestUrl: string): string {
    if (!isBelow(this.#base, requestUrl)) {
      throw new IsthmusError('invalidArgument', `the credential of remote ${this.name} goes to that remote alone`);
    }
    return `Basic ${this.#token.reveal()}`;
  }

  /** Takes header and password out of a text of another's making, such as the message of a transport's error. */
  redact(text: string): string {
    const token = this.#token.reveal();
    const login = Buffer.from(token, 'base64').toString();
    const password = login.slice(login.indexOf(':') + 1);
    return [token, password].reduce((left, secret) => left.replaceAll(secret, SHOWN), text);
  }

  toJSON(): object {
    const { name, credentialVersion, fingerprint } = this;
    return { name, credentialVersion, fingerprint };
  }

  [inspect.custom](): string {
    return `RemoteLogin(${this.name}, version ${this.credentialVersion})`;
  }
}

function isBelow(base: string, requestUrl: string): boolean {
  if (!URL.canParse(requestUrl)) return false;
  const [own, asked] = [new URL(base), new URL(requestUrl)];
  const isWithin = asked.pathname.startsWith(own.pathname.endsWith('/') ? own.pathname : `${own.pathname}/`);
  return asked.origin === own.origin && asked.username === '' && asked.password === '' && isWithin;
}
