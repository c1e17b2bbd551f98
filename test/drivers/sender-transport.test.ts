/** The transport on real connections: whom it trusts, what it follows, where it goes, and when it gives up. */
import { once } from 'node:events';
import { createServer as createHttpServer } from 'node:http';
import { createServer as createHttpsServer, type ServerOptions } from 'node:https';
import { type AddressInfo, createServer as createTcpServer, type Server, type Socket } from 'node:net';
import { createServer as createTlsServer } from 'node:tls';
import { afterEach, describe, expect, it, onTestFinished } from 'vitest';
import { RemoteLogin, Secret } from '../../src/credentials/index.js';
import { DEFAULT_LIMITS } from '../../src/drivers/sender/limits.js';
import { HttpsTransport } from '../../src/drivers/sender/transport.js';
import { Guard, type ResolveHost } from '../../src/guard/index.js';
import type { StoredLimits, StoredRemote } from '../../src/ports/index.js';
import type { HttpOutcome, SenderRequest } from '../../src/sender/index.js';
import { createAuthority } from '../../src/testing/index.js';
import { until } from '../support/until.js';

const authority = createAuthority();
const names = ['narad.example', '127.0.0.1', 'localhost'];
const { certificatePem: cert, keyPem: key } = authority.issue({ names });
const PASSWORD = 'planted password of b, 32 bytes.';

const GET: SenderRequest = { method: 'GET', path: '/v1/users', authorized: true, pool: 'side', answerBytes: 1_000 };
const CREDENTIAL = 'a41c07d9e25b3f60/1';

async function listening(server: Server): Promise<number> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const sockets = new Set<Socket>();
  server.on('connection', (socket) => sockets.add(socket));
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return (server.address() as AddressInfo).port;
}

const https = (listener: Parameters<typeof createHttpsServer>[1], options: ServerOptions = {}) =>
  createHttpsServer({ cert, key, ...options }, listener);

interface Reach {
  readonly host?: string;
  readonly path?: string;
  readonly caPem?: string | undefined;
  readonly limits?: Partial<StoredLimits>;
  readonly credentialVersion?: number;
  readonly resolve?: ResolveHost;
}

let transport: HttpsTransport;
afterEach(() => transport.close());

function open(port: number, { resolve = async () => ['127.0.0.1'] }: Reach = {}): void {
  const guard = new Guard({ allowedPorts: [port], allowAddresses: ['127.0.0.1/32'] });
  transport = new HttpsTransport({ guard, resolve, agent: 'narad-replicator/test' });
}

function remoteAt(port: number, reach: Reach = {}): [StoredRemote, RemoteLogin] {
  const { host = '127.0.0.1', path = '', limits, credentialVersion = 1 } = reach;
  const caPem = 'caPem' in reach ? reach.caPem : authority.pem;
  const binding = {
    ...{ name: 'b', id: 'a41c07d9e25b3f60', username: 'repl', trustAnchor: '' },
    url: `https://${host}:${port}${path}`,
  };
  const remote: StoredRemote = {
    ...{ binding, envelope: { v: 1, kv: '', ct: '' }, revision: 1, credentialVersion },
    limits: { ...DEFAULT_LIMITS, ...limits },
    ...(caPem !== undefined && { caPem }),
  };
  return [remote, new RemoteLogin(binding, new Secret(PASSWORD), { credentialVersion, fingerprint: '' })];
}

function reach(port: number, how: Reach = {}): void {
  open(port, how);
  transport.set(...remoteAt(port, how));
}

const send = (request: Partial<SenderRequest> = {}, timeoutMs = 10_000) =>
  transport.send('b', CREDENTIAL, { ...GET, ...request }, timeoutMs);

/** An outcome in a word: a status, or its type; with what it says of time. */
function word(outcome: HttpOutcome): string {
  if (outcome.type === 'answer') return `${outcome.status}`;
  return outcome.type === 'failed' && outcome.timeout ? 'failed: timeout' : outcome.type;
}

describe('whom it trusts', () => {
  const ok = () => https((_, response) => response.end('{}'));

  it('the remote’s own authority alone, where it has one', async () => {
    const port = await listening(ok());
    reach(port);
    expect(word(await send())).toBe('200');
    reach(port, { caPem: createAuthority('another').pem });
    expect(word(await send())).toBe('tls');
    // Without one, those that Node trusts; ours is none of them, whatever the environment says of checking.
    const said = process.env.NODE_TLS_REJECT_UNAUTHORIZED;
    process.env.NODE_TLS_REJECT_UNAUTHORIZED = '0';
    reach(port, { caPem: undefined });
    expect(word(await send())).toBe('tls');
    if (said === undefined) delete process.env.NODE_TLS_REJECT_UNAUTHORIZED;
    else process.env.NODE_TLS_REJECT_UNAUTHORIZED = said;
  });

  it('the name of the URL, and no certificate that has ended', async () => {
    const port = await listening(ok());
    reach(port, { host: 'narad.example' });
    expect(word(await send())).toBe('200');
    reach(port, { host: 'other.example' });
    expect(word(await send())).toBe('tls');
    const ended = authority.issue({ names, fromMs: Date.now() - 9e6, toMs: Date.now() - 3e6 });
    reach(await listening(https(undefined, { cert: ended.certificatePem, key: ended.keyPem })));
    expect(word(await send())).toBe('tls');
  });

  it('TLS 1.2 and later, by X25519 and no NIST curve', async () => {
    const old = { cert, key, ciphers: 'DEFAULT:@SECLEVEL=0', minVersion: 'TLSv1', maxVersion: 'TLSv1.1' } as const;
    reach(await listening(createTlsServer(old)));
    expect(word(await send())).toBe('tls');
    const groups: unknown[] = [];
    const server = https((request, response) => {
      const socket = request.socket as import('node:tls').TLSSocket;
      groups.push([socket.getProtocol(), socket.alpnProtocol, socket.getSharedSigalgs().length > 0]);
      response.end('{}');
    });
    reach(await listening(server));
    expect(word(await send())).toBe('200');
    expect(groups).toEqual([['TLSv1.3', 'http/1.1', true]]);
    reach(await listening(https(undefined, { ecdhCurve: 'P-256' })));
    expect(word(await send())).toBe('tls');
    expect(transport.keyExchange.groups).toMatch(/^(X25519MLKEM768:)?X25519$/);
  });

  it('what is no TLS is told from what merely fails', async () => {
    reach(await listening(createHttpServer((_, response) => response.end())));
    expect(word(await send())).toBe('tls');
    reach(await listening(createTcpServer((socket) => socket.resetAndDestroy())));
    expect(word(await send())).toBe('failed');
    const gone = createTcpServer();
    const port = await listening(gone);
    gone.close();
    reach(port);
    expect(word(await send())).toBe('failed');
  });
});

describe('where it goes', () => {
  it('B75: no redirect is followed, and the credential goes to no other place', async () => {
    const seen: string[] = [];
    const elsewhere = await listening(https((request, response) => response.end(seen.push(`${request.url}`))));
    for (const [status, location] of [
      [302, `https://127.0.0.1:${elsewhere}/v1/users`],
      [307, 'http://169.254.169.254/latest/meta-data'],
      [308, '/v1/elsewhere'],
    ] as const) {
      const asked: string[] = [];
      const server = https((request, response) => {
        asked.push(`${request.method} ${request.url}`);
        response.writeHead(status, { location }).end();
      });
      reach(await listening(server));
      expect(word(await send())).toBe(`${status}`);
      expect(asked).toEqual(['GET /v1/users']);
      expect(transport.dials.get('b')?.refused).toEqual({ redirect: 1 });
    }
    expect(seen).toEqual([]);
  });

  it('no proxy of the environment', async () => {
    const proxied: string[] = [];
    const proxy = createHttpServer().on('connect', (request) => proxied.push(`${request.url}`));
    const proxyPort = await listening(proxy);
    const named = ['HTTPS_PROXY', 'https_proxy', 'HTTP_PROXY', 'ALL_PROXY', 'NODE_USE_ENV_PROXY'];
    for (const name of named) process.env[name] = name.startsWith('NODE') ? '1' : `http://127.0.0.1:${proxyPort}`;
    reach(await listening(https((_, response) => response.end('{}'))), { host: 'narad.example' });
    expect(word(await send())).toBe('200');
    for (const name of named) delete process.env[name];
    expect(proxied).toEqual([]);
  });

  it('to an address that was checked, in the same breath: a name that moves inside is not followed', async () => {
    const answers = [['169.254.169.254', '127.0.0.1'], ['127.0.0.2'], ['127.0.0.1']];
    let resolved = 0;
    const resolve: ResolveHost = async () => answers[resolved++] ?? [];
    // A connection of its own for each request, so that each is resolved.
    const server = https((_, response) => response.writeHead(200, { connection: 'close' }).end('{}'));
    reach(await listening(server), { host: 'narad.example', resolve });
    expect([word(await send()), word(await send()), word(await send())]).toEqual(['200', 'refused', '200']);
    expect([resolved, transport.dials.get('b')?.refused]).toEqual([3, { address: 1 }]);
  });

  it('a literal that may not be reached is refused without a dial, and so is a connection test', async () => {
    let dials = 0;
    const port = await listening(createTcpServer(() => dials++));
    open(port);
    transport.set(...remoteAt(port, { host: '127.0.0.2' }));
    expect([word(await send()), await transport.connect('b')]).toEqual(['refused', { type: 'refused' }]);
    transport.set(...remoteAt(port));
    expect((await transport.connect('b')).type).toBe('connected');
    await until(() => dials > 0);
    expect(dials).toBe(1);
  });

  it('what it sends: its names, its login, the path of the remote, and nothing that nobody asked for', async () => {
    const seen: object[] = [];
    const server = https(async (request, response) => {
      const { host: _, ...headers } = request.headers;
      seen.push({ url: request.url, headers, body: `${await request.setEncoding('utf8').toArray()}` });
      response.end('{}');
    });
    reach(await listening(server), { path: '/eu' });
    await send();
    await send({ authorized: false });
    const body = Buffer.from('{"messages":[]}');
    await send({ method: 'POST', path: '/v1/topics/t/produce/batch', body, encoding: 'zstd', pool: 'chunk' });
    const ours = { 'user-agent': 'narad-replicator/test', 'x-narad-client': 'narad-replicator/test' };
    const login = { authorization: `Basic ${Buffer.from(`repl:${PASSWORD}`).toString('base64')}` };
    const always = { ...ours, connection: 'keep-alive' };
    const post = { 'content-type': 'application/json', 'content-encoding': 'zstd', 'content-length': '15' };
    expect(seen).toEqual([
      { url: '/eu/v1/users', headers: { ...always, ...login }, body: '' },
      { url: '/eu/v1/users', headers: always, body: '' },
      { url: '/eu/v1/topics/t/produce/batch', headers: { ...always, ...login, ...post }, body: `${body}` },
    ]);
  });
});

describe('when it gives up', () => {
  it('by its time limit, whatever the target does not do', async () => {
    reach(await listening(createTcpServer()));
    expect(word(await send({}, 50))).toBe('failed: timeout');
    reach(await listening(https(() => undefined)));
    expect(word(await send({}, 100))).toBe('failed: timeout');
  });

  it('an answer whose body stops, or is reset, is the answer as far as it came', async () => {
    const server = https((request, response) => {
      response.writeHead(202, { 'content-type': 'application/json', 'retry-after': '7' });
      response.write('{"accepted"');
      if (request.url === '/v1/reset') setTimeout(() => request.socket.destroy(), 20);
    });
    reach(await listening(server));
    const cut = { type: 'answer', status: 202, contentType: 'application/json', retryAfter: '7' };
    for (const path of ['/v1/users', '/v1/reset']) {
      const outcome = await send({ path }, 200);
      expect(outcome).toMatchObject(cut);
      expect(outcome.type === 'answer' && `${outcome.body}`).toBe('{"accepted"');
    }
  });

  it('a long body is cut: the connection serves on where little was left, and is closed where much was', async () => {
    let connections = 0;
    const server = https((request, response) => response.end('x'.repeat(Number(request.url?.slice(4)))));
    server.on('secureConnection', () => connections++);
    reach(await listening(server));
    for (const [bytes, made] of [
      [1_000, 1],
      [4_000, 1],
      [900_000, 1],
      [1_000, 2],
    ]) {
      const outcome = await send({ path: `/v1/${bytes}` });
      expect([outcome.type === 'answer' && outcome.body.length, connections]).toEqual([1_000, made]);
    }
  });

  it('headers of more than 64 KiB are no answer', async () => {
    const server = https((_, response) => response.writeHead(200, { long: 'x'.repeat(70_000) }).end());
    reach(await listening(server));
    expect(word(await send())).toBe('failed');
  });
});

describe('connections', () => {
  /** A server that answers when it is told to. */
  async function held(): Promise<{ port: number; waiting: (() => void)[]; made: () => number }> {
    const waiting: (() => void)[] = [];
    let made = 0;
    const server = https((_, response) => waiting.push(() => response.end('{}')));
    server.on('secureConnection', () => made++);
    return { port: await listening(server), waiting, made: () => made };
  }

  it('are of two pools: four for checks, and as many for chunks as may be in flight', async () => {
    const { port, waiting } = await held();
    reach(port, { limits: { maxInFlight: 2 } });
    const sent = Array.from({ length: 7 }, () => send());
    await until(() => waiting.length === 4);
    sent.push(...Array.from({ length: 3 }, () => send({ pool: 'chunk' })));
    await until(() => waiting.length === 6);
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(waiting).toHaveLength(6);
    for (let at = 0; at < sent.length; at++) {
      await until(() => waiting.length > at);
      waiting[at]?.();
    }
    expect((await Promise.all(sent)).map(word)).toEqual(sent.map(() => '200'));
  });

  it('serve again while they are young, and none outlives its remote', async () => {
    let made = 0;
    let open = 0;
    const server = https((_, response) => response.end('{}'));
    server.on('secureConnection', (socket) => {
      made++;
      open++;
      socket.once('close', () => open--);
    });
    const port = await listening(server);
    reach(port);
    await send();
    await send();
    expect(made).toBe(1);
    transport.drop('b');
    await until(() => open === 0);
    expect(word(await send())).toBe('notSent');
    // The least age that a remote may have is 10 s: here the clock of the connection is what moves.
    reach(port, { limits: { connMaxAgeMs: 10_000 } });
    await send();
    const { now } = performance;
    performance.now = () => now.call(performance) + 10_001;
    await send();
    performance.now = now;
    await send();
    expect(made).toBe(3);
  });

  it('a credential that is replaced while its request waits is not sent; one that is out gets its answer', async () => {
    const { port, waiting } = await held();
    reach(port);
    const out = Array.from({ length: 4 }, () => send());
    const queued = send();
    await until(() => waiting.length === 4);
    transport.set(...remoteAt(port, { credentialVersion: 2 }));
    for (const answer of waiting) answer();
    expect((await Promise.all(out)).map(word)).toEqual(out.map(() => '200'));
    expect([word(await queued), word(await send())]).toEqual(['notSent', 'notSent']);
  });

  it('a credential that is replaced during the dial is not sent', async () => {
    const seen: unknown[] = [];
    const port = await listening(https((request, response) => response.end(`${seen.push(request.url)}`)));
    let resolved: () => void = () => undefined;
    const resolve: ResolveHost = () =>
      new Promise((done) => {
        resolved = () => done(['127.0.0.1']);
      });
    reach(port, { host: 'narad.example', resolve });
    const dialling = send();
    await new Promise((done) => setTimeout(done, 20));
    transport.set(...remoteAt(port, { host: 'narad.example', credentialVersion: 2 }));
    resolved();
    expect([word(await dialling), seen]).toEqual(['notSent', []]);
  });

  it('end with the sender: what never left is not sent, what did has failed', async () => {
    const { port, waiting } = await held();
    reach(port);
    const out = Array.from({ length: 5 }, () => send());
    await until(() => waiting.length === 4);
    transport.close();
    expect((await Promise.all(out)).map(word)).toEqual(['failed', 'failed', 'failed', 'failed', 'notSent']);
  });
});
