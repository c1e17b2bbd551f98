/**
 * A target that a remote sender can be tried against: a server for HTTPS on loopback, with a certificate of a
 * throw-away authority, that answers as the broker does and keeps what it stored. It can be made to fail in every way
 * in which targets fail, while it runs.
 */
import { createServer as createPlainServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { createServer } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import { defaultCodecs } from '../../entry/index.js';
import { IsthmusError, show } from '../../errors.js';
import { edgeAnswer } from './answers.js';
import { countMessages } from './batch.js';
import { type OpenBatch, TargetBroker, type TargetHead } from './broker.js';
import { type CertificateAuthority, createAuthority, type ServerCertificate } from './certificates.js';
import { type FaultRule, kindOf, type SeenRequest, type TargetFault } from './faults.js';
import type { StoredMessage } from './message-log.js';
import { reply, replyToCut } from './reply.js';
import {
  TARGET_RELEASES,
  type TargetRelease,
  type TargetSettings,
  type TargetTopic,
  type TargetUser,
  topicOf,
} from './topics.js';
import { readUpload, type Upload } from './upload.js';

export interface FakeTargetOptions {
  /** Which release it stands for; default `3.2`, the first with remote children. */
  readonly release?: TargetRelease;
  /** Where it differs from that release. */
  readonly settings?: Partial<TargetSettings>;
  /** Its topics by name; default one, `orders`, with the ID `00000000000000aa`. */
  readonly topics?: Readonly<Record<string, Partial<TargetTopic>>>;
  /** Its users by name; default `replicator`, who may produce to every topic. */
  readonly users?: Readonly<Record<string, Partial<TargetUser>>>;
  /** Default: any that is free. */
  readonly port?: number;
  /** Default `127.0.0.1`. */
  readonly host?: string;
  /** What its certificate speaks for; default `localhost`, `127.0.0.1` and `::1`. */
  readonly names?: readonly string[];
  /** A path that its base URL ends with, such as `/eu`; default none. */
  readonly prefix?: string;
  /** Who gives it its certificate, for targets that are to share one; default an authority of its own. */
  readonly authority?: CertificateAuthority;
}

/**
 * How it presents itself to those who connect: with its own certificate, with one of an authority that nobody trusts,
 * with one that ended an hour ago, with one for another name, or in plain HTTP.
 */
export type TargetFace = 'own' | 'foreign' | 'expired' | 'otherName' | 'plainHttp';

/** A password of the default user that a remote may have. */
const PASSWORD = 'a password of the fake target';

/** Starts a target. Rejects with what the system says when it cannot listen. */
export async function startFakeTarget(options: FakeTargetOptions = {}): Promise<FakeTarget> {
  const { zstd } = await defaultCodecs();
  const broker = new TargetBroker((body, maxBytes) => {
    if (zstd === undefined) throw new IsthmusError('codecUnavailable', 'zstd: no package for it is installed');
    return zstd.decompress(body, undefined, maxBytes);
  });
  Object.assign(broker.settings, TARGET_RELEASES[options.release ?? '3.2'], options.settings);
  for (const [name, topic] of Object.entries(options.topics ?? { orders: {} })) {
    broker.topics.set(name, topicOf(name, topic));
  }
  const grants = [{ action: 'produce', topic: '*' }] as const;
  for (const [name, user] of Object.entries(options.users ?? { replicator: {} })) {
    broker.users.set(name, { password: PASSWORD, isAdmin: false, grants, ...user });
  }
  const target = new FakeTarget(broker, options);
  await target.up();
  return target;
}

interface Listening {
  readonly server: Server;
  readonly sockets: ReadonlySet<Socket>;
  readonly life: AbortController;
}

export class FakeTarget {
  /** Its rules: settings, topics and users, which may be changed at any time, and what it holds. */
  readonly broker: TargetBroker;
  /** The certificate of its authority, PEM: a remote's CA. */
  readonly caPem: string;
  /** Every request whose head came in, in order, also those that met a fault. */
  readonly requests: SeenRequest[] = [];
  /** How many connections were made to it, with TLS or without. */
  connections = 0;
  /** What goes wrong from now on: with each request, or with those that a rule picks. */
  fault: TargetFault | FaultRule | undefined;
  /** An upload with a longer body, in bytes, is cut there by a read deadline. */
  maxUploadBytes = Number.POSITIVE_INFINITY;
  private readonly authority: CertificateAuthority;
  private readonly foreign = createAuthority('an authority that nobody trusts');
  private readonly host: string;
  private readonly prefix: string;
  private port: number;
  private face: TargetFace = 'own';
  private running: Listening | undefined;

  /** Made by `startFakeTarget`. */
  constructor(
    broker: TargetBroker,
    private readonly options: FakeTargetOptions,
  ) {
    const { prefix = '', port = 0, host = '127.0.0.1', authority = createAuthority() } = options;
    if (!/^(\/[A-Za-z0-9._~-]+)*$/.test(prefix)) {
      throw new IsthmusError('invalidArgument', `prefix ${show(prefix)}: it must be a path without a slash at its end`);
    }
    this.broker = broker;
    this.authority = authority;
    this.caPem = authority.pem;
    this.host = host;
    this.port = port;
    this.prefix = prefix;
  }

  /** Its base URL, without a slash at its end. It stays the same while it is down. */
  get url(): string {
    return `https://${this.host.includes(':') ? `[${this.host}]` : this.host}:${this.port}${this.prefix}`;
  }

  /** The name and the password of its first user. */
  get credential(): { readonly username: string; readonly password: string } {
    const [[username, { password }] = ['', { password: '' }]] = this.broker.users;
    return { username, password };
  }

  /** What a topic holds, in the order in which it came. */
  stored(topic = 'orders'): readonly StoredMessage[] {
    return this.broker.stored(topic);
  }

  /** Stops listening and resets every connection: it refuses to be dialled, and what it was about to store is lost. */
  async down(): Promise<void> {
    const { running } = this;
    if (running === undefined) return;
    this.running = undefined;
    running.life.abort();
    const closed = new Promise((resolve) => running.server.close(resolve));
    // Those in the middle of their handshake too, of which a server for HTTPS does not know yet.
    for (const socket of running.sockets) socket.destroy();
    await closed;
  }

  /** Listens again, where it did before, with all that it stored. */
  async up(): Promise<void> {
    if (this.running !== undefined) return;
    const life = new AbortController();
    const server = this.createServer((request, response) => {
      this.serve(request, response, life.signal).catch(() => response.destroy());
    });
    const sockets = new Set<Socket>();
    server.on('connection', (socket) => {
      this.connections++;
      sockets.add(socket);
      socket.once('close', () => sockets.delete(socket));
    });
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen(this.port, this.host, resolve);
    });
    this.port = (server.address() as AddressInfo).port;
    this.running = { server, sockets, life };
  }

  /** Presents itself so from now on, to new connections: the present ones are reset. */
  async present(face: TargetFace): Promise<void> {
    await this.down();
    this.face = face;
    await this.up();
  }

  /** Ends it. */
  close(): Promise<void> {
    return this.down();
  }

  private createServer(listener: (request: IncomingMessage, response: ServerResponse) => void): Server {
    // Idle connections are the sender's to close: a server that closes one may do so while a request is on its way.
    const patience = { keepAliveTimeout: 300_000 };
    if (this.face === 'plainHttp') return createPlainServer(patience, listener);
    const { certificatePem: cert, keyPem: key } = this.certificate();
    return createServer({ ...patience, cert, key, minVersion: 'TLSv1.2', ALPNProtocols: ['http/1.1'] }, listener);
  }

  private certificate(): ServerCertificate {
    const names = this.options.names === undefined ? {} : { names: this.options.names };
    const hourMs = 3_600_000;
    if (this.face === 'foreign') return this.foreign.issue(names);
    if (this.face === 'otherName') return this.authority.issue({ names: ['other.example'] });
    if (this.face === 'own') return this.authority.issue(names);
    const now = Date.now();
    return this.authority.issue({ ...names, fromMs: now - 2 * hourMs, toMs: now - hourMs });
  }

  private async serve(request: IncomingMessage, response: ServerResponse, life: AbortSignal): Promise<void> {
    const atMs = Date.now();
    const path = this.pathOf(request.url ?? '/');
    const headers = request.headers as Record<string, string | undefined>;
    const head: TargetHead = { method: request.method ?? 'GET', path: path ?? '/', headers };
    const opened = path === undefined ? edgeAnswer(404) : this.broker.open(head, atMs);
    const upload = 'finish' in opened ? await this.upload(request, opened) : undefined;
    if ('finish' in opened && upload?.type === 'gone') return opened.abandon();
    const body = upload?.type === 'whole' ? upload.body : undefined;
    const seen = this.note(head, atMs, body);
    const run = () => ('finish' in opened ? opened.finish(body) : opened);
    const exchange = { request, response, seen, run, life };
    try {
      if (upload?.type === 'cut') replyToCut(exchange);
      else await reply(exchange, this.faultOf(seen));
    } finally {
      if ('finish' in opened) opened.abandon();
    }
  }

  private upload(request: IncomingMessage, { maxBodyBytes }: OpenBatch): Promise<Upload> {
    return readUpload(request, { mostBytes: maxBodyBytes, cutBytes: this.maxUploadBytes });
  }

  /** The path below the base URL; undefined outside of it. */
  private pathOf(url: string): string | undefined {
    return url.startsWith(`${this.prefix}/`) ? url.slice(this.prefix.length) : undefined;
  }

  private note({ method, path, headers }: TargetHead, atMs: number, body: Uint8Array | undefined): SeenRequest {
    const { authorization, ...others } = headers;
    const [, encoded] = /^basic +(\S+)$/i.exec(authorization ?? '') ?? [];
    const seen: SeenRequest = {
      atMs,
      method,
      path,
      kind: kindOf(path),
      headers: others,
      user: encoded === undefined ? undefined : Buffer.from(encoded, 'base64').toString().split(':', 1)[0],
      bodyBytes: body?.length ?? 0,
      messages: body === undefined ? undefined : countMessages(body),
      fault: undefined,
      status: undefined,
    };
    this.requests.push(seen);
    return seen;
  }

  private faultOf(seen: SeenRequest): TargetFault | undefined {
    const fault = typeof this.fault === 'function' ? this.fault(seen) : this.fault;
    seen.fault = fault?.type;
    return fault;
  }
}
