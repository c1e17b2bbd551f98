/** Schema versions across clusters: what is kept, what is refused for good, what is asked again. */
import { describe, expect, it } from 'vitest';
import type { GetSchemaResult, RegisterSchemaResult } from '../../../src/adapters/pulsar/protocol/index.js';
import { schemaTranslator } from '../../../src/adapters/pulsar/schema.js';
import { MemoryBroker } from './memory-broker.js';

const SCHEMA = { name: 'x', type: 2, data: Uint8Array.of(1), properties: [] };
const FOUND: GetSchemaResult = { type: 'found', schema: SCHEMA, version: undefined };
const UNREACHABLE = { type: 'unreachable', reason: 'no answer' } as const;
const refused = (code: number) => ({ type: 'refused', code, message: 'no' }) as const;
const version = (n: number) => Uint8Array.of(0, 0, 0, 0, 0, 0, 0, n);

function translator(gets: GetSchemaResult[], registers: RegisterSchemaResult[]) {
  const asked = { gets: 0, registers: 0 };
  const client = new MemoryBroker().client();
  const source = {
    client: { ...client, getSchema: async () => gets[asked.gets++] ?? UNREACHABLE },
    topic: 'topic://public/default/x',
  };
  const destination = {
    client: { ...client, getOrCreateSchema: async () => registers[asked.registers++] ?? UNREACHABLE },
    topic: async () => 'segment://public/default/x/0000-ffff-0',
  };
  return { asked, translate: schemaTranslator(source, destination).translate };
}

describe('a schema version', () => {
  it('is translated once', async () => {
    const { asked, translate } = translator([FOUND, FOUND], [{ type: 'registered', version: version(7) }]);
    const results = await Promise.all([translate(version(0)), translate(version(0))]);
    results.push(await translate(version(0)));
    for (const result of results) expect(result).toEqual({ type: 'translated', version: version(7) });
    expect(asked).toEqual({ gets: 1, registers: 1 });
    await translate(version(1));
    expect(asked.gets).toBe(2);
  });

  it('that the destination refuses, or the source does not have, is incompatible', async () => {
    const at = translator([FOUND], [refused(18)]);
    expect(await at.translate(version(0))).toMatchObject({ type: 'incompatible' });
    expect(await translator([refused(11)], []).translate(version(0))).toMatchObject({ type: 'incompatible' });
  });

  it('that is not known now is asked for again', async () => {
    const { translate } = translator(
      [UNREACHABLE, refused(4), FOUND, FOUND],
      [refused(6), { type: 'registered', version: version(3) }],
    );
    for (let i = 0; i < 3; i++) expect(await translate(version(0))).toMatchObject({ type: 'unknown' });
    expect(await translate(version(0))).toEqual({ type: 'translated', version: version(3) });
  });
});
