/** Encoding and cutting 100,000 records of 256 bytes of JSON into requests, against one JSON.stringify of all of them. */
import { cutChunk, type SourceRecord, sendItem } from 'isthmus';
import { atMost, measure, type Row } from './harness.js';

const RECORDS = 100_000;
const LIMITS = { maxMessages: 1_000, maxBytes: 983_040 };

export async function senderRows(): Promise<Row[]> {
  const values = Array.from({ length: RECORDS }, (_, i) => orderOf(i));
  const encoder = new TextEncoder();
  const records = values.map(
    (value, offset): SourceRecord => ({
      offset,
      key: encoder.encode(`customer-${offset % 1_000}`),
      payload: encoder.encode(JSON.stringify(value)),
      storedAtMs: 0,
    }),
  );
  const batch = { messages: values.map((payload, i) => ({ key: `customer-${i % 1_000}`, payload })) };
  const [cut, stringify] = await measure([
    {
      name: 'cut',
      run(n) {
        for (let i = 0; i < n; i++)
          if (bytesOfChunks(records) < RECORDS * 256) throw new Error('too little was written');
        return undefined;
      },
    },
    {
      name: 'stringify',
      run(n) {
        for (let i = 0; i < n; i++) if (JSON.stringify(batch).length < RECORDS * 256) throw new Error('too short');
        return undefined;
      },
    },
  ]);
  if (cut === undefined || stringify === undefined) throw new Error('nothing was measured');
  return [
    atMost(
      'sender: 100,000 records of 256 B encoded and cut',
      'JSON.stringify of the same batch',
      cut.medianNs,
      stringify.medianNs,
      1.5,
    ),
  ];
}

/** An order of 256 bytes. */
function orderOf(i: number): object {
  const value = {
    order: i,
    customer: `customer-${i % 1_000}`,
    total: 12.5,
    currency: 'EUR',
    lines: [1, 2, 3],
    note: '',
  };
  return { ...value, note: 'n'.repeat(256 - JSON.stringify(value).length) };
}

function bytesOfChunks(records: readonly SourceRecord[]): number {
  let bytes = 0;
  const items = records.map(sendItem);
  for (let at = 0; at < items.length; ) {
    const { body, count } = cutChunk(items.slice(at, at + LIMITS.maxMessages), LIMITS);
    bytes += body.length;
    at += count;
  }
  return bytes;
}
