/**
 * The one error class of isthmus. Invalid input throws it before anything changes; failures of the outside
 * world (a sealed segment, an unreachable peer) are values, never exceptions.
 */

/** Every reason for which isthmus refuses an input. The list is closed: a host can switch over it. */
export type IsthmusErrorCode =
  /** A number, text or option outside the range its docstring states. */
  | 'invalidArgument'
  /** A stored layout record, or an operation on a layout, that breaks a rule of layouts. */
  | 'invalidLayout'
  /** A shape whose cells do not tile the ring, or whose bucket boundaries are not ascending in 1..0xFFFF. */
  | 'invalidShape'
  /** A peer's state, or a message of the exchange, that breaks a rule other than those of shapes. */
  | 'invalidState'
  /** An operation names a segment that does not exist, is sealed, or cannot take it. */
  | 'invalidOperation'
  /** The outer metadata of a stored entry cannot be read: it is cut, or a required field is missing or of a wrong type. */
  | 'malformedEntry'
  /** A batch whose payload cannot be opened: wrong sizes, wrong counts, corrupt compression. */
  | 'undecodableBatch'
  /** An encrypted batch was to be opened. */
  | 'encryptedBatch'
  /** The codec of an entry is unknown, or its package is not installed; the message names the package. */
  | 'codecUnavailable'
  /** The stored checksum does not match the bytes, so opening the batch would bless a corrupt payload. */
  | 'checksumMismatch'
  /** One hash value's messages alone exceed the largest entry that the destination takes. */
  | 'tooLarge'
  /** A source position that is not two or three non-negative decimal numbers. */
  | 'invalidPosition';

/** Thrown for invalid input. `code` says which rule family was broken, `message` names the value and the rule. */
export class IsthmusError extends Error {
  override readonly name = 'IsthmusError';

  constructor(
    readonly code: IsthmusErrorCode,
    message: string,
    options?: { cause?: unknown },
  ) {
    super(message, options);
  }
}

/** Shows an offending value in a message: short, on one line, and safe for values that JSON cannot express. */
export function show(value: unknown): string {
  // JSON has no NaN and no infinity.
  if (typeof value === 'number') return String(value);
  let text: string;
  try {
    text = JSON.stringify(value, (_, v: unknown) => (typeof v === 'bigint' ? `${v}n` : v)) ?? String(value);
  } catch {
    // Circular, or nested deeper than the stack.
    text = `a value of type ${typeof value} that cannot be shown`;
  }
  return text.length > 120 ? `${text.slice(0, 117)}...` : text;
}

/** What an error of another's code says, whatever it is. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
