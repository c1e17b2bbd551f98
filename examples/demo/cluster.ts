/** One cluster of the demo: its topic on disk, its layout controller, and the exchange endpoint that its peers call over HTTP. */
import { randomBytes } from 'node:crypto';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { type Layout, shapeOf } from 'isthmus';
import { createHttpExchangeHandler, createHttpPeerChannel, nodeListener } from 'isthmus/adapters/http';
import { type LmdbTopic, openStore } from 'isthmus/adapters/lmdb';
import { createExchangeHandler, createLayoutController, type LayoutController } from 'isthmus/drivers';
import { channelOver, Link } from './link.js';

const TOPIC = 'public/default/flights';
const CAPS = { maxSegments: 64, maxEntryBucketsPerSegment: 1024 };

export interface Cluster {
  readonly name: string;
  readonly topic: LmdbTopic;
  readonly controller: LayoutController;
  stop(): Promise<void>;
}

/** The clusters and the lines between them. */
export interface Clusters {
  readonly list: readonly Cluster[];
  /** The same for both directions. */
  linkOf(a: string, b: string): Link;
}

/** Opens the stores of all clusters, starts their endpoints with a token for each pair, and makes their controllers. */
export async function openClusters(folder: string, layouts: Readonly<Record<string, Layout>>): Promise<Clusters> {
  const names = Object.keys(layouts);
  const token = new Map(
    names.flatMap((from) => names.map((to) => [`${from} -> ${to}`, randomBytes(24).toString('hex')])),
  );
  const tokenOf = (from: string, to: string) => token.get(`${from} -> ${to}`) ?? '';
  const links = new Map<string, Link>();
  const linkOf = (a: string, b: string): Link => {
    const key = [a, b].sort().join(' ');
    const link = links.get(key) ?? new Link();
    links.set(key, link);
    return link;
  };
  const controllers = new Map<string, LayoutController>();
  const servers = new Map<string, Server>();
  for (const cluster of names) {
    const others = names.filter((from) => from !== cluster);
    const handler = createHttpExchangeHandler({
      cluster,
      handler: createExchangeHandler((topic) => (topic === TOPIC ? controllers.get(cluster) : undefined)),
      credentials: Object.fromEntries(others.map((from) => [from, tokenOf(from, cluster)])),
    });
    servers.set(cluster, await listen(createServer(nodeListener(handler))));
  }
  const list: Cluster[] = [];
  for (const [name, layout] of Object.entries(layouts)) {
    const store = await openStore(join(folder, name));
    const topic = await store.topic({ topic: TOPIC, cluster: name, layout });
    const peers = names
      .filter((peer) => peer !== name)
      .map((peer) => [peer, { url: urlOf(servers.get(peer)), token: tokenOf(name, peer) }]);
    const http = createHttpPeerChannel({ cluster: name, peers: Object.fromEntries(peers) });
    const controller = createLayoutController(
      { host: topic.layoutHost(), channel: channelOver(http, (peer) => linkOf(name, peer)) },
      { cluster: name, topic: TOPIC, members: names, caps: CAPS, term: 1, retryMaxMs: 500 },
    );
    controllers.set(name, controller);
    list.push({
      name,
      topic,
      controller,
      async stop() {
        await controller.stop();
        servers.get(name)?.closeAllConnections();
        servers.get(name)?.close();
        await store.close();
      },
    });
  }
  return { list, linkOf };
}

/** The layout of each cluster in short: how many segments, how many buckets in all. */
export function describe(clusters: readonly Cluster[]): string {
  return clusters
    .map(({ name, topic }) => {
      const { cells } = shapeOf(topic.layout);
      const buckets = cells.reduce((sum, { entryBucketSplits }) => sum + entryBucketSplits.length + 1, 0);
      return `${name} ${cells.length} segments, ${buckets} buckets`;
    })
    .join('; ');
}

async function listen(server: Server): Promise<Server> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return server;
}

function urlOf(server: Server | undefined): string {
  const { port } = (server as Server).address() as AddressInfo;
  return `http://127.0.0.1:${port}/layout-exchange`;
}
