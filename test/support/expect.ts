/** Small expectations that many tests share. */
import { IsthmusError, type IsthmusErrorCode } from '../../src/errors.js';

/** The code of the IsthmusError that `run` throws; undefined when it returns. Any other error goes through. */
export function refusal(run: () => unknown): IsthmusErrorCode | undefined {
  try {
    run();
    return undefined;
  } catch (error) {
    if (error instanceof IsthmusError) return error.code;
    throw error;
  }
}

export function hex(bytes: Uint8Array | undefined): string | undefined {
  return bytes === undefined ? undefined : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('hex');
}

/** Equal bytes; far quicker than a deep comparison. */
export function sameBytes(a: Uint8Array, b: Uint8Array): boolean {
  return Buffer.compare(a, b) === 0;
}
