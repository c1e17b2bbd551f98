/** The entries that the benchmarks work on, as a producer would have stored them. */
import { batchMessage, type Codecs, encodeBatch, encodeMessage, joinBuffers } from 'isthmus';

const outer = { producerName: 'writer-1-seg-0', sequenceId: 0n, publishTimeMs: 1_795_990_211_290 };
const schemaVersion = new Uint8Array(8);

/** A stamped single message with a body of so many bytes. */
export function singleEntry(bodyBytes: number): Uint8Array {
  const body = new Uint8Array(bodyBytes).map((_, i) => (i * 31 + 7) & 255);
  return joinBuffers(encodeMessage(body, { outer: { ...outer, partitionKey: 'order-42', schemaVersion } }));
}

/** A batch of keyed messages whose bodies look like text, so that codecs have work that is neither trivial nor hopeless. */
export function batchEntry(
  count: number,
  bodyBytes: number,
  compression: 'none' | 'lz4' | 'zlib' | 'zstd' | 'snappy',
  codecs: Codecs,
): Uint8Array {
  const words = ['delayed', 'arrived', 'gate', 'flight', 'origin', 'destination', 'weather', 'boarding'];
  const messages = Array.from({ length: count }, (_, i) => {
    let text = `{"id":${i},"n":${(i * 2654435761) >>> 0}`;
    for (let w = i; text.length < bodyBytes; w = (w * 5 + 3) % 1009) text += `,"${words[w % words.length]}":${w * i}`;
    const payload = new TextEncoder().encode(text.slice(0, bodyBytes));
    return batchMessage({ partitionKey: `key-${i}`, sequenceId: BigInt(i), payload });
  });
  return joinBuffers(
    encodeBatch(messages, { outer: { ...outer, partitionKey: 'key-0', schemaVersion }, compression, codecs }),
  );
}
