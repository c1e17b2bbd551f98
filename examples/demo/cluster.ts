/** One cluster of the demo: its topic, its layout controller, and the exchange endpoint that its peers call over HTTP. */
import { randomBytes } from 'node:crypto';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type Layout, shapeOf } from 'isthmus';
import { createHttpExchangeHandler, createHttpPeerChannel, nodeListener } from 'isthmus/adapters/http';
import { MemoryTopic } from 'isthmus/adapters/memory';
import { createExchangeHandler, createLayoutController, type LayoutController } from 'isthmus/drivers';

const TOPIC = 'public/default/flights';
const CAPS = { maxSegments: 64, maxEntryBucketsPerSegment: 1024 };

export interface Cluster {
  readonly name: string;
  readonly topic: MemoryTopic;
  readonly controller: LayoutController;
  stop(): Promise<void>;
}

/** Starts the endpoints of all clusters, with a token for each pair, and makes their controllers. */
export async function createClusters(layouts: Readonly<Record<string, Layout>>): Promise<Cluster[]> {
  const names = Object.keys(layouts);
  const token = new Map(
    names.flatMap((from) => names.map((to) => [`${from} -> ${to}`, randomBytes(24).toString('hex')])),
  );
  const tokenOf = (from: string, to: string) => token.get(`${from} -> ${to}`) ?? '';
  const controllers = new Map<string, LayoutController>();
  const servers = new Map<string, Server>();
  const urls = new Map<string, string>();
  for (const cluster of names) {
    const handler = createHttpExchangeHandler({
      cluster,
      handler: createExchangeHandler((topic) => (topic === TOPIC ? controllers.get(cluster) : undefined)),
      credentials: Object.fromEntries(
        names.filter((from) => from !== cluster).map((from) => [from, tokenOf(from, cluster)]),
      ),
    });
    const server = await listen(createServer(nodeListener(handler)));
    servers.set(cluster, server);
    urls.set(cluster, urlOf(server));
  }
  return Object.entries(layouts).map(([name, layout]) => {
    const topic = new MemoryTopic({ cluster: name, layout });
    const peers = names
      .filter((peer) => peer !== name)
      .map((peer) => [peer, { url: urls.get(peer) ?? '', token: tokenOf(name, peer) }]);
    const controller = createLayoutController(
      { host: topic.layoutHost(), channel: createHttpPeerChannel({ cluster: name, peers: Object.fromEntries(peers) }) },
      { cluster: name, topic: TOPIC, members: names, caps: CAPS, term: 1 },
    );
    controllers.set(name, controller);
    return {
      name,
      topic,
      controller,
      async stop() {
        await controller.stop();
        servers.get(name)?.closeAllConnections();
        servers.get(name)?.close();
      },
    };
  });
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

function urlOf(server: Server): string {
  const { port } = server.address() as AddressInfo;
  return `http://127.0.0.1:${port}/layout-exchange`;
}
