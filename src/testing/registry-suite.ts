/**
 * Acceptance suite for `RemoteRegistry`: the same tests that the adapters here pass. It is given the test function of
 * the runner, `it` or `test`, and a `setup` that makes fresh metadata for each test. Each message of a failure is the
 * rule that is broken.
 */
import type { LinkWrite, RemoteRegistry, StoredLink, StoredRemote } from '../ports/index.js';
import { check, onFresh, type RegisterTest, rejects, type SuiteSetup } from './suite.js';
import { sameValue, textOfValue } from './suite-values.js';

/** Metadata without a remote and without a link. */
export interface RemoteRegistrySetup extends SuiteSetup {
  readonly registry: RemoteRegistry;
  /** Stores a remote, as the host's own calls do. */
  addRemote(remote: StoredRemote): Promise<void> | void;
  /** Removes a link, as the host's own calls do; absent where none ever is. */
  detach?(child: string): Promise<void> | void;
  /** The same metadata as the next process of this node finds it, once this one has died without closing anything. */
  reopen(): Promise<RemoteRegistry> | RemoteRegistry;
}

/** Makes fresh metadata for one test. */
export type RemoteRegistryFactory = () => Promise<RemoteRegistrySetup> | RemoteRegistrySetup;

/** Registers the tests of `RemoteRegistry`. */
export function testRemoteRegistry(setup: RemoteRegistryFactory, test: RegisterTest): void {
  const using = onFresh(setup);
  const name = (what: string) => `RemoteRegistry: ${what}`;

  test(
    name('remotes and links are read as they were stored, every field of them, by the next process as well'),
    using(async ({ registry, addRemote, reopen }) => {
      check((await contents(registry)) === contentsOf([], []), 'fresh metadata is not empty');
      await addRemote(REMOTE);
      for (const child of ['copy', 'copy-2']) await written(registry, attach(child));
      const { remotes, links } = await registry.read();
      check(sameValue(remotes, [REMOTE]), 'a remote is not read as it was stored');
      const sent = links.map(({ attachEpoch: _, ...link }) => link);
      check(
        sameValue(byChild(sent), byChild([linkOf('copy'), linkOf('copy-2')])),
        'a link is not read as it was attached',
      );
      const next = await contents(await reopen());
      check(next === contentsOf(remotes, links), 'what was stored does not outlive the process');
    }),
  );

  test(
    name('the version is another one with every change, and the same as long as there is none'),
    using(async ({ registry, addRemote }) => {
      const seen = new Set([registry.version()]);
      const moved = async (change: () => Promise<unknown> | unknown, what: string) => {
        const before = registry.version();
        await change();
        check(registry.version() !== before, `the version stays as it is with ${what}`);
        check(!seen.has(registry.version()), `the version is an old one with ${what}`);
        seen.add(registry.version());
      };
      await moved(() => addRemote(REMOTE), 'a remote');
      await moved(() => written(registry, attach('copy')), 'an attach');
      const link = await linkNamed(registry, 'copy');
      for (const change of changesOf(link)) await moved(() => written(registry, change), `a ${change.type}`);
      const before = registry.version();
      await registry.read();
      check(registry.version() === before, 'the version changes when it is read: it is read for ever');
    }),
  );

  test(
    name('a name that is taken is refused, and each attachment of a child has another epoch'),
    using(async ({ registry, detach }) => {
      await written(registry, attach('copy'));
      const first = await linkNamed(registry, 'copy');
      await refused(registry, { ...attach('copy'), link: { ...linkOf('copy'), topic: 'elsewhere' } }, 'a taken name');
      check(sameValue(await linkNamed(registry, 'copy'), first), 'an attach that was refused has changed the link');
      if (detach === undefined) return;
      await detach('copy');
      check(!(await registry.read()).links.some(({ child }) => child === 'copy'), 'a link that was removed is read');
      await written(registry, attach('copy'));
      const second = await linkNamed(registry, 'copy');
      check(second.attachEpoch !== first.attachEpoch, 'another attachment of a child has the epoch of the one before');
    }),
  );

  test(
    name('a write changes what it names of its link, and no other link'),
    using(async ({ registry, reopen }) => {
      for (const child of ['copy', 'copy-2']) await written(registry, attach(child));
      const other = await linkNamed(registry, 'copy-2');
      let wanted = await linkNamed(registry, 'copy');
      for (const change of changesOf(wanted)) {
        await written(registry, change);
        wanted = afterChange(wanted, change);
        for (const reader of [registry, await reopen()]) {
          check(
            sameValue(await linkNamed(reader, 'copy'), wanted),
            `a ${change.type} does not change just what it names`,
          );
          check(sameValue(await linkNamed(reader, 'copy-2'), other), `a ${change.type} changes another link`);
        }
      }
    }),
  );

  test(
    name('a write to another attachment, or to no link, is refused and changes nothing'),
    using(async ({ registry }) => {
      await written(registry, attach('copy'));
      const link = await linkNamed(registry, 'copy');
      const before = await contents(registry);
      for (const stranger of [
        { ...link, attachEpoch: link.attachEpoch + 1 },
        { ...link, child: 'copy-2' },
      ]) {
        for (const change of changesOf(stranger)) {
          await refused(registry, change, `a ${change.type} of a link that is not there`);
          check((await contents(registry)) === before, `a ${change.type} that was refused has changed something`);
        }
      }
    }),
  );

  test(
    name('what was read stays as it was'),
    using(async ({ registry }) => {
      await written(registry, attach('copy'));
      const read = await registry.read();
      const before = contentsOf(read.remotes, read.links);
      for (const change of changesOf(await linkNamed(registry, 'copy'))) await written(registry, change);
      await written(registry, attach('copy-2'));
      check(contentsOf(read.remotes, read.links) === before, 'what was read changes with a later write');
    }),
  );
}

const REMOTE: StoredRemote = {
  binding: {
    name: 'b',
    id: '00000000000000b1',
    url: 'https://b.example:8443/eu',
    username: 'replicator',
    trustAnchor: 'system',
  },
  credentialVersion: 3,
  envelope: { v: 1, kv: '00000000000000c1', ct: 'c2VhbGVkLCBidXQgdG8gbm8ga2V5' },
  revision: 12,
  passwordSetMs: 1_700_000_000_000,
  caPem: '-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----\n',
  limits: {
    maxInFlight: 256,
    requestTimeoutMs: 120_000,
    checkIntervalMs: 10_001,
    compression: 'zstd',
    idleConnTimeoutMs: 300_000,
    connMaxAgeMs: 3_600_000,
  },
};

function linkOf(child: string): Omit<StoredLink, 'attachEpoch'> {
  return {
    parent: 'orders',
    child,
    remote: 'b',
    topic: 'orders-there',
    targetId: '00000000000000aa',
    lanes: 8,
    paused: false,
    skips: [],
    startOffsets: [0, 7, Number.MAX_SAFE_INTEGER],
    retentionMs: 172_800_000,
  };
}

function attach(child: string): Extract<LinkWrite, { readonly type: 'attach' }> {
  return { type: 'attach', link: linkOf(child), delayMs: 0 };
}

/** One of each kind, each with something to change after the one before. */
function changesOf({ child, attachEpoch }: StoredLink): readonly Exclude<LinkWrite, { readonly type: 'attach' }>[] {
  const link = { child, attachEpoch };
  return [
    { type: 'pause', ...link, reason: 'an operator' },
    { type: 'skip', ...link, skip: { partition: 2, offset: 41 } },
    { type: 'resume', ...link, targetId: '00000000000000ab' },
    { type: 'skip', ...link, skip: { partition: 0, offset: Number.MAX_SAFE_INTEGER } },
  ];
}

function afterChange(link: StoredLink, change: Exclude<LinkWrite, { readonly type: 'attach' }>): StoredLink {
  if (change.type === 'pause') return { ...link, paused: true };
  if (change.type === 'resume') return { ...link, paused: false, targetId: change.targetId };
  return { ...link, skips: [...link.skips, change.skip] };
}

async function written(registry: RemoteRegistry, change: LinkWrite): Promise<void> {
  const answer = await registry.write(change);
  if (answer.type === 'refused') throw new Error(`a ${change.type} that can be is refused: ${answer.reason}`);
}

async function refused(registry: RemoteRegistry, change: LinkWrite, what: string): Promise<void> {
  const writing = registry.write(change);
  check(!(await rejects(writing)), `${what} rejects: a refusal is a value`);
  check((await writing).type === 'refused', `${what} is written`);
}

async function linkNamed(registry: RemoteRegistry, child: string): Promise<StoredLink> {
  const links = (await registry.read()).links.filter((link) => link.child === child);
  const [link] = links;
  check(link !== undefined && links.length === 1, `link ${child} is read ${links.length} times`);
  return link;
}

async function contents(registry: RemoteRegistry): Promise<string> {
  const { remotes, links } = await registry.read();
  return contentsOf(remotes, links);
}

function contentsOf(remotes: readonly StoredRemote[], links: readonly StoredLink[]): string {
  return textOfValue([remotes, byChild(links)]);
}

function byChild<Link extends { readonly child: string }>(links: readonly Link[]): Link[] {
  return [...links].sort((a, b) => (a.child < b.child ? -1 : 1));
}
