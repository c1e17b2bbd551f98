/** A node that sends, over real HTTPS, to a target that answers as the broker does. */
import { describe, expect, it } from 'vitest';
import { keySet, keysOf } from '../credentials/fixture.js';
import { until } from '../support/until.js';
import { KEYS, Stage } from './sender-stage.js';

const numbers = (count: number, from = 0) => Array.from({ length: count }, (_, i) => `k${i % 3}=${from + i}`);
const texts = (records: readonly string[]) => records.map((record) => record.split('=')[1]);
const runs = (stage: Stage) => until(() => stage.state() === 'running' && stage.sender.status().links[0] !== undefined);

describe('records', () => {
  it('are copied in order from where the cursor stands, also by the process that comes after', async () => {
    const stage = await Stage.start();
    stage.parents.append(0, ...numbers(250));
    stage.link();
    await until(() => stage.cursors.offsets.get('copy/1/0') === 250);
    expect(stage.stored()).toEqual(texts(numbers(250)));

    await stage.sender.stop();
    stage.sender = stage.newSender();
    stage.sender.takePartition('orders', 0);
    stage.sender.start();
    stage.parents.append(0, ...numbers(50, 250));
    await until(() => stage.cursors.offsets.get('copy/1/0') === 300);
    expect(stage.stored()).toEqual(texts(numbers(300)));
    // A check, what the target takes, and the records: each once for each process.
    expect(stage.target.requests.map(({ kind, messages }) => `${kind} ${messages}`)).toEqual([
      ...['children undefined', 'batch 101', 'batch 250'],
      ...['children undefined', 'batch 101', 'batch 50'],
    ]);
    expect(stage.sender.status()).toMatchObject({
      ...{ state: 'running', node: 'local', hasAllowedHosts: true, heldBytes: 0, credentialDecrypts: 1 },
      remotes: [{ remote: 'b', state: 'ready', credentialVersion: 1, isKeyCurrent: true }],
      links: [{ child: 'copy', summary: { state: 'running' }, cursors: [{ partition: 0, offset: 300 }] }],
    });
  });

  it('are waited for, and those that come together go together', async () => {
    const stage = await Stage.start();
    stage.link();
    await until(() => stage.parents.asked.length === 1);
    stage.parents.append(0, 'a=1');
    await until(() => stage.parents.asked.length === 2);
    stage.parents.append(0, 'a=2');
    await until(() => stage.stored().length > 0);
    expect(stage.stored()).toEqual(['1', '2']);
    const [first, second] = stage.parents.asked;
    expect(first).toEqual({ offset: 0, waitMs: 1_000, limits: { maxRecords: 500, maxBytes: 1_048_576 } });
    expect(second?.waitMs).toBeLessThanOrEqual(25);
    expect(second?.waitMs).toBeGreaterThan(0);
  });

  it('of a partition that goes to another node are left where its cursor stands', async () => {
    const stage = await Stage.start();
    stage.parents.append(0, ...numbers(3));
    stage.link();
    await until(() => stage.cursors.offsets.get('copy/1/0') === 3);
    await stage.sender.leavePartition('orders', 0);
    expect(stage.sender.status().links[0]?.cursors).toEqual([]);
    stage.parents.append(0, ...numbers(3, 3));
    stage.sender.takePartition('orders', 0);
    await until(() => stage.stored().length === 6);
    expect(stage.stored()).toEqual(['0', '1', '2', '3', '4', '5']);
  });

  it('that no target can take blocks its lane, is told, and lets the rest pass once it is skipped', async () => {
    const stage = await Stage.start();
    stage.parents.append(0, 'a=1', 'a=', 'a=3');
    stage.link();
    await until(() => stage.state() === 'rejected_record');
    expect(stage.sender.status().links[0]?.summary.blockedAt).toEqual({
      ...{ partition: 0, offset: 1, state: 'rejected_record' },
    });
    expect(stage.stored()).toEqual(['1']);
    expect(await stage.sender.skip('copy', 0, 1)).toMatchObject({ type: 'done' });
    await until(() => stage.stored().length === 2);
    expect(stage.stored()).toEqual(['1', '3']);
    await until(() => stage.state() === 'running');
    expect(stage.lines.filter((line) => line.includes('offset'))).toEqual([
      'warn a remote child is blocked on a record that the target refuses ' +
        '{"parent":"orders","partition":0,"child":"copy","offset":1,"state":"rejected_record"}',
      'warn a record was skipped on request {"parent":"orders","partition":0,"child":"copy","offset":1}',
    ]);
  });

  it('B64: of a request that fails go again, and of no other; the lane beside it goes on', async () => {
    const stage = await Stage.start({ target: { settings: { maxMessages: 100 } } });
    // k0 and k1 travel on different lanes, 500 records of each in one slab.
    stage.parents.append(0, ...Array.from({ length: 1_000 }, (_, i) => `k${i % 2}=${i}`));
    let batches = 0;
    stage.target.fault = ({ messages }) =>
      messages === 100 && ++batches === 4 ? { type: 'reset', stores: true } : undefined;
    stage.link({ lanes: 2 });
    await until(() => stage.cursors.offsets.get('copy/1/0') === 1_000);
    const sizes = stage.target.requests.flatMap(({ messages }) => (messages === 101 ? [] : (messages ?? [])));
    expect(sizes).toEqual(Array(11).fill(100));
    for (const key of ['k0', 'k1']) {
      const own = stage.target.stored().filter((message) => Buffer.from(message.key).toString() === key);
      const seen = own.map(({ payload }) => Number(Buffer.from(payload)));
      expect([...new Set(seen)]).toEqual(Array.from({ length: 500 }, (_, i) => 2 * i + Number(key === 'k1')));
      expect([500, 600]).toContain(seen.length);
    }
    await stage.sender.stop();
    stage.sender = stage.newSender();
    stage.sender.takePartition('orders', 0);
    stage.sender.start();
    await until(() => stage.state() === 'running');
    expect(batches).toBe(11);
  });

  it('B64: one that is too large for the target holds up its own lane alone', async () => {
    const stage = await Stage.start();
    stage.parents.append(0, 'k0=1', `k0="${'x'.repeat(1024 * 1024)}"`, 'k1=2', 'k0=3', 'k1=4');
    stage.link({ lanes: 2 });
    await until(() => stage.state() === 'record_too_large' && stage.stored().length === 3);
    expect(stage.stored().sort()).toEqual(['1', '2', '4']);
    expect(stage.sender.status().links[0]?.summary.blockedAt).toMatchObject({ partition: 0, offset: 1 });
  });

  it('are compressed where the remote asks for it', async () => {
    const stage = await Stage.start({ draft: { limits: { compression: 'zstd' } } });
    stage.parents.append(0, ...numbers(300));
    stage.link();
    await until(() => stage.stored().length === 300);
    const last = stage.target.requests.at(-1);
    expect(last?.headers['content-encoding']).toBe('zstd');
    expect(last?.bodyBytes).toBeLessThan(3_000);
  });

  it('of a parent or a cursor that cannot be read wait, and somebody is told', async () => {
    const stage = await Stage.start();
    stage.parents.append(0, ...numbers(2));
    const { read } = stage.parents;
    const { read: load, write } = stage.cursors;
    let failures = 0;
    const failing =
      <Arguments extends unknown[], Result>(run: (...args: Arguments) => Promise<Result>) =>
      (...args: Arguments) =>
        failures++ < 6 && failures % 2 === 1 ? Promise.reject(new Error('no disk')) : run(...args);
    stage.parents.read = failing(read.bind(stage.parents));
    stage.cursors.read = failing(load.bind(stage.cursors));
    stage.cursors.write = failing(write.bind(stage.cursors));
    stage.link();
    await until(() => stage.cursors.offsets.get('copy/1/0') === 2);
    expect(stage.stored()).toEqual(['0', '1']);
    const told = stage.lines.filter((line) => line.includes('no disk')).map((line) => line.split(' {')[0]);
    expect(told.length).toBeGreaterThan(0);
  });
});

describe('a credential', () => {
  it('B79: is changed while records flow: a new one is taken up at once', async () => {
    const stage = await Stage.start();
    stage.link();
    await runs(stage);
    const user = stage.target.broker.users.get('replicator');
    if (user === undefined) throw new Error('no user');
    user.password = 'the next password, 24 bytes or more';
    stage.parents.append(0, 'a=1');
    await until(() => stage.state() === 'auth_failed');
    const stored = stage.metadata.remotes.get('b');
    await stage.addRemote('b', { password: user.password }, stored);
    await until(() => stage.stored().length === 1);
    expect(stage.sender.status().remotes[0]).toMatchObject({ credentialVersion: 2, state: 'ready' });
    expect(stage.sender.status().credentialDecrypts).toBe(2);
  });

  it('B79: each remote gets its own', async () => {
    const stage = await Stage.start({
      target: {
        users: { one: { password: 'password of the first remote' }, two: { password: 'password of the other remote' } },
        topics: { orders: {}, bills: { id: '00000000000000cc' } },
      },
      draft: { username: 'one', password: 'password of the first remote' },
    });
    await stage.addRemote('c', { username: 'two', password: 'password of the other remote' });
    stage.parents.append(0, 'a=1');
    stage.link();
    stage.link({ child: 'other', remote: 'c', topic: 'bills', targetId: '00000000000000cc' });
    await until(() => stage.stored('orders').length + stage.stored('bills').length === 2);
    const users = stage.target.requests.map(({ path, user }) => `${path.split('/')[3]} ${user}`);
    expect([...new Set(users)].sort()).toEqual(['bills two', 'orders one']);
  });

  it.each([
    ['B77: with the certificates of another authority in the place of its own', 'caPem'],
    ['B77: under another URL', 'url'],
    ['B77: of another remote', 'name'],
    ['that nobody here can open', 'kv'],
  ])('%s is not used', async (_, changed) => {
    const stage = await Stage.start();
    const stored = await stage.addRemote('b');
    const other = await stage.addRemote('other');
    const { binding, envelope } = stored;
    stage.metadata.setRemote({
      ...stored,
      ...(changed === 'caPem' && { caPem: (await Stage.start()).target.caPem }),
      ...(changed === 'url' && { binding: { ...binding, url: `${binding.url}/eu` } }),
      ...(changed === 'name' && { envelope: other.envelope }),
      ...(changed === 'kv' && { envelope: { ...envelope, kv: keySet('hex').kv.replace(/./g, '0') } }),
    });
    stage.parents.append(0, 'a=1');
    stage.link();
    await until(() => stage.state() === 'credential_unreadable');
    expect(stage.target.requests).toEqual([]);
    expect(stage.lines.filter((line) => line.startsWith('error'))).toEqual([
      'error the credential of a remote does not open on this node {"remote":"b"}',
      expect.stringContaining('a remote child has stalled'),
    ]);
  });

  it('is not used by a node whose posture forbids it, until it allows it', async () => {
    let isSecure = false;
    const stage = await Stage.start({ options: { isSecure: () => isSecure } });
    stage.parents.append(0, 'a=1');
    stage.link();
    await until(() => stage.state() === 'node_insecure');
    expect(stage.target.requests).toEqual([]);
    isSecure = true;
    await until(() => stage.stored().length === 1);
  });

  it('opens under the previous key, and is shown as one to be sealed anew', async () => {
    const stage = await Stage.start({ options: { keys: keysOf('hex', 'next') } });
    expect(KEYS.current.kv).not.toBe(keysOf('hex', 'next').current.kv);
    stage.link();
    await runs(stage);
    expect(stage.sender.status().remotes[0]).toMatchObject({ state: 'ready', isKeyCurrent: false });
  });
});

describe('a target', () => {
  it('B75: that redirects, is not followed: the link stalls until the URL is mended', async () => {
    const stage = await Stage.start();
    stage.target.fault = {
      type: 'answer',
      answer: { status: 307, headers: { location: 'https://169.254.169.254/' }, body: Buffer.alloc(0) },
    };
    stage.parents.append(0, 'a=1');
    stage.link();
    await until(() => stage.state() === 'redirect_refused');
    expect(stage.sender.status().remotes[0]?.dials.refused.redirect).toBeGreaterThan(0);
    expect(stage.stored()).toEqual([]);
  });

  it('behind a guard that no more allows it stalls the link, and nothing is dialled', async () => {
    let addresses = ['127.0.0.1'];
    const stage = await Stage.start({
      target: { names: ['narad.example'] },
      ports: { resolve: async () => addresses },
    });
    const url = stage.target.url.replace('127.0.0.1', 'narad.example');
    await stage.addRemote('c', { url });
    addresses = ['169.254.169.254'];
    const { connections } = stage.target;
    stage.parents.append(0, 'a=1');
    stage.link({ remote: 'c' });
    await until(() => stage.state() === 'destination_refused');
    expect(stage.target.connections).toBe(connections);
  });

  it('that is killed and comes back gets everything, in order', async () => {
    const stage = await Stage.start();
    stage.link({ lanes: 4 });
    stage.parents.append(0, ...numbers(100));
    await until(() => stage.stored().length === 100);
    await stage.target.down();
    stage.parents.append(0, ...numbers(100, 100));
    await until(() => stage.state() === 'unavailable');
    await stage.target.up();
    await until(() => stage.cursors.offsets.get('copy/1/0') === 200);
    for (const key of ['k0', 'k1', 'k2']) {
      const of = (records: readonly string[]) => records.filter((record) => record.startsWith(`${key}=`));
      const got = stage.target.stored().map(({ key: k, payload }) => `${Buffer.from(k)}=${Buffer.from(payload)}`);
      expect(of(got)).toEqual(of(numbers(200).slice(0, 100).concat(numbers(100, 100))));
    }
  });

  it('B66: two links to one remote share its gate: a dead one is asked once at a time', async () => {
    const stage = await Stage.start();
    stage.sender.takePartition('orders', 1);
    stage.target.fault = { type: 'reset' };
    for (const partition of [0, 1]) stage.parents.append(partition, 'a=1');
    stage.link();
    stage.link({ child: 'other' });
    await until(() => (stage.sender.status().remotes[0]?.report?.remoteGateBackoffSeconds ?? 0) > 0);
    const { length } = stage.target.requests;
    await new Promise((resolve) => setTimeout(resolve, 500));
    // Four cursors; the waits are drawn from 0.25 s, 0.5 s and so on.
    expect(stage.target.requests.length - length).toBeLessThan(12);
    stage.target.fault = undefined;
    await until(() => stage.stored().length === 4);
  });
});
