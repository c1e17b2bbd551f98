/** Calls of the admin REST for which the adapter has no use: classic topics, their replication, and what is stored. */
import type { Cluster } from '../../test/pulsar/brokers.js';
import { rest as call } from '../../test/pulsar/rest.js';

/** Rejects when the call is refused. */
export async function rest(cluster: Cluster, method: 'GET' | 'PUT' | 'POST', path: string, body?: unknown) {
  return ((await call(cluster, method, path, body)) ?? {}) as Answer;
}

/** Of the answers, what is read here. */
interface Answer {
  readonly storageSize?: number;
  readonly subscriptions?: Readonly<Record<string, { readonly msgBacklog: number }>>;
  readonly replication?: Readonly<Record<string, { readonly replicationBacklog: number }>>;
}
