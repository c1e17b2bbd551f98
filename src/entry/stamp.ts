/**
 * The stamp as bytes: `replicated_from`, the source-position property, and a translated schema version. A replicator
 * puts the same stamp on every entry but for the digits of the position, so what is constant is kept ready, with its
 * CRC, for each length of the digits.
 */
import { IsthmusError, show } from '../errors.js';
import { crc32c, shiftCrc } from './crc32c.js';
import { KeyValue, Outer, SOURCE_POSITION_PROPERTY } from './fields.js';
import { type SourcePosition, writePosition } from './position.js';
import { BYTES, varintLength, WireWriter, writeVarint } from './wire.js';

/** What a replicator puts on an entry. */
export interface RestampOptions {
  /** The source cluster's name; not empty. */
  readonly replicatedFrom: string;
  /** Where the entry lies in its source segment; text in the form of E10 is taken as it stands. */
  readonly sourcePosition: SourcePosition | string;
  /** The remote's schema version, where a translator has given one; the source's is kept without it. */
  readonly schemaVersion?: Uint8Array | undefined;
  /** Removes both transaction ids: right for the messages of a committed transaction. Default true. */
  readonly removeTransaction?: boolean | undefined;
}

/** All of a stamp that comes before the digits of the position. */
interface Template {
  readonly bytes: Uint8Array;
  readonly crc: number;
}

/** The templates of the last cluster name, which a replicator never changes, by the number of digits. */
let templates: (Template | undefined)[] = [];
let templateName: string | undefined;
/** Between `prepareStamp` and `writeStamp`: the digits, their number, and the template for it. */
const digits = new Uint8Array(48);
let digitCount = 0;
let template: Template = { bytes: new Uint8Array(0), crc: 0 };

/** Checks the options and returns how many bytes `writeStamp` will write. Throws `invalidArgument` or `invalidPosition`. @internal */
export function prepareStamp({ replicatedFrom, sourcePosition, schemaVersion }: RestampOptions): number {
  if (replicatedFrom !== templateName) {
    if (typeof replicatedFrom !== 'string' || replicatedFrom === '') {
      throw new IsthmusError('invalidArgument', `replicatedFrom ${show(replicatedFrom)}: a cluster name is not empty`);
    }
    templates = [];
    templateName = replicatedFrom;
  }
  digitCount = writePosition(digits, sourcePosition);
  template = templates[digitCount] ?? buildTemplate(replicatedFrom);
  const schema = schemaVersion === undefined ? 0 : 2 + varintLength(schemaVersion.length) + schemaVersion.length;
  return template.bytes.length + digitCount + schema;
}

function buildTemplate(replicatedFrom: string): Template {
  const property = new WireWriter();
  property.text(KeyValue.key, SOURCE_POSITION_PROPERTY);
  property.bytesField(KeyValue.value, digits.subarray(0, digitCount));
  const stamp = new WireWriter();
  stamp.text(Outer.replicatedFrom, replicatedFrom);
  stamp.bytesField(Outer.properties, property.written());
  const written = stamp.written();
  const bytes = Uint8Array.from(written.subarray(0, written.length - digitCount));
  const built = { bytes, crc: crc32c(bytes) };
  templates[digitCount] = built;
  return built;
}

/** Writes the stamp that was prepared last, the constant part first. @internal */
export function writeStamp(target: Uint8Array, start: number, { schemaVersion }: RestampOptions): void {
  target.set(template.bytes, start);
  let at = start + template.bytes.length;
  for (let i = 0; i < digitCount; i++) target[at++] = digits[i] as number;
  if (schemaVersion !== undefined) {
    at = writeVarint(target, at, (Outer.schemaVersion << 3) | BYTES);
    at = writeVarint(target, at, schemaVersion.length);
    target.set(schemaVersion, at);
  }
}

/** The CRC of what `previous` stands for, followed by the stamp that was written last at `target[start..end)`. @internal */
export function crcWithStamp(previous: number, target: Uint8Array, start: number, end: number): number {
  const { bytes, crc } = template;
  return crc32c(target, start + bytes.length, end, (shiftCrc(previous, bytes.length) ^ crc) >>> 0);
}
