/** Controllers of several clusters in one process: calls that never fail. */
import type { ExchangeHandler, PeerChannel } from '../../ports/index.js';

/** The clusters that can be called, by name. */
export class MemoryPeers {
  private readonly handlers = new Map<string, ExchangeHandler>();

  /** Makes a cluster reachable. */
  connect(cluster: string, handler: ExchangeHandler): void {
    this.handlers.set(cluster, handler);
  }

  /** Makes a cluster unreachable. */
  disconnect(cluster: string): void {
    this.handlers.delete(cluster);
  }

  /** The channel of one cluster to all others. */
  channel(from: string): PeerChannel {
    return {
      exchange: async (peer, requests) => {
        const handler = this.handlers.get(peer);
        if (handler === undefined) return { type: 'failed', reason: `${peer} is not connected` };
        return { type: 'answered', results: await handler.exchange(from, requests) };
      },
    };
  }
}
