/** Source entries by a few words: a kind, the places of its keys, and options. */
import type { OuterFields } from '../../src/entry/index.js';
import { batch, message, noise, single } from './rebatch.js';
import { keyAt } from './stage-text.js';

/** What encryption leaves of a batch: nobody can look inside. */
const ENCRYPTION: Partial<OuterFields> = { encryptionKeys: [{ key: 'k', value: Uint8Array.of(1) }] };

/** The bytes of an entry, published at `nowMs`; see the transcripts' table of commands. */
export function encodeEntry(kind: string, words: readonly string[], nowMs: number): Uint8Array {
  const options = new Map(words.flatMap((word) => (word.includes('=') ? [word.split('=') as [string, string]] : [])));
  const places = words.filter((word) => !word.includes('='));
  const outer = outerOf(options, nowMs);
  const size = options.get('size');
  const body = size === undefined ? 'body' : noise(Number(size)).toString('latin1');
  switch (kind) {
    case 'entry':
      return batch(
        places.map((place) => message(keyAt(place), body)),
        { outer },
      ).bytes;
    case 'encrypted':
      return batch(
        places.map((place) => message(keyAt(place), body)),
        { outer: { ...outer, ...ENCRYPTION } },
      ).bytes;
    case 'damaged': {
      const bytes = Uint8Array.from(
        batch(
          places.map((place) => message(keyAt(place), body)),
          { outer },
        ).bytes,
      );
      bytes[bytes.length - 1] = (bytes.at(-1) ?? 0) ^ 0xff;
      return bytes;
    }
    case 'single':
      return single({ ...outer, partitionKey: keyAt(places[0] ?? '-') }, { body }).bytes;
    case 'chunk': {
      const [uuid = '', share = '', place = '-'] = places;
      const [chunk = 1, chunks = 1] = share.split('/').map(Number);
      const of = { uuid, chunkId: chunk - 1, numChunks: chunks, totalSize: 12 };
      return single({ ...outer, partitionKey: keyAt(place), chunk: of }, { body }).bytes;
    }
    case 'marker':
      return single({ ...outer, markerType: 10 }).bytes;
    default:
      throw new Error(`${kind}: no such entry`);
  }
}

function outerOf(options: ReadonlyMap<string, string>, nowMs: number): Partial<OuterFields> {
  const [schema, age, to, by] = ['schema', 'age', 'to', 'by'].map((name) => options.get(name));
  return {
    publishTimeMs: nowMs - Number.parseInt(age ?? '0', 10) * 1000,
    ...(schema === undefined ? {} : { schemaVersion: Buffer.from(schema) }),
    ...(to === undefined ? {} : { replicateTo: to.split(',') }),
    ...(by === undefined ? {} : { replicatedFrom: by }),
  };
}
