/** Real public records: rows of the 3-million-flights file that the npm package vega-datasets carries. */
import { open } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { type AsyncBuffer, parquetReadObjects } from 'hyparquet';
import { compressors } from 'hyparquet-compressors';

const DATA = new URL('../../node_modules/vega-datasets/data/flights-3m.parquet', import.meta.url);

/** One record as it is replicated: the key is the route, the value the whole row as JSON. */
export interface FlightRecord {
  readonly key: string;
  readonly value: Uint8Array;
}

/** The first `count` flights. */
export async function readFlights(count: number): Promise<FlightRecord[]> {
  const path = fileURLToPath(DATA);
  const file = await open(path);
  try {
    const rows = await parquetReadObjects({ file: await asyncBuffer(file), compressors, rowEnd: count });
    return rows.map(toRecord);
  } finally {
    await file.close();
  }
}

async function asyncBuffer(file: Awaited<ReturnType<typeof open>>): Promise<AsyncBuffer> {
  const { size } = await file.stat();
  return {
    byteLength: size,
    async slice(start, end = size) {
      const buffer = new Uint8Array(end - start);
      await file.read(buffer, 0, buffer.length, start);
      return buffer.buffer;
    },
  };
}

function toRecord(row: Record<string, unknown>): FlightRecord {
  const json = JSON.stringify(row, (_, value: unknown) => (typeof value === 'bigint' ? Number(value) : value));
  const { origin, destination } = caseless(row);
  return { key: `${origin}-${destination}`, value: new TextEncoder().encode(json) };
}

function caseless(row: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(row).map(([name, value]) => [name.toLowerCase(), value]));
}
