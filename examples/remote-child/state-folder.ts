/**
 * What has to outlive the process, in a folder: the remotes and links of the cluster, and how far each partition has
 * come. A file is written whole beside the old one and takes its place, so that a kill leaves one or the other.
 */
import { open, readFile, rename } from 'node:fs/promises';
import { join } from 'node:path';
import type { LinkCursors, LinkWrite, LinkWriteAnswer, RemoteRegistry, StoredLink, StoredRemote } from 'isthmus';

interface Registry {
  readonly version: number;
  readonly remotes: readonly StoredRemote[];
  readonly links: readonly StoredLink[];
}

/** The metadata of a cluster of one node. */
export class FolderRegistry implements RemoteRegistry {
  private constructor(
    private readonly file: string,
    private stored: Registry,
  ) {}

  static async open(folder: string): Promise<FolderRegistry> {
    const file = join(folder, 'registry.json');
    return new FolderRegistry(file, await readJson<Registry>(file, { version: 1, remotes: [], links: [] }));
  }

  version(): number {
    return this.stored.version;
  }

  async read(): Promise<Pick<Registry, 'remotes' | 'links'>> {
    return this.stored;
  }

  async addRemote(remote: StoredRemote): Promise<void> {
    await this.store({ remotes: [...this.stored.remotes, remote] });
  }

  async write(change: LinkWrite): Promise<LinkWriteAnswer> {
    const { links, version } = this.stored;
    if (change.type === 'attach') {
      if (links.some(({ child }) => child === change.link.child))
        return { type: 'refused', reason: 'the name is taken' };
      await this.store({ links: [...links, { ...change.link, attachEpoch: version }] });
      return { type: 'written' };
    }
    const link = links.find(({ child, attachEpoch }) => child === change.child && attachEpoch === change.attachEpoch);
    if (link === undefined) return { type: 'refused', reason: 'there is no such link' };
    const changed = { ...link, ...changeOf(link, change) };
    await this.store({ links: links.map((other) => (other === link ? changed : other)) });
    return { type: 'written' };
  }

  private async store(change: Partial<Registry>): Promise<void> {
    const stored = { ...this.stored, ...change, version: this.stored.version + 1 };
    await writeJson(this.file, stored);
    this.stored = stored;
  }
}

function changeOf(link: StoredLink, change: Exclude<LinkWrite, { type: 'attach' }>): Partial<StoredLink> {
  if (change.type === 'skip') return { skips: [...link.skips, change.skip] };
  return change.type === 'pause' ? { paused: true } : { paused: false, targetId: change.targetId };
}

/** One file for each cursor. */
export class FolderCursors implements LinkCursors {
  constructor(private readonly folder: string) {}

  read(child: string, attachEpoch: number, partition: number): Promise<number | undefined> {
    return readJson<number | undefined>(this.fileOf(child, attachEpoch, partition), undefined);
  }

  write(child: string, attachEpoch: number, partition: number, offset: number): Promise<void> {
    return writeJson(this.fileOf(child, attachEpoch, partition), offset);
  }

  private fileOf(child: string, attachEpoch: number, partition: number): string {
    return join(this.folder, `cursor-${child}-${attachEpoch}-${partition}.json`);
  }
}

async function readJson<T>(file: string, absent: T): Promise<T> {
  try {
    return JSON.parse(await readFile(file, 'utf8')) as T;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return absent;
    throw error;
  }
}

async function writeJson(file: string, value: unknown): Promise<void> {
  const handle = await open(`${file}.new`, 'w');
  try {
    await handle.writeFile(JSON.stringify(value));
    await handle.sync();
  } finally {
    await handle.close();
  }
  await rename(`${file}.new`, file);
}
