/** The whole of it: two clusters, the backlogs written while b is down, and then one replication after the other. */
import { PulsarAdmin } from 'isthmus/adapters/pulsar';
import { type Broker, startBrokers } from '../../test/pulsar/brokers.js';
import { JavaClients } from '../../test/pulsar/java-client.js';
import { type Drain, drain, type Processes } from './drain.js';
import { ReplicatorProcess } from './replicator-process.js';
import { rest } from './rest.js';
import type { LoadResult } from './table.js';
import { geoWay, isthmusWay, SCALABLE_NAMESPACE, type Stored, type Way } from './ways.js';

export interface Load {
  readonly name: string;
  /** Messages of an entry; 1 is no batch. */
  readonly batch: number;
  /** The size of one backlog, in MiB. */
  readonly mib: number;
}

export interface ContestOptions {
  readonly loads: readonly Load[];
  /** Rounds that count, from 1; one before them does not. */
  readonly rounds: number;
  readonly profileFolder: string | undefined;
  /** What is to be ended, the last one first, however this ends. */
  readonly closers: (() => Promise<void>)[];
  say(text: string): void;
}

/** One backlog of one way. */
interface Backlog {
  readonly load: Load;
  /** 0 is the one that does not count. */
  readonly round: number;
  readonly way: Way;
  readonly topic: string;
  readonly written: Stored;
}

const MESSAGE_BYTES = 1_024;

export async function contest(options: ContestOptions): Promise<readonly LoadResult[]> {
  const { loads, closers, profileFolder, say } = options;
  say('starting two Pulsar 5.0.1 clusters and the Java client (the first time their jars are fetched) ...');
  const [a, b] = await startClusters(closers);
  const adminOf = ({ adminUrl }: Broker) => new PulsarAdmin({ urls: [adminUrl] });
  const ways = [isthmusWay(a, b, adminOf), geoWay(a, b)];
  say('stopping b, and writing the backlogs to a');
  await b.stop();
  const backlogs = await writeAll(a, ways, options);
  say('starting b again, and isthmus');
  await b.restart();
  const profile = profileFolder === undefined ? {} : { profileFolder };
  const replicator = new ReplicatorProcess({ from: a, to: b, namespace: SCALABLE_NAMESPACE, ...profile });
  closers.push(() => replicator.stop());
  await replicator.ready();
  const processes = { 'broker a': a.pid, 'broker b': b.pid, isthmus: replicator.pid };
  const results: LoadResult[] = [];
  for (const { name } of loads) {
    const drains = await drainAll(
      backlogs.filter(({ load }) => load.name === name),
      processes,
      say,
    );
    results.push({ load: name, ways: ways.map((way) => ({ name: way.name, drains: drains.get(way) ?? [] })) });
  }
  return results;
}

/** Two clusters of which a knows b, and replicates to it what it is told to from the first entry on. */
async function startClusters(closers: ContestOptions['closers']): Promise<readonly [Broker, Broker]> {
  const settings = { replicationStartAt: 'earliest', scalableTopicAutoScaleEnabled: false };
  const brokers = await startBrokers(2, { optimised: true, settings });
  closers.push(() => brokers.stop());
  const [a, b] = brokers.all;
  if (a === undefined || b === undefined) throw new Error('two brokers were started');
  await rest(a, 'PUT', `clusters/${b.name}`, { serviceUrl: b.adminUrl, brokerServiceUrl: b.serviceUrl });
  await rest(a, 'POST', 'tenants/public', { adminRoles: [], allowedClusters: [a.name, b.name] });
  for (const cluster of [a, b]) await rest(cluster, 'PUT', `namespaces/${SCALABLE_NAMESPACE}`);
  return [a, b];
}

async function writeAll(
  a: Broker,
  ways: readonly Way[],
  { loads, rounds, closers, say }: ContestOptions,
): Promise<readonly Backlog[]> {
  const java = await JavaClients.start();
  closers.push(() => java.stop());
  await java.open(a);
  const backlogs: Backlog[] = [];
  for (const [i, load] of loads.entries()) {
    const entries = Math.ceil((load.mib * 1024 * 1024) / (load.batch * MESSAGE_BYTES));
    for (let round = 0; round <= rounds; round++) {
      for (const [j, way] of ways.entries()) {
        const topic = `load${i}-${round}-${j}`;
        const { batch } = load;
        const call = { client: a.name, topic: await way.create(topic), count: entries * batch, bytes: MESSAGE_BYTES };
        await java.call('backlog', { ...call, batch });
        const written = await way.written(topic);
        if (written.entries !== entries) throw new Error(`${topic} has ${written.entries} entries, not ${entries}`);
        backlogs.push({ load, round, way, topic, written });
      }
    }
    const bytes = backlogs
      .filter((backlog) => backlog.load === load)
      .reduce((sum, { written }) => sum + written.bytes, 0);
    say(`  ${load.name}: ${2 * (rounds + 1)} backlogs of ${entries} entries, ${(bytes / 1e6).toFixed(0)} MB in all`);
  }
  await java.stop();
  return backlogs;
}

/** Those of one load, the two ways in an order that changes with the round. Gives what counts. */
async function drainAll(
  backlogs: readonly Backlog[],
  processes: Processes,
  say: (text: string) => void,
): Promise<ReadonlyMap<Way, readonly Drain[]>> {
  const drains = new Map<Way, Drain[]>();
  const rounds = new Set(backlogs.map(({ round }) => round));
  for (const round of rounds) {
    const both = backlogs.filter((backlog) => backlog.round === round);
    for (const { load, way, topic, written } of round % 2 === 0 ? both : both.toReversed()) {
      const drained = await drain({ way, topic, written, processes });
      const { entriesPerSecond, bytesPerSecond, seconds } = drained;
      const rate = `${entriesPerSecond.toFixed(0)} entries/s, ${(bytesPerSecond / 1e6).toFixed(1)} MB/s`;
      const title = round === 0 ? 'warm-up' : `round ${round}`;
      say(`  ${load.name}, ${title}, ${way.name}: ${rate}, for ${seconds.toFixed(1)} s`);
      if (round > 0) drains.set(way, [...(drains.get(way) ?? []), drained]);
    }
  }
  return drains;
}
