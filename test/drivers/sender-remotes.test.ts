/** New remotes and new passwords: what is refused, and that no secret is seen anywhere while they are used. */
import { inspect } from 'node:util';
import { describe, expect, it } from 'vitest';
import { CredentialKeys, Secret } from '../../src/credentials/index.js';
import {
  createRemoteSender,
  DEFAULT_LIMITS,
  type RemoteDraft,
  type RemoteSenderOptions,
  sealRemote,
} from '../../src/drivers/index.js';
import { IsthmusError } from '../../src/errors.js';
import { Guard } from '../../src/guard/index.js';
import { createAuthority } from '../../src/testing/index.js';
import { refusal } from '../support/expect.js';
import { until } from '../support/until.js';
import { Cursors, KEYS, Metadata, Parents, Stage } from './sender-stage.js';

const guard = new Guard({ allowedPorts: [443, 8443] });
const resolve = async () => ['10.0.0.1'];
const PASSWORD = 'planted: thirty-three bytes long.';
const DRAFT = { name: 'b', url: 'https://narad.example:8443/eu/', username: 'repl', password: PASSWORD };

describe('a remote that is made', () => {
  it('has its canonical URL, an ID of its own, and what nothing was said of by default', async () => {
    const sealed = await sealRemote(DRAFT, { keys: KEYS, guard, resolve });
    if (sealed.type === 'refused') throw new Error(sealed.reason);
    const { remote, fingerprint } = sealed;
    expect(remote).toMatchObject({
      binding: { name: 'b', url: 'https://narad.example:8443/eu', username: 'repl', trustAnchor: 'system-roots' },
      ...{ credentialVersion: 1, revision: 1, limits: DEFAULT_LIMITS },
    });
    expect(remote.binding.id).toMatch(/^[0-9a-f]{16}$/);
    const opened = KEYS.open(remote.binding, remote.envelope);
    expect(opened.type === 'opened' && [opened.password.reveal(), opened.fingerprint]).toEqual([PASSWORD, fingerprint]);

    const caPem = createAuthority().pem;
    const limits = { maxInFlight: 256 };
    const change = { ...DRAFT, password: PASSWORD.toUpperCase(), caPem, limits };
    const next = await sealRemote(change, { keys: KEYS, guard, resolve, stored: remote });
    expect(next).toMatchObject({
      remote: { binding: { id: remote.binding.id }, credentialVersion: 2, revision: 2, limits, caPem },
    });
  });

  it.each<[string, Partial<RemoteDraft>]>([
    ['a user in its URL', { url: `https://repl:${PASSWORD}@narad.example` }],
    ['a URL without TLS', { url: 'http://narad.example' }],
    ['a query in its URL', { url: `https://narad.example/?password=${PASSWORD}` }],
    ['a short password', { password: 'planted: short' }],
    ['a long password', { password: `planted: ${'x'.repeat(72)}` }],
    ['a user with a colon', { username: `repl:${PASSWORD}` }],
    ['a name in capitals', { name: 'B' }],
    ['a CA that is none', { caPem: PASSWORD }],
    ['257 requests in flight', { limits: { maxInFlight: 257 } }],
    ['no request in flight', { limits: { maxInFlight: 0 } }],
    ['a limit that is no number', { limits: { connMaxAgeMs: Number.NaN } }],
    ['an unknown compression', { limits: { compression: 'gzip' as 'zstd' } }],
  ])('with %s is refused, and nothing of it is shown', async (_, change) => {
    const refused: unknown = await sealRemote({ ...DRAFT, ...change }, { keys: KEYS, guard, resolve }).catch((e) => e);
    expect(refused).toBeInstanceOf(IsthmusError);
    expect(refused).toMatchObject({ code: 'invalidArgument' });
    expect(inspect(refused, { showHidden: true, depth: 9 })).not.toContain('planted');
  });

  it('that no connection could reach is refused', async () => {
    const seal = (url: string, addresses: readonly string[]) =>
      sealRemote({ ...DRAFT, url }, { keys: KEYS, guard, resolve: async () => addresses });
    const refused = (reason: string) => ({ type: 'refused', reason });
    expect(await seal('https://narad.example:9443', ['10.0.0.1'])).toEqual(refused('port'));
    expect(await seal('https://127.0.0.1', [])).toEqual(refused('address'));
    expect(await seal('https://narad.example', ['169.254.169.254'])).toEqual(refused('address'));
    expect(await seal('https://narad.example', [])).toEqual(refused('address'));
    const unresolved = () => Promise.reject(new Error('ENOTFOUND'));
    expect(await sealRemote(DRAFT, { keys: KEYS, guard, resolve: unresolved })).toEqual(refused('unresolved'));
  });

  it('needs a strong master secret', () => {
    const secret = new Secret('correct horse battery staple and more');
    expect(refusal(() => new CredentialKeys({ secret, salt: Buffer.alloc(32) }))).toBe('invalidArgument');
  });
});

describe('a sender', () => {
  it.each<[string, Partial<RemoteSenderOptions>]>([
    ['a version that is no header', { version: 'x\r\nHost: y' }],
    ['a guard with a hole', { guard: { allowedHosts: ['*'] } }],
    ['a port that is none', { guard: { allowedPorts: [70_000] } }],
    ['no keys', { keys: { current: {} } as CredentialKeys }],
  ])('with %s is refused', (_, change) => {
    const ports = { registry: new Metadata(), parents: new Parents(), cursors: new Cursors() };
    expect(refusal(() => createRemoteSender(ports, { keys: KEYS, ...change }))).toBe('invalidArgument');
  });

  it('leaves a stored remote or link alone that breaks a rule, says so, and goes on with the others', async () => {
    const stage = await Stage.start();
    const stored = await stage.addRemote('c');
    stage.metadata.setRemote({ ...stored, limits: { ...stored.limits, connMaxAgeMs: 1 } });
    stage.parents.append(0, 'a=1');
    stage.link({ child: 'lost', remote: 'c' });
    stage.link({ child: 'odd', topic: '../users' });
    stage.link();
    await until(() => stage.stored().length === 1 && stage.state('lost') === 'remote_missing');
    const told = stage.lines.filter((line) => line.includes('cannot be used'));
    expect(told).toEqual([
      expect.stringContaining('"remote":"c","reason":"connMaxAgeMs 1: it must be an integer from 10000 to 3600000"'),
      expect.stringContaining('"child":"odd","reason":"topic \\"../users\\"'),
    ]);
    stage.metadata.setRemote({ ...stored, revision: 3 });
    await until(() => stage.stored().length === 2);
  });

  it('keeps what it knows while the metadata cannot be read', async () => {
    const stage = await Stage.start();
    stage.link();
    await until(() => stage.state() === 'running');
    const { read } = stage.metadata;
    stage.metadata.read = () => Promise.reject(new Error('no leader'));
    stage.metadata.moved();
    stage.parents.append(0, 'a=1');
    await until(() => stage.stored().length === 1 && stage.lines.some((line) => line.includes('no leader')));
    stage.metadata.links.clear();
    stage.metadata.read = read;
    await until(() => stage.sender.status().links.length === 0);
  });
});

describe('B79: no secret is seen', () => {
  const deep = { depth: Number.POSITIVE_INFINITY, maxArrayLength: null, maxStringLength: null, showHidden: true };
  const planted = [PASSWORD, Buffer.from(`replicator:${PASSWORD}`).toString('base64')];
  const prints = (value: unknown): string =>
    [JSON.stringify(value), inspect(value, deep), inspect(value, { ...deep, customInspect: false })].join('\n');

  it('in status, events, lines, answers, or the sender itself, with requests out and after every kind of failure', async () => {
    const target = { users: { replicator: { password: PASSWORD } } };
    const stage = await Stage.start({ target, draft: { password: PASSWORD } });
    const events: unknown[] = [];
    void (async () => {
      for await (const event of stage.sender) events.push(event);
    })();
    const seen: string[] = [];
    const look = () => seen.push(prints(stage.sender), prints(stage.sender.status()), prints(stage.metadata));
    stage.link({ lanes: 2 });
    await until(() => stage.state() === 'running');
    for (const fault of [
      { type: 'silent' },
      { type: 'reset' },
      { type: 'answer', answer: { status: 302, headers: { location: '/' }, body: Buffer.alloc(0) } },
    ] as const) {
      stage.target.fault = fault;
      stage.parents.append(0, 'a=1', 'b=2');
      const { length } = stage.target.requests;
      await until(() => stage.target.requests.length > length);
      look();
      stage.target.fault = undefined;
      // What is silent is let go.
      await stage.target.present('own');
    }
    seen.push(prints(await stage.attach({ child: 'two', topic: 'other' })));
    await stage.target.present('foreign');
    await until(() => stage.state() !== 'running');
    look();
    await stage.target.present('own');
    const user = stage.target.broker.users.get('replicator');
    if (user !== undefined) user.password = 'another password of 24 bytes';
    look();
    expect(
      [...seen, prints(events), stage.lines.join('\n')].filter((text) => planted.some((p) => text.includes(p))),
    ).toEqual([]);
    expect(events.length).toBeGreaterThan(1);
    expect(seen.join('').length).toBeGreaterThan(10_000);
  });
});
