/**
 * The two that are compared, behind one face: isthmus between scalable topics, and the brokers' own geo-replicator
 * between classic topics. Each replicates a topic from a to b from its first entry on, beginning when it is told to.
 */
import type { PulsarAdmin } from 'isthmus/adapters/pulsar';
import type { Broker } from '../../test/pulsar/brokers.js';
import { expectOk } from '../../test/pulsar/stage.js';
import { rest } from './rest.js';

/** What a topic holds, markers that a replicator has left counted. */
export interface Stored {
  readonly entries: number;
  readonly bytes: number;
}

export interface Way {
  readonly name: string;
  /** Makes a topic on the source, that keeps what is written, and gives its name in full. */
  create(topic: string): Promise<string>;
  /** Of a topic before it is replicated. */
  written(topic: string): Promise<Stored>;
  /** Makes the topic on the destination, and lets the replication begin. */
  begin(topic: string): Promise<void>;
  stored(topic: string): Promise<Stored>;
  /** Entries that the source has not had acknowledged by the replication. */
  backlog(topic: string): Promise<number | undefined>;
}

/** A subscription that nobody reads from: entries are kept for it, and its backlog counts them. */
const COUNT = 'count';

/** Where the replicator process looks for topics that are on both clusters. */
export const SCALABLE_NAMESPACE = 'public/scalable';

/** One segment, as a classic topic is one. */
export function isthmusWay(a: Broker, b: Broker, adminOf: (broker: Broker) => PulsarAdmin): Way {
  const name = (topic: string) => `${SCALABLE_NAMESPACE}/${topic}`;
  const create = async (broker: Broker, topic: string) => {
    expectOk(await adminOf(broker).createScalable(name(topic), 1));
    expectOk(await adminOf(broker).putSubscription(name(topic), COUNT));
  };
  const stored = (broker: Broker, topic: string) => held(broker, `scalable/${name(topic)}/segments/0/stats`);
  return {
    name: 'isthmus',
    create: async (topic) => {
      await create(a, topic);
      return `topic://${name(topic)}`;
    },
    written: (topic) => stored(a, topic),
    begin: (topic) => create(b, topic),
    stored: (topic) => stored(b, topic),
    backlog: async (topic) => {
      const backlogs = expectOk(await adminOf(a).subscriptions(name(topic))).get(`isthmus.${b.name}`)?.backlogs;
      return backlogs?.get(0);
    },
  };
}

/** Each topic has a namespace of its own, since that is what replication is switched on for. */
export function geoWay(a: Broker, b: Broker): Way {
  const name = (topic: string) => `public/${topic}/${topic}`;
  const stored = (broker: Broker, topic: string) => held(broker, `persistent/${name(topic)}/stats`);
  const create = async (broker: Broker, topic: string) => {
    await rest(broker, 'PUT', `namespaces/public/${topic}`);
    await rest(broker, 'PUT', `persistent/${name(topic)}`);
    await rest(broker, 'PUT', `persistent/${name(topic)}/subscription/${COUNT}`);
  };
  return {
    name: "Pulsar's own",
    create: async (topic) => {
      await create(a, topic);
      return `persistent://${name(topic)}`;
    },
    written: (topic) => stored(a, topic),
    begin: async (topic) => {
      await create(b, topic);
      await rest(a, 'POST', `namespaces/public/${topic}/replication`, [a.name, b.name]);
    },
    stored: (topic) => stored(b, topic),
    backlog: async (topic) => {
      const { replication } = await rest(a, 'GET', `persistent/${name(topic)}/stats`);
      return replication?.[b.name]?.replicationBacklog;
    },
  };
}

async function held(broker: Broker, path: string): Promise<Stored> {
  const { storageSize = 0, subscriptions } = await rest(broker, 'GET', path);
  return { entries: subscriptions?.[COUNT]?.msgBacklog ?? 0, bytes: storageSize };
}
