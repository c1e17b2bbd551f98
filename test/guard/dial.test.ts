/** The guard inside real connections: Node's own agent on a loopback server, with a resolver that the test holds. */
import { once } from 'node:events';
import { createServer, Agent as HttpAgent, request } from 'node:http';
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https';
import { type AddressInfo, createServer as createTcpServer, type LookupFunction } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { DialRefused, Guard, guardTarget, type ResolveHost } from '../../src/guard/index.js';

/** One loopback address stands for an innocent server. */
const GOOD = '127.0.0.1';
let port = 0;
let guard: Guard;
let asked: string[] = [];

const server = createServer((req, res) => {
  asked.push(`${req.headers.host}`);
  res.end('narad');
});

beforeAll(async () => {
  server.listen(0, GOOD);
  await once(server, 'listening');
  port = (server.address() as AddressInfo).port;
  guard = new Guard({ allowedPorts: [port], allowAddresses: [`${GOOD}/32`] });
});
afterAll(() => {
  server.close();
});

function lookupOf(resolve: ResolveHost, host = 'narad.example'): LookupFunction {
  const target = guardTarget(guard, { host, port }, resolve);
  if (target.type === 'refused') throw new Error(`refused: ${target.reason}`);
  return target.lookup;
}

/** What became of a request: the body, the reason of a refusal, or the code of another failure. */
async function get(host: string, lookup: LookupFunction, options: object = {}): Promise<string> {
  const agent = new HttpAgent({ lookup });
  try {
    const call = request({ host, port, agent, ...options });
    call.end();
    const [answer] = await once(call, 'response');
    return `${await answer.setEncoding('utf8').toArray()}`;
  } catch (error) {
    return error instanceof DialRefused ? error.reason : `${(error as NodeJS.ErrnoException).code}`;
  } finally {
    agent.destroy();
  }
}

describe('a connection', () => {
  it('goes to a checked address and keeps the name', async () => {
    asked = [];
    const resolve: ResolveHost = async () => ['169.254.169.254', '127.0.0.2', GOOD];
    expect(await get('narad.example', lookupOf(resolve))).toBe('narad');
    expect(asked).toEqual([`narad.example:${port}`]);
  });

  it('is refused when no address may be reached, or there is none', async () => {
    expect(
      await get(
        'narad.example',
        lookupOf(async () => ['127.0.0.2', '::1', '::ffff:7f00:2']),
      ),
    ).toBe('address');
    expect(
      await get(
        'narad.example',
        lookupOf(async () => []),
      ),
    ).toBe('address');
    expect(
      await get(
        'narad.example',
        lookupOf(async () => ['narad.example', '']),
      ),
    ).toBe('address');
  });

  it('fails as the resolver does, which is no refusal', async () => {
    const failure = Object.assign(new Error('no such host'), { code: 'ENOTFOUND' });
    expect(
      await get(
        'narad.example',
        lookupOf(() => Promise.reject(failure)),
      ),
    ).toBe('ENOTFOUND');
  });

  it('is judged anew each time: a name that moves inside is not followed (DNS rebinding)', async () => {
    const answers = [[GOOD], ['127.0.0.2'], [GOOD]];
    const resolved: string[] = [];
    const lookup = lookupOf(async (host) => {
      resolved.push(host);
      return answers[resolved.length - 1] ?? [];
    }, 'NARAD.example.');
    const outcomes = [];
    for (const _ of answers) outcomes.push(await get('narad.example', lookup));
    expect(outcomes).toEqual(['narad', 'address', 'narad']);
    expect(resolved).toEqual(['narad.example', 'narad.example', 'narad.example']);
  });

  it('asks for one family, and gets that one or none', async () => {
    const lookup = lookupOf(async () => ['2001:db8::1', '::ffff:127.0.0.1']);
    expect(await get('narad.example', lookup, { family: 4 })).toBe('narad');
    expect(
      await get(
        'narad.example',
        lookupOf(async () => [GOOD]),
        { family: 6 },
      ),
    ).toBe('address');
    expect(await get('narad.example', lookup, { autoSelectFamily: false, family: 4 })).toBe('narad');
  });

  it('of TLS names the host and not the address', async () => {
    const tcp = createTcpServer().listen(0, GOOD);
    await once(tcp, 'listening');
    const { port: tlsPort } = tcp.address() as AddressInfo;
    const own = new Guard({ allowedPorts: [tlsPort], allowAddresses: ['127.0.0.0/8'] });
    const target = guardTarget(own, { host: 'bücher.example', port: tlsPort }, async () => [GOOD]);
    if (target.type === 'refused') throw new Error(target.reason);
    const call = httpsRequest({ host: target.host, port: tlsPort, agent: new HttpsAgent({ lookup: target.lookup }) });
    call.on('error', () => undefined).end();
    const [socket] = await once(tcp, 'connection');
    const [hello] = (await once(socket, 'data')) as [Buffer];
    socket.destroy();
    tcp.close();
    expect(hello.toString('latin1')).toContain('xn--bcher-kva.example');
  });
});

describe('B15: a literal passes by every lookup, so it is judged before', () => {
  const never: ResolveHost = () => Promise.reject(new Error('nothing is resolved here'));

  it.each(['127.0.0.2', '0x7f.2', '::ffff:127.0.0.2', '[::1]', '::1', '169.254.169.254'])('%s', (host) => {
    expect(guardTarget(guard, { host, port }, never)).toEqual({ type: 'refused', reason: 'address' });
  });

  it('one that may be reached is connected to as it was judged', async () => {
    const target = guardTarget(guard, { host: '::ffff:7f00:1', port }, never);
    expect(target).toMatchObject({ type: 'target', host: GOOD, port });
    expect(target.type === 'target' && (await get(target.host, target.lookup))).toBe('narad');
  });
});

describe('B75: a redirect', () => {
  it('takes no lookup along: it is made for one host', async () => {
    const resolve: ResolveHost = async () => [GOOD];
    expect(await get('elsewhere.example', lookupOf(resolve))).toBe('redirect');
    expect(await get('eu.narad.example', lookupOf(resolve))).toBe('redirect');
  });

  it.each([
    ['169.254.169.254', 443, 'port'],
    ['narad.example', 443, 'port'],
    ['169.254.169.254', 0, 'address'],
    ['localhost.', 0, undefined],
  ])('to %s:%d would be judged as any target', (host, to, reason) => {
    const verdict = guardTarget(guard, { host, port: to || port }, async () => ['127.0.0.2']);
    expect(verdict.type === 'refused' ? verdict.reason : undefined).toBe(reason);
  });
});
