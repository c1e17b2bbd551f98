/** The client: what it opens, on which connection, and how all of it ends. */
import { Brokers } from './brokers.js';
import { Connection } from './connection.js';
import { checkSubscribeOptions, openConsumer } from './consumer.js';
import { layoutStream } from './layout-stream.js';
import { checkProducerOptions, openProducer } from './producer.js';
import { getOrCreateSchema, getSchema } from './schemas.js';
import { readSettings } from './settings.js';
import { openStream, type StreamEvents, type StreamKind, type StreamResult } from './stream.js';
import { topicsStream } from './topics-stream.js';
import type { PulsarClient, PulsarClientOptions } from './types.js';

/** Makes a client. It connects when it is first asked for something. Throws `invalidArgument` for impossible options. */
export function createPulsarClient(options: PulsarClientOptions): PulsarClient {
  const closing = new AbortController();
  const settings = readSettings(options, closing.signal);
  const brokers = new Brokers(settings);

  async function stream<Update>(kind: StreamKind<Update>, events: StreamEvents<Update>): Promise<StreamResult<Update>> {
    const connection = await brokers.anyBroker();
    return connection instanceof Connection ? openStream(connection, kind, events) : connection;
  }

  return {
    async openProducer(producer, events) {
      checkProducerOptions(producer);
      const purpose = producer.connection ?? 'sending';
      return brokers.onOwner(producer.topic, purpose, (connection) => openProducer(connection, producer, events));
    },
    async subscribe(consumer, events) {
      checkSubscribeOptions(consumer);
      return brokers.onOwner(consumer.topic, 'control', (connection) => openConsumer(connection, consumer, events));
    },
    openLayoutSession: (topic, events) => stream(layoutStream(topic, settings.isTls), events),
    watchTopics: (namespace, events) => stream(topicsStream(namespace), events),
    async getSchema(topic, version) {
      const connection = await brokers.anyBroker();
      return connection instanceof Connection ? getSchema(connection, topic, version) : connection;
    },
    async getOrCreateSchema(topic, schema) {
      return brokers.onOwner(topic, 'control', (connection) => getOrCreateSchema(connection, topic, schema));
    },
    async close() {
      closing.abort();
    },
  };
}
