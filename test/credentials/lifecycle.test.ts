/** From the first seal to the rotation of the master secret: counts, changes of a remote, and re-encryption. */
import { describe, expect, it } from 'vitest';
import {
  type Binding,
  type CredentialStore,
  type Envelope,
  judgeSeal,
  judgeUpdate,
  reencrypt,
  SEAL_LIMIT,
  SEAL_WARNING,
  type SealCounts,
  type SealedRemote,
  Secret,
} from '../../src/credentials/index.js';
import { refusal } from '../support/expect.js';
import { BINDING, keySet, keysOf } from './fixture.js';

const KV = keySet('hex').kv;
const used = (count: number): SealCounts => ({ [KV]: { count, firstSealMs: 5 } });

describe('the count of seals', () => {
  it.each<[string, { counts: SealCounts; salt?: string }, string | undefined, object]>([
    ['the first brings the salt', { counts: {} }, 's', { type: 'accepted', salt: 's', nearLimit: false }],
    ['without any salt', { counts: {} }, undefined, { type: 'saltRace' }],
    [
      'under the stored salt',
      { counts: used(1), salt: 's' },
      undefined,
      { type: 'accepted', salt: 's', nearLimit: false },
    ],
    [
      'two members mint the same',
      { counts: used(1), salt: 's' },
      's',
      { type: 'accepted', salt: 's', nearLimit: false },
    ],
    ['another member was first', { counts: used(1), salt: 's' }, 't', { type: 'saltRace' }],
    ['another member was first, key spent', { counts: used(SEAL_LIMIT), salt: 's' }, 't', { type: 'saltRace' }],
    [
      'the last without a warning',
      { counts: used(SEAL_WARNING - 2), salt: 's' },
      's',
      { type: 'accepted', salt: 's', nearLimit: false },
    ],
    [
      'the first with one',
      { counts: used(SEAL_WARNING - 1), salt: 's' },
      's',
      { type: 'accepted', salt: 's', nearLimit: true },
    ],
    ['the last', { counts: used(SEAL_LIMIT - 1), salt: 's' }, 's', { type: 'accepted', salt: 's', nearLimit: true }],
    ['one more', { counts: used(SEAL_LIMIT), salt: 's' }, 's', { type: 'keySpent' }],
  ])('%s', (_, stored, salt, verdict) => {
    const before = stored.counts[KV]?.count ?? 0;
    const judged = judgeSeal(stored, { kv: KV, proposedAtMs: 9, ...(salt !== undefined && { salt }) });
    expect(judged.verdict).toEqual(verdict);
    // Accepted or refused, it counts; and the first time stays.
    expect(judged.counts).toEqual({ [KV]: { count: before + 1, firstSealMs: before === 0 ? 9 : 5 } });
    expect(stored.counts[KV]?.count ?? 0).toBe(before);
  });

  it('each key has a count of its own, and a key id is 16 hex digits', () => {
    const other = keySet('next').kv;
    const { counts, verdict } = judgeSeal({ counts: used(SEAL_LIMIT), salt: 's' }, { kv: other, proposedAtMs: 9 });
    expect(verdict.type).toBe('accepted');
    expect(counts).toEqual({ ...used(SEAL_LIMIT), [other]: { count: 1, firstSealMs: 9 } });
    for (const kv of ['', '__proto__', KV.toUpperCase()]) {
      expect(refusal(() => judgeSeal({ counts: {} }, { kv, salt: 's', proposedAtMs: 9 }))).toBe('invalidArgument');
    }
  });
});

describe('a change of a remote', () => {
  const stored = { binding: BINDING, revision: 7, credentialVersion: 3 };
  const moved = { ...BINDING, url: 'https://elsewhere.example' };

  it.each<[string, Binding, Binding | undefined, object]>([
    ['limits alone', BINDING, undefined, { type: 'accepted', revision: 8, credentialVersion: 3 }],
    ['a new password', BINDING, BINDING, { type: 'accepted', revision: 8, credentialVersion: 4 }],
    ['another URL and a password for it', moved, moved, { type: 'accepted', revision: 8, credentialVersion: 4 }],
    ['another URL', moved, undefined, { type: 'passwordNeeded' }],
    ['another user', { ...BINDING, username: 'c' }, undefined, { type: 'passwordNeeded' }],
    ['another CA', { ...BINDING, trustAnchor: 'a'.repeat(128) }, undefined, { type: 'passwordNeeded' }],
    ['a password sealed for what the remote was', moved, BINDING, { type: 'sealedForOther' }],
  ])('%s', (_, next, sealedFor, verdict) => {
    expect(judgeUpdate(stored, next, sealedFor)).toEqual(verdict);
  });
});

/** A store in memory that counts seals and versions as it should. */
class Store implements CredentialStore {
  readonly remotes = new Map<string, SealedRemote>();
  counts: SealCounts = {};
  beforeReplace: (() => void) | undefined;

  put(name: string, envelope: Envelope, credentialVersion = 1): void {
    this.remotes.set(name, { binding: { ...BINDING, name }, envelope, credentialVersion });
  }

  async list(): Promise<readonly SealedRemote[]> {
    return [...this.remotes.values()];
  }

  async replace({ binding, credentialVersion }: SealedRemote, envelope: Envelope) {
    this.beforeReplace?.();
    const { counts, verdict } = judgeSeal({ counts: this.counts, salt: 's' }, { kv: envelope.kv, proposedAtMs: 1 });
    this.counts = counts;
    if (verdict.type === 'keySpent') return 'keySpent';
    if (this.remotes.get(binding.name)?.credentialVersion !== credentialVersion) return 'changed';
    this.put(binding.name, envelope, credentialVersion + 1);
    return 'replaced';
  }
}

describe('re-encryption after a rotation', () => {
  const before = keysOf('hex');
  const after = keysOf('next', 'hex');
  const sealFor = (keys: typeof before, name: string, text: string) =>
    keys.seal({ ...BINDING, name }, new Secret(text.padEnd(24, '.'))).envelope;

  function passwords(store: Store, keys: typeof before): Record<string, string> {
    const entries = [...store.remotes].map(([name, { binding, envelope }]) => {
      const opened = keys.open(binding, envelope);
      return [name, opened.type === 'opened' ? opened.password.reveal().replaceAll('.', '') : opened.reason];
    });
    return Object.fromEntries(entries);
  }

  it('seals all anew, so that the previous secret can go; once more, and nothing is left to do', async () => {
    const store = new Store();
    for (const name of ['a', 'b', 'c']) store.put(name, sealFor(before, name, `of ${name}`));
    const outcomes = (outcome: string) => ['a', 'b', 'c'].map((name) => ({ name, outcome }));
    expect(await reencrypt(after, store)).toEqual(outcomes('replaced'));
    expect(await reencrypt(after, store)).toEqual(outcomes('current'));
    expect(passwords(store, keysOf('next'))).toEqual({ a: 'of a', b: 'of b', c: 'of c' });
    expect([...store.remotes.values()].map(({ credentialVersion }) => credentialVersion)).toEqual([2, 2, 2]);
    expect(store.counts[after.current.kv]?.count).toBe(3);
  });

  it('a password that is changed meanwhile keeps its newer ciphertext', async () => {
    const store = new Store();
    store.put('b', sealFor(before, 'b', 'old'));
    store.beforeReplace = () => store.put('b', sealFor(after, 'b', 'new'), 2);
    expect(await reencrypt(after, store)).toEqual([{ name: 'b', outcome: 'changed' }]);
    expect(passwords(store, after)).toEqual({ b: 'new' });
  });

  it('one that does not open stays as it is and holds up no other', async () => {
    const store = new Store();
    store.put('moved', sealFor(before, 'b', 'of b'));
    store.put('foreign', { v: 1, kv: '0'.repeat(16), ct: 'AAAA' });
    store.put('b', sealFor(before, 'b', 'of b'));
    expect(await reencrypt(after, store)).toEqual([
      { name: 'moved', outcome: 'doesNotOpen' },
      { name: 'foreign', outcome: 'unknownKey' },
      { name: 'b', outcome: 'replaced' },
    ]);
    expect(passwords(store, after)).toEqual({ moved: 'doesNotOpen', foreign: 'unknownKey', b: 'of b' });
  });

  it('a spent key seals nothing more', async () => {
    const store = new Store();
    store.put('b', sealFor(before, 'b', 'of b'));
    store.counts = { [after.current.kv]: { count: SEAL_LIMIT, firstSealMs: 0 } };
    expect(await reencrypt(after, store)).toEqual([{ name: 'b', outcome: 'keySpent' }]);
    expect(passwords(store, before)).toEqual({ b: 'of b' });
  });
});
