/** The suites of `LinkCursors` and `RemoteRegistry` fail on adapters that are broken, each for the rule that it breaks. */
import { type RemoteRegistrySetup, testLinkCursors, testRemoteRegistry } from 'isthmus/testing';
import { expect, it } from 'vitest';
import type { LinkCursors, LinkWrite, RemoteRegistry, StoredLink, StoredRemote } from '../../src/ports/index.js';
import { verdictOf } from '../support/verdict.js';

/** Cursors by the text of their place: what outlives an owner. */
type Disk = Map<string, number>;

type NameOf = (child: string, attachEpoch: number, partition: number) => string;
const nameOf: NameOf = (...place) => place.join('/');

function cursorsOn(disk: Disk, name: NameOf = nameOf): LinkCursors {
  return {
    read: async (...place) => disk.get(name(...place)),
    write: async (child, attachEpoch, partition, offset) => {
      disk.set(name(child, attachEpoch, partition), offset);
    },
  };
}

const cursorsVerdict = (open: (disk: Disk) => LinkCursors) =>
  verdictOf((test) => {
    testLinkCursors(() => {
      const disk: Disk = new Map();
      return { cursors: open(disk), reopen: () => open(disk) };
    }, test);
  });

const named = (name: NameOf) => (disk: Disk) => cursorsOn(disk, name);
const writing = (write: (disk: Disk, name: string, offset: number) => Promise<void> | void) => (disk: Disk) => ({
  ...cursorsOn(disk),
  write: async (...[child, attachEpoch, partition, offset]: Parameters<LinkCursors['write']>) =>
    write(disk, nameOf(child, attachEpoch, partition), offset),
});

it.each<[string, (disk: Disk) => LinkCursors, RegExp]>([
  [
    'that begin at 0',
    (disk) => ({ ...cursorsOn(disk), read: async (...place) => disk.get(nameOf(...place)) ?? 0 }),
    /never written has an offset/,
  ],
  [
    'that never go back',
    writing((disk, name, offset) => {
      disk.set(name, Math.max(offset, disk.get(name) ?? 0));
    }),
    /an offset of 3 was written last, and 9007199254740991 is read/,
  ],
  [
    'of 32 bits',
    writing((disk, name, offset) => {
      disk.set(name, offset >>> 0);
    }),
    /an offset of 9007199254740991 was written last, and 4294967295 is read/,
  ],
  [
    'that take 0 for nothing',
    writing((disk, name, offset) => void (offset && disk.set(name, offset))),
    /of 0 was written/,
  ],
  ['that do not outlive their owner', () => cursorsOn(new Map()), /and the next owner reads undefined/],
  ['of all attachments together', named((child, _, partition) => `${child}/${partition}`), /copy\/2\/0 was written by/],
  ['of all partitions together', named((child, attachEpoch) => `${child}/${attachEpoch}`), /copy\/1\/1 was written by/],
  ['of all children together', named((_, ...rest) => rest.join('/')), /copy-1\/1\/0 was written by another/],
  ['whose names run together', named((...place) => place.join('')), /copy\/1\/10 was written by another/],
  ['that do not tell signs apart', named((child, ...rest) => [child.replace(/\W/, '_'), ...rest].join('/')), /copy\.1/],
  [
    'that write all of what they know',
    (disk) => {
      const name = (...place: Parameters<NameOf>) => place.join('/');
      return {
        ...cursorsOn(disk),
        write: async (child, attachEpoch, partition, offset) => {
          const known = new Map(disk).set(name(child, attachEpoch, partition), offset);
          await Promise.resolve();
          disk.clear();
          for (const [key, value] of known) disk.set(key, value);
        },
      };
    },
    /of writes at the same time there are \[,/,
  ],
])('it refuses cursors %s', async (_, broken, rule) => {
  expect(await cursorsVerdict(broken)).toMatch(rule);
});

it('it takes cursors as they should be', async () => {
  expect(await cursorsVerdict(cursorsOn)).toBe('accepted');
});

/** Metadata as it should be, in few lines. */
class Registry implements RemoteRegistry {
  remotes: readonly StoredRemote[] = [];
  links: readonly StoredLink[] = [];
  moves = 0;
  epoch = 0;

  version(): number {
    return this.moves;
  }

  async read() {
    return { remotes: this.remotes, links: this.links };
  }

  async write(change: LinkWrite): ReturnType<RemoteRegistry['write']> {
    if (change.type === 'attach') {
      if (this.links.some(({ child }) => child === change.link.child)) return { type: 'refused', reason: 'taken' };
      this.links = [...this.links, { ...change.link, attachEpoch: this.nextEpoch() }];
    } else {
      const link = this.links.find((each) => this.isOf(change, each));
      if (link === undefined) return { type: 'refused', reason: 'there is no such link' };
      this.links = this.links.map((each) => (each === link ? { ...each, ...this.changed(each, change) } : each));
    }
    this.moves++;
    return { type: 'written' };
  }

  nextEpoch(): number {
    return ++this.epoch;
  }

  isOf({ child, attachEpoch }: { readonly child: string; readonly attachEpoch: number }, link: StoredLink): boolean {
    return link.child === child && link.attachEpoch === attachEpoch;
  }

  changed({ skips }: StoredLink, change: Exclude<LinkWrite, { readonly type: 'attach' }>): Partial<StoredLink> {
    if (change.type === 'skip') return { skips: [...skips, change.skip] };
    return change.type === 'pause' ? { paused: true } : { paused: false, targetId: change.targetId };
  }

  addRemote(remote: StoredRemote): void {
    this.remotes = [...this.remotes, remote];
    this.moves++;
  }

  detach(child: string): void {
    this.links = this.links.filter((link) => link.child !== child);
    this.moves++;
  }
}

const registryVerdict = (setup: () => Registry, change: Partial<RemoteRegistrySetup> = {}) =>
  verdictOf((test) => {
    testRemoteRegistry(() => {
      const registry = setup();
      return {
        registry,
        addRemote: (remote) => registry.addRemote(remote),
        detach: (child) => registry.detach(child),
        reopen: () => registry,
        ...change,
      };
    }, test);
  });

type Methods = Pick<Registry, 'read' | 'write' | 'changed' | 'detach'>;

/** Metadata of which one thing is another. */
const broken = (change: (good: Methods) => Partial<Registry>) => () => {
  const good = new Registry();
  const [read, write] = [good.read.bind(good), good.write.bind(good)];
  const [changed, detach] = [good.changed.bind(good), good.detach.bind(good)];
  return Object.assign(good, change({ read, write, changed, detach }));
};

it.each<[string, () => Registry, RegExp]>([
  [
    'that begins with a link',
    broken(({ read }) => ({
      read: async () => {
        const { remotes, links } = await read();
        return { remotes, links: links.length > 0 ? links : [{ child: 'x' } as StoredLink] };
      },
    })),
    /fresh metadata is not empty/,
  ],
  [
    'that loses the certificates of a remote',
    broken(({ read }) => ({
      read: async () => {
        const { remotes, links } = await read();
        return { remotes: remotes.map(({ caPem: _, ...remote }) => remote), links };
      },
    })),
    /a remote is not read as it was stored/,
  ],
  [
    'that loses where cursors begin',
    broken(({ read }) => ({
      read: async () => {
        const { remotes, links } = await read();
        return { remotes, links: links.map((link) => ({ ...link, startOffsets: [] })) };
      },
    })),
    /a link is not read as it was attached/,
  ],
  [
    'whose version stands still when a link is skipped on',
    broken(({ write }) => ({
      async write(this: Registry, change) {
        const { moves } = this;
        const answer = await write(change);
        if (change.type === 'skip') this.moves = moves;
        return answer;
      },
    })),
    /the version stays as it is with a skip/,
  ],
  [
    'whose version is one bit',
    broken(() => ({
      version(this: Registry) {
        return this.moves % 2;
      },
    })),
    /the version is an old one/,
  ],
  [
    'whose version moves when it is read',
    broken(({ read }) => ({
      read(this: Registry) {
        this.moves++;
        return read();
      },
    })),
    /it is read for ever/,
  ],
  [
    'that takes a name twice',
    broken(({ write, detach }) => ({
      async write(change) {
        if (change.type === 'attach') detach(change.link.child);
        return write(change);
      },
    })),
    /a taken name is written/,
  ],
  [
    'that throws what it refuses',
    broken(({ write }) => ({
      async write(change) {
        const answer = await write(change);
        if (answer.type === 'refused') throw new Error(answer.reason);
        return answer;
      },
    })),
    /a taken name rejects: a refusal is a value/,
  ],
  [
    'that writes what it refuses',
    broken(({ write }) => ({
      async write(this: Registry, change) {
        const answer = await write(change);
        if (answer.type === 'refused' && change.type === 'attach') {
          this.links = this.links.map((link) => ({ ...link, topic: change.link.topic }));
        }
        return answer;
      },
    })),
    /an attach that was refused has changed the link/,
  ],
  ['that gives all attachments one epoch', broken(() => ({ nextEpoch: () => 1 })), /the epoch of the one before/],
  ['that removes nothing', broken(() => ({ detach: () => undefined })), /a link that was removed is read/],
  [
    'that pauses what it resumes',
    broken(({ changed }) => ({
      changed: (link, change) => ({ ...changed(link, change), ...(change.type === 'resume' && { paused: true }) }),
    })),
    /a resume does not change just what it names/,
  ],
  [
    'that keeps the latest skip alone',
    broken(({ changed }) => ({
      changed: (link, change) => (change.type === 'skip' ? { skips: [change.skip] } : changed(link, change)),
    })),
    /a skip does not change just what it names/,
  ],
  [
    'that pauses all links',
    broken(({ write }) => ({
      async write(this: Registry, change) {
        const answer = await write(change);
        if (change.type === 'pause') this.links = this.links.map((link) => ({ ...link, paused: true }));
        return answer;
      },
    })),
    /a pause changes another link/,
  ],
  [
    'that looks at the child alone',
    broken(() => ({ isOf: ({ child }, link) => link.child === child })),
    /a pause of a link that is not there is written/,
  ],
  [
    'that looks at the epoch alone',
    broken(() => ({ isOf: ({ attachEpoch }, link) => link.attachEpoch === attachEpoch })),
    /a pause of a link that is not there is written/,
  ],
  [
    'that counts what it refuses as a skip',
    broken(({ write }) => ({
      async write(this: Registry, change) {
        const answer = await write(change);
        const [link] = this.links;
        if (answer.type === 'refused' && change.type === 'skip' && link !== undefined) {
          this.links = [{ ...link, skips: [change.skip] }];
        }
        return answer;
      },
    })),
    /a skip that was refused has changed something/,
  ],
  [
    'that changes what it has lent',
    broken(({ write }) => ({
      async write(this: Registry, change) {
        const { links } = this;
        const answer = await write(change);
        if (change.type === 'attach') return answer;
        for (const [i, link] of links.entries()) Object.assign(link, this.links[i]);
        this.links = links;
        return answer;
      },
    })),
    /what was read changes with a later write/,
  ],
])('it refuses metadata %s', async (_, setup, rule) => {
  expect(await registryVerdict(setup)).toMatch(rule);
});

it('it refuses metadata that does not outlive its process', async () => {
  const verdict = await registryVerdict(() => new Registry(), { reopen: () => new Registry() });
  expect(verdict).toMatch(/what was stored does not outlive the process/);
});

it('it takes metadata as it should be', async () => {
  expect(await registryVerdict(() => new Registry())).toBe('accepted');
});
