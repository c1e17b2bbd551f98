/**
 * The suite of `SchemaTranslator` passes for that of Pulsar between brokers in memory, and fails on translators that are
 * broken, each for the rule that it breaks.
 */
import { type SchemaTranslatorSetup, testSchemaTranslator } from 'isthmus/testing';
import { describe, expect, it } from 'vitest';
import { SERVER_ERROR, type TopicSchema } from '../../src/adapters/pulsar/protocol/index.js';
import { schemaTranslator } from '../../src/adapters/pulsar/schema.js';
import type { SchemaTranslation, SchemaTranslator } from '../../src/ports/index.js';
import { MemoryBroker } from '../adapters/pulsar/memory-broker.js';
import { verdictOf } from '../support/verdict.js';

const SOURCE = 'topic://public/default/x';
const DESTINATION = 'segment://public/default/x/0000-ffff-0';
const MISFIT = 'misfit';
const UNREACHABLE = { type: 'unreachable', reason: 'no answer' } as const;

/** The schemas of one topic, as a broker numbers them. */
class Schemas {
  readonly all: string[] = [];
  isDown = false;

  get client() {
    const refused = (code: number) => ({ type: 'refused', code, message: 'no' }) as const;
    return {
      ...new MemoryBroker().client(),
      getSchema: async (_: string, version: Uint8Array) => {
        const content = this.at(version);
        if (this.isDown) return UNREACHABLE;
        return content === undefined
          ? refused(SERVER_ERROR.topicNotFound)
          : ({ type: 'found', schema: schemaOf(content), version: undefined } as const);
      },
      getOrCreateSchema: async (_: string, { data }: TopicSchema) => {
        if (this.isDown) return UNREACHABLE;
        const content = new TextDecoder().decode(data);
        if (content === MISFIT) return refused(SERVER_ERROR.incompatibleSchema);
        return { type: 'registered', version: this.add(content) } as const;
      },
    };
  }

  add(content: string): Uint8Array {
    if (!this.all.includes(content)) this.all.push(content);
    return versionOf(this.all.indexOf(content));
  }

  at(version: Uint8Array): string | undefined {
    return this.all[Number(Buffer.from(version).readBigUInt64BE())];
  }
}

function schemaOf(content: string): TopicSchema {
  return { name: 'x', type: 2, data: new TextEncoder().encode(content), properties: [] };
}

function versionOf(number: number): Uint8Array {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64BE(BigInt(number));
  return new Uint8Array(bytes);
}

type Change = (
  good: SchemaTranslator,
  schemas: { readonly source: Schemas; readonly destination: Schemas },
) => SchemaTranslator;

function inMemory(change: Change = (good) => good): SchemaTranslatorSetup {
  const [source, destination] = [new Schemas(), new Schemas()];
  destination.add('its own');
  const good = schemaTranslator(
    { client: source.client, topic: SOURCE },
    { client: destination.client, topic: async () => DESTINATION },
  );
  let made = 0;
  return {
    translator: change(good, { source, destination }),
    addSchema() {
      const content = `schema ${made++}`;
      return { version: source.add(content), content };
    },
    addMisfit: () => source.add(MISFIT),
    stored: (version) => destination.at(version),
    count: () => destination.all.length,
    setReachable(isReachable) {
      destination.isDown = !isReachable;
    },
  };
}

describe('between brokers in memory', () => testSchemaTranslator(inMemory, it));

const translating = (change: (answer: SchemaTranslation) => SchemaTranslation): Change => {
  return ({ translate }) => ({ translate: async (version) => change(await translate(version)) });
};

it.each<[string, Change, RegExp]>([
  [
    'that leaves versions as they are',
    () => ({ translate: async (version) => ({ type: 'translated', version }) }),
    /a version is translated to that of another schema/,
  ],
  [
    'that counts from 1',
    translating((answer) => {
      if (answer.type !== 'translated') return answer;
      return { type: 'translated', version: answer.version.map((byte, i) => byte + Number(i === 7)) };
    }),
    /a version is translated to that of another schema/,
  ],
  [
    'that keeps its answers under the identity of a version',
    ({ translate }, { destination }) => {
      const known = new WeakMap<Uint8Array, Promise<SchemaTranslation>>();
      const anew = async (version: Uint8Array): Promise<SchemaTranslation> => {
        const answer = await translate(version);
        if (answer.type !== 'translated') return answer;
        const content = destination.at(answer.version) ?? '';
        return { type: 'translated', version: versionOf(destination.all.push(content) - 1) };
      };
      return {
        translate: (version) => {
          const answer = known.get(version) ?? anew(version);
          known.set(version, answer);
          return answer;
        },
      };
    },
    /one schema has 4 versions on the destination/,
  ],
  [
    'that registers once more for good measure',
    ({ translate }, { destination }) => ({
      translate: async (version) => {
        const answer = await translate(version);
        if (answer.type === 'translated') destination.all.push(destination.at(answer.version) ?? '');
        return answer;
      },
    }),
    /one schema is registered 5 times/,
  ],
  [
    'that asks again for what is refused',
    translating((answer) => (answer.type === 'incompatible' ? { ...answer, type: 'unknown' } : answer)),
    /a schema that the destination refuses is unknown/,
  ],
  [
    'that tells no reason',
    translating((answer) => (answer.type === 'incompatible' ? { ...answer, reason: '' } : answer)),
    /a schema is refused for no reason/,
  ],
  [
    'that registers what is refused',
    ({ translate }, { destination }) => ({
      translate: async (version) => {
        const answer = await translate(version);
        if (answer.type === 'incompatible') destination.add('refused');
        return answer;
      },
    }),
    /a schema that was refused is registered/,
  ],
  [
    'that takes a version of nothing as it is',
    ({ translate }, { source }) => ({
      translate: async (version) =>
        source.at(version) === undefined ? { type: 'translated', version } : translate(version),
    }),
    /a version that the source does not have is translated/,
  ],
  [
    'that registers nothing as something',
    ({ translate }, { source, destination }) => ({
      translate: async (version) => {
        if (source.at(version) === undefined) destination.add('');
        return translate(version);
      },
    }),
    /a version that the source does not have is registered/,
  ],
  [
    'that throws where it cannot reach',
    translating((answer) => {
      if (answer.type === 'unknown') throw new Error(answer.reason);
      return answer;
    }),
    /a translation rejects: what is not known is a value/,
  ],
  [
    'that takes silence for a refusal',
    translating((answer) => (answer.type === 'unknown' ? { ...answer, type: 'incompatible' } : answer)),
    /a version is incompatible while the destination does not answer/,
  ],
  [
    'that keeps what it did not know',
    ({ translate }) => {
      const known = new Map<string, Promise<SchemaTranslation>>();
      return {
        translate: (version) => {
          const answer = known.get(String(version)) ?? translate(version);
          known.set(String(version), answer);
          return answer;
        },
      };
    },
    /a version is unknown once the destination answers again/,
  ],
  [
    'that guesses after an outage',
    ({ translate }, { destination }) => {
      let hasFailed = false;
      return {
        translate: async (version) => {
          const answer = await translate(version);
          hasFailed ||= answer.type === 'unknown' && destination.isDown;
          return hasFailed && answer.type === 'translated' ? { type: 'translated', version: versionOf(0) } : answer;
        },
      };
    },
    /a version is that of another schema after an outage/,
  ],
])('it refuses a translator %s', async (_, change, rule) => {
  expect(await verdictOf((test) => testSchemaTranslator(() => inMemory(change), test))).toMatch(rule);
});

it('it takes a translator as it should be', async () => {
  expect(await verdictOf((test) => testSchemaTranslator(inMemory, test))).toBe('accepted');
});
