/** Calls of the admin REST for which the adapter has no use: classic topics, their replication, and what is stored. */
import type { Cluster } from '../../test/pulsar/brokers.js';

/** Rejects when the call is refused. */
export async function rest(cluster: Cluster, method: 'GET' | 'PUT' | 'POST', path: string, body?: unknown) {
  const response = await fetch(`${cluster.adminUrl}/admin/v2/${path}`, {
    method,
    headers: { 'content-type': 'application/json' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`${method} ${path} on ${cluster.name}: ${response.status} ${text.slice(0, 400)}`);
  return (text === '' ? {} : JSON.parse(text)) as Answer;
}

/** Of the answers, what is read here. */
interface Answer {
  readonly storageSize?: number;
  readonly subscriptions?: Readonly<Record<string, { readonly msgBacklog: number }>>;
  readonly replication?: Readonly<Record<string, { readonly replicationBacklog: number }>>;
}
