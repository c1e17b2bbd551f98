/** Calls of the admin REST that the adapter itself has no use for. */
import type { Cluster } from './brokers.js';

/** A call of the admin REST, of a secure broker as a super-user; rejects when it is refused. */
export async function rest(cluster: Cluster, method: string, path: string, body?: unknown): Promise<unknown> {
  const { adminUrl, secure } = cluster;
  const headers: Record<string, string> = { 'content-type': 'application/json' };
  if (secure !== undefined) headers.authorization = `Bearer ${secure.token('admin')}`;
  const response = await fetch(`${secure?.plainAdminUrl ?? adminUrl}/admin/v2/${path}`, {
    method,
    headers,
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text.slice(0, 400)}`);
  return text === '' ? undefined : JSON.parse(text);
}
