/**
 * A text that must not be seen: a master secret, a password, the value of a header. It lies in a private field and
 * shows itself to nothing: not to JSON, not to a template, not to util.inspect, wherever it is nested. Who needs the
 * text says so by `reveal()`.
 */
import { inspect } from 'node:util';
import { IsthmusError } from '../errors.js';

const SHOWN = '[secret]';

export class Secret {
  readonly #text: string;

  /**
   * Takes a non-empty text. Throws `invalidArgument`, without the value, for anything else, and for lone surrogates:
   * UTF-8 has no form for them, so two different secrets would become one.
   */
  constructor(text: string) {
    if (typeof text !== 'string' || text === '' || /\p{Surrogate}/u.test(text)) {
      throw new IsthmusError('invalidArgument', 'a secret must be a non-empty text without lone surrogates');
    }
    this.#text = text;
  }

  /** The text itself. Call it where it is used, and keep nothing of it. */
  reveal(): string {
    return this.#text;
  }

  /** The length in bytes of UTF-8. */
  get byteLength(): number {
    return Buffer.byteLength(this.#text);
  }

  /** True when both hold the same text. */
  equals(other: Secret): boolean {
    return this.#text === other.#text;
  }

  toString(): string {
    return SHOWN;
  }

  toJSON(): string {
    return SHOWN;
  }

  [inspect.custom](): string {
    return SHOWN;
  }
}
