/** Schema versions of a topic on one cluster and what they are called on another: each cluster counts its own. */
import type { SchemaTranslation, SchemaTranslator } from '../../ports/index.js';
import { type PulsarClient, type Refusal, SERVER_ERROR } from './protocol/index.js';

/** Where schemas come from. */
export interface SchemaSource {
  readonly client: PulsarClient;
  /** `topic://tenant/namespace/name`. */
  readonly topic: string;
}

/** Where they are registered. */
export interface SchemaDestination {
  readonly client: PulsarClient;
  /** The topic of any segment that is there: the schema is the whole topic's. A rejection is tried again. */
  readonly topic: () => Promise<string>;
}

/**
 * Asks the source for a schema by its version, and the destination for the version of an equal one, which is registered
 * there where it was not known. Answers are kept, but for those that may change. What the destination refuses, or the
 * source has not, is incompatible; everything else is unknown, to be asked again.
 */
export function schemaTranslator(source: SchemaSource, destination: SchemaDestination): SchemaTranslator {
  const known = new Map<string, Promise<SchemaTranslation>>();
  return {
    translate(version) {
      const key = Buffer.from(version).toString('hex');
      let translating = known.get(key);
      if (translating === undefined) {
        translating = translate(source, destination, version);
        known.set(key, translating);
        const forget = () => known.delete(key);
        void translating.then((translation) => translation.type === 'translated' || forget(), forget);
      }
      return translating;
    },
  };
}

async function translate(
  source: SchemaSource,
  destination: SchemaDestination,
  version: Uint8Array,
): Promise<SchemaTranslation> {
  const found = await source.client.getSchema(source.topic, version);
  if (found.type !== 'found') return refused(found, SERVER_ERROR.topicNotFound, 'the source has no such schema');
  const registered = await destination.client.getOrCreateSchema(await destination.topic(), found.schema);
  if (registered.type === 'registered') return { type: 'translated', version: registered.version };
  return refused(registered, SERVER_ERROR.incompatibleSchema, 'the destination refuses the schema');
}

function refused(refusal: Refusal, incompatible: number, what: string): SchemaTranslation {
  if (refusal.type === 'unreachable') return { type: 'unknown', reason: refusal.reason };
  const { code, message } = refusal;
  if (code === incompatible) return { type: 'incompatible', reason: `${what}: ${message}` };
  return { type: 'unknown', reason: `${message} (error ${code})` };
}
