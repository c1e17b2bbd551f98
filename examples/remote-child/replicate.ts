/**
 * One life of the replicating process: copies the folder to the target until all of it is there. It may be killed at
 * any moment; the next life goes on where the cursors stand. Started as `replicate.ts CONFIG`, with the master secret
 * of the credentials in the environment.
 */
import { readFileSync } from 'node:fs';
import { CredentialKeys, type LinkCursors, Secret } from 'isthmus';
import { createRemoteSender, type RemoteSender } from 'isthmus/drivers';
import { NdjsonParent } from './ndjson-parent.js';
import { FolderCursors, FolderRegistry } from './state-folder.js';

/** What the process is started with. */
export interface ReplicateConfig {
  /** The folder of NDJSON files, and the member of a line that is its key. */
  readonly source: string;
  readonly keyMember: string;
  /** The folder of what outlives the process. */
  readonly state: string;
  /** The cluster's salt, base64. */
  readonly salt: string;
  readonly remote: string;
  readonly topic: string;
  readonly lanes: number;
  /** Where the guard lets it connect to. */
  readonly allowedHosts: readonly string[];
  readonly allowedPorts: readonly number[];
  readonly allowAddresses: readonly string[];
}

/** What it tells whoever started it. */
export type ReplicateNews =
  | { readonly type: 'state'; readonly state: string; readonly offsets: readonly number[] }
  /** Everything of a slab was accepted, and its cursor is not written: it stays so until the process is killed. */
  | { readonly type: 'holding'; readonly partition: number; readonly offset: number }
  | { readonly type: 'done'; readonly requests: number; readonly resent: number }
  | { readonly type: 'refused'; readonly reason: string };

const PARENT = 'flights';
const CHILD = 'flights-copy';
const POLL_MS = 20;

const config = JSON.parse(readFileSync(process.argv[2] ?? '', 'utf8')) as ReplicateConfig;
const secret = new Secret(process.env.ISTHMUS_MASTER_SECRET ?? '');
const { allowedHosts, allowedPorts, allowAddresses } = config;

const parent = new NdjsonParent(PARENT, config.source, config.keyMember);
const registry = await FolderRegistry.open(config.state);
const files = new FolderCursors(config.state);
let isHolding = false;
const cursors: LinkCursors = {
  read: (...place) => files.read(...place),
  write(...place) {
    if (!isHolding) return files.write(...place);
    const [, , partition, offset] = place;
    tell({ type: 'holding', partition, offset });
    return new Promise(() => undefined);
  },
};
process.on('message', (message) => {
  if (message === 'hold') isHolding = true;
});
process.on('disconnect', () => process.exit(1));

const sender = createRemoteSender(
  { registry, parents: parent, cursors },
  {
    keys: new CredentialKeys({ secret, salt: Buffer.from(config.salt, 'base64') }),
    guard: { allowedHosts, allowedPorts, allowAddresses },
  },
);
sender.start();
for (const partition of parent.partitions.keys()) sender.takePartition(PARENT, partition);
if (await attached(sender)) await replicate(sender);
await sender.stop();
process.disconnect();

/** Makes the link in the first life; later ones find it. */
async function attached(sender: RemoteSender): Promise<boolean> {
  if ((await registry.read()).links.length > 0) return true;
  await until(() => sender.status().remotes.length > 0);
  const { remote, topic, lanes } = config;
  const answer = await sender.attach({ parent: PARENT, child: CHILD, remote, topic, from: 'earliest', lanes });
  if (answer.type === 'refused') tell({ type: 'refused', reason: answer.reason });
  return answer.type === 'done';
}

/** Resolves when every cursor is at its end. */
async function replicate(sender: RemoteSender): Promise<void> {
  await until(() => {
    const [link] = sender.status().links;
    if (link === undefined || link.cursors.length < parent.partitions.length) return false;
    const offsets = parent.partitions.map((_, n) => link.cursors.find(({ partition }) => partition === n)?.offset ?? 0);
    tell({ type: 'state', state: link.summary.state, offsets });
    return parent.partitions.every((records, n) => offsets[n] === records.length);
  });
  const report = sender.status().remotes[0]?.report;
  const requests = Object.values(report?.remoteRequestsTotal ?? {}).reduce((sum, count) => sum + count, 0);
  tell({ type: 'done', requests, resent: report?.remoteResentRecordsTotal ?? 0 });
}

function tell(news: ReplicateNews): void {
  process.send?.(news);
}

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setTimeout(resolve, POLL_MS));
}
