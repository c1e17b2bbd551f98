/** Properties: KeyValue messages, of which both the outer metadata and each record of a batch hold a list. */
import type { IsthmusErrorCode } from '../errors.js';
import { KeyValue, SOURCE_POSITION_PROPERTY } from './fields.js';
import { BYTES, decodeText, WireReader } from './wire.js';

const POSITION_KEY = new TextEncoder().encode(SOURCE_POSITION_PROPERTY);

/** Walks one KeyValue and returns where its four ends lie: key start, key end, value start, value end. */
function locate(
  bytes: Uint8Array,
  start: number,
  end: number,
  code: IsthmusErrorCode,
): [number, number, number, number] {
  const reader = new WireReader(bytes, start, end, code, 'a property');
  let keyStart = -1;
  let keyEnd = -1;
  let valueStart = -1;
  let valueEnd = -1;
  while (reader.next()) {
    if (reader.field === KeyValue.key) {
      reader.expect(BYTES);
      keyStart = reader.valueStart;
      keyEnd = reader.valueEnd;
    } else if (reader.field === KeyValue.value) {
      reader.expect(BYTES);
      valueStart = reader.valueStart;
      valueEnd = reader.valueEnd;
    }
  }
  if (keyStart < 0 || valueStart < 0) reader.refuse('has no key or no value, which are required');
  return [keyStart, keyEnd, valueStart, valueEnd];
}

/** Reads one property; throws with `code` when it is malformed. */
export function readKeyValue(bytes: Uint8Array, start: number, end: number, code: IsthmusErrorCode): [string, string] {
  const [keyStart, keyEnd, valueStart, valueEnd] = locate(bytes, start, end, code);
  return [decodeText(bytes, keyStart, keyEnd), decodeText(bytes, valueStart, valueEnd)];
}

/** Checks one property of the outer metadata and tells whether it is the source position (E10). */
export function isPositionProperty(bytes: Uint8Array, start: number, end: number): boolean {
  const [keyStart, keyEnd] = locate(bytes, start, end, 'malformedEntry');
  if (keyEnd - keyStart !== POSITION_KEY.length) return false;
  for (let i = 0; i < POSITION_KEY.length; i++) if (bytes[keyStart + i] !== POSITION_KEY[i]) return false;
  return true;
}
