/**
 * Real Pulsar brokers for live tests: each a standalone cluster with ports and a folder of its own. They can be
 * stopped, killed, paused and restarted on the same data. None outlives the process that started it, however that ends.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes, randomInt } from 'node:crypto';
import { once } from 'node:events';
import {
  closeSync,
  copyFileSync,
  existsSync,
  mkdtempSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type BrokerOptions, type BrokerPorts, type BrokerSecrets, formatSettings } from './broker-settings.js';
import { type JavaTools, javaTools } from './java.js';
import { makeCertificate, makeToken, type TokenOptions } from './secrets.js';

export type { BrokerOptions } from './broker-settings.js';

/** A cluster to test with. */
export interface Cluster {
  /** `a`, `b` and so on. */
  readonly name: string;
  /** `pulsar://host:port`, of a secure broker `pulsar+ssl://host:port`. */
  readonly serviceUrl: string;
  /** `http://host:port`, of a secure broker `https://host:port`. */
  readonly adminUrl: string;
  /** What a secure broker has in addition. */
  readonly secure?: SecureAccess;
}

export interface SecureAccess {
  /** The authority of the broker's certificate, in PEM. */
  readonly ca: string;
  /** The file that holds it. */
  readonly caFile: string;
  /** A token of a role; `admin` is a super-user. */
  token(role: string, options?: TokenOptions): string;
  /** The same broker without TLS. */
  readonly plainServiceUrl: string;
  readonly plainAdminUrl: string;
}

/** A broker that was started here. */
export interface Broker extends Cluster {
  /** Of its process; undefined while it does not run. */
  readonly pid: number | undefined;
  /** Where its output goes, over all restarts. */
  readonly logFile: string;
  /** The last lines of its output. */
  logTail(lines?: number): string;
  /** Asks it to end (SIGTERM) and waits until it has. */
  stop(): Promise<void>;
  /** Ends it at once (SIGKILL). */
  kill(): Promise<void>;
  /** Lets it hang (SIGSTOP): its sockets stay open and nothing is answered. */
  pause(): void;
  resume(): void;
  /** Starts it again on the same data and ports, stopping it before where it runs. Resolves when it is ready. */
  restart(): Promise<void>;
}

/** Brokers that belong together. */
export interface Brokers {
  readonly all: readonly Broker[];
  /** Stops all and removes their folders. */
  stop(): Promise<void>;
}

/** Clusters to test with, wherever they run. */
export interface Clusters {
  readonly all: readonly Cluster[];
  stop(): Promise<void>;
}

/** Time limits in milliseconds; two brokers that start at once share the cores. */
const START_MS = 240_000;
const STOP_MS = 20_000;

/**
 * The clusters that PULSAR_A, PULSAR_B and so on name, each as `pulsar://host:port,http://host:port`, if they have the
 * options that are wanted, which PULSAR_OPTIONS lists (`shortChecks,transactions`); the others are started here.
 */
export async function openClusters(count: number, options: BrokerOptions = {}): Promise<Clusters> {
  const names = clusterNames(count);
  const present = new Set(process.env.PULSAR_OPTIONS?.split(','));
  const isFit = Object.keys(options).every((option) => present.has(option));
  const running = names.map((name) => (isFit ? runningCluster(name) : undefined));
  const missing = names.filter((_, i) => running[i] === undefined);
  const brokers = missing.length === 0 ? undefined : await startNamed(missing, () => options);
  const started = new Map(brokers?.all.map((broker) => [broker.name, broker]));
  return {
    all: names.map((name, i) => running[i] ?? (started.get(name) as Broker)),
    stop: async () => brokers?.stop(),
  };
}

/**
 * Starts brokers, at the same time; `options` for all, or for each by its place. Resolves when all are ready. Rejects,
 * with the log's last lines, when one does not come up; then none is left.
 */
export function startBrokers(
  count: number,
  options: BrokerOptions | ((index: number) => BrokerOptions) = {},
): Promise<Brokers> {
  return startNamed(clusterNames(count), typeof options === 'function' ? options : () => options);
}

function clusterNames(count: number): string[] {
  return Array.from({ length: count }, (_, i) => String.fromCharCode(97 + i));
}

function runningCluster(name: string): Cluster | undefined {
  const variable = `PULSAR_${name.toUpperCase()}`;
  const value = process.env[variable];
  if (value === undefined || value === '') return undefined;
  const [serviceUrl, adminUrl] = value.split(',');
  if (!serviceUrl?.startsWith('pulsar://') || !adminUrl?.startsWith('http://')) {
    throw new Error(`${variable} is ${value}: it must be pulsar://host:port,http://host:port`);
  }
  return { name, serviceUrl, adminUrl };
}

async function startNamed(names: readonly string[], optionsOf: (index: number) => BrokerOptions): Promise<Brokers> {
  const tools = await javaTools();
  if (!existsSync(tools.brokerArchive)) await makeArchive(tools);
  const folder = mkdtempSync(join(tmpdir(), 'isthmus-brokers-'));
  const all: LocalBroker[] = [];
  const stop = async () => {
    await Promise.all(all.map((broker) => broker.stop()));
    rmSync(folder, { recursive: true, force: true });
  };
  try {
    for (const [i, name] of names.entries()) all.push(await LocalBroker.prepare(tools, name, folder, optionsOf(i)));
    const starts = await Promise.allSettled(all.map((broker) => broker.start()));
    for (const result of starts) if (result.status === 'rejected') throw result.reason;
    return { all, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** Lets a broker run once and write down the classes that it has loaded, for those that come after it. */
async function makeArchive(tools: JavaTools): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'isthmus-brokers-'));
  const file = join(folder, 'archive.jsa');
  try {
    const broker = await LocalBroker.prepare(tools, 'a', folder, {}, [`-XX:ArchiveClassesAtExit=${file}`]);
    await broker.start();
    await broker.stop(START_MS);
    // Whole or not at all: others may be doing the same.
    copyFileSync(file, `${tools.brokerArchive}.${process.pid}`);
    renameSync(`${tools.brokerArchive}.${process.pid}`, tools.brokerArchive);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

class LocalBroker implements Broker {
  readonly logFile: string;
  readonly serviceUrl: string;
  readonly adminUrl: string;
  readonly secure?: SecureAccess;
  readonly #args: readonly string[];
  #process: ChildProcess | undefined;

  private constructor(
    private readonly tools: JavaTools,
    readonly name: string,
    private readonly folder: string,
    private readonly ports: BrokerPorts,
    private readonly secrets: BrokerSecrets | undefined,
    jvmOptions: readonly string[],
  ) {
    this.logFile = join(folder, `${name}.log`);
    const plainServiceUrl = `pulsar://127.0.0.1:${ports.service}`;
    const plainAdminUrl = `http://127.0.0.1:${ports.web}`;
    this.serviceUrl = secrets === undefined ? plainServiceUrl : `pulsar+ssl://127.0.0.1:${ports.serviceTls}`;
    this.adminUrl = secrets === undefined ? plainAdminUrl : `https://127.0.0.1:${ports.webTls}`;
    if (secrets !== undefined) {
      const { certificate, tokenSecret } = secrets;
      const token = (role: string, options?: TokenOptions) => makeToken(tokenSecret, role, options);
      const { pem: ca, certificateFile: caFile } = certificate;
      this.secure = { ca, caFile, token, plainServiceUrl, plainAdminUrl };
    }
    this.#args = [
      // Two of them run beside the tests on a small machine.
      ...['-Xmx1g', '-XX:MaxDirectMemorySize=1g', '-XX:+UseSerialGC', ...jvmOptions, ...tools.options],
      // Native libraries are unpacked there, and a killed broker leaves them behind.
      `-Djava.io.tmpdir=${folder}`,
      ...['-cp', tools.brokerPath, 'org.apache.pulsar.PulsarStandaloneStarter', '-nfw', '-nss'],
      ...['--config', join(folder, `${name}.conf`), '--bookkeeper-port', String(ports.bookie)],
      ...['--bookkeeper-dir', join(folder, `${name}-bookkeeper`), '--metadata-dir', join(folder, `${name}-metadata`)],
    ];
  }

  static async prepare(
    tools: JavaTools,
    name: string,
    folder: string,
    options: BrokerOptions,
    jvmOptions: readonly string[] = [
      ...(options.optimised ? [] : ['-XX:TieredStopAtLevel=1']),
      ...[`-XX:SharedArchiveFile=${tools.brokerArchive}`, '-Xshare:auto', '-Xlog:cds=off'],
    ],
  ): Promise<LocalBroker> {
    const ports = await freePorts();
    const secrets = options.secure ? makeSecrets(join(folder, `${name}-secrets`)) : undefined;
    writeFileSync(join(folder, `${name}.conf`), formatSettings(name, ports, options, secrets), { mode: 0o600 });
    return new LocalBroker(tools, name, folder, ports, secrets, jvmOptions);
  }

  async start(): Promise<void> {
    const log = openSync(this.logFile, 'a');
    const child = spawn(this.tools.java, this.#args, { stdio: ['ignore', log, log] });
    closeSync(log);
    this.#process = child;
    const ended = new Promise<void>((resolve) => {
      child.once('exit', () => resolve());
      child.once('error', () => resolve());
    });
    const watcher = child.pid === undefined ? undefined : watchOver(child.pid, this.folder);
    void ended.then(() => {
      watcher?.kill('SIGKILL');
      if (this.#process === child) this.#process = undefined;
    });
    // A process of the tests that forgets its brokers still ends, and the watcher then ends them.
    child.unref();
    await this.#untilReady(child);
  }

  get pid(): number | undefined {
    return this.#process?.pid;
  }

  logTail(lines = 40): string {
    return readFileSync(this.logFile, 'utf8').trimEnd().split('\n').slice(-lines).join('\n');
  }

  async stop(limitMs = STOP_MS): Promise<void> {
    const child = this.#process;
    if (child === undefined) return;
    const ended = once(child, 'exit').then(() => true);
    child.ref();
    child.kill('SIGTERM');
    child.kill('SIGCONT');
    const inTime = await Promise.race([ended, sleep(limitMs, false, { ref: false })]);
    if (!inTime) await this.kill();
  }

  async kill(): Promise<void> {
    const child = this.#process;
    if (child === undefined) return;
    const ended = once(child, 'exit');
    child.ref();
    child.kill('SIGKILL');
    await ended;
  }

  pause(): void {
    this.#process?.kill('SIGSTOP');
  }

  resume(): void {
    this.#process?.kill('SIGCONT');
  }

  async restart(): Promise<void> {
    await this.stop();
    await this.start();
  }

  /** Healthy, and with the namespace public/default, which a new cluster gets a little later. */
  async #untilReady(child: ChildProcess): Promise<void> {
    const deadline = Date.now() + START_MS;
    const paths = ['brokers/health', 'namespaces/public/default'];
    while (paths.length > 0) {
      if (this.#process !== child || Date.now() > deadline) {
        const what = this.#process === child ? `is not ready after ${START_MS / 1000} s` : 'has ended';
        const tail = this.logTail();
        await this.kill();
        throw new Error(`broker ${this.name} ${what}; the end of its log:\n${tail}`);
      }
      if (await this.#answers(paths[0] as string)) paths.shift();
      else await sleep(250);
    }
  }

  async #answers(path: string): Promise<boolean> {
    const token = this.secrets?.brokerToken;
    const headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
    const address = `http://127.0.0.1:${this.ports.web}/admin/v2/${path}`;
    try {
      const response = await fetch(address, { headers, signal: AbortSignal.timeout(10_000) });
      await response.arrayBuffer();
      return response.status === 200;
    } catch {
      return false;
    }
  }
}

/**
 * Kills a broker, paused or not, and removes its folder as soon as this process is gone: a shell of its own that waits
 * for the end of a pipe, which comes with the end of whoever holds the other side.
 */
function watchOver(pid: number, folder: string): ChildProcess {
  const script = 'read _; kill -9 "$1"; sleep 1; rm -rf "$2"';
  const watcher = spawn('sh', ['-c', script, 'watcher', String(pid), folder], {
    stdio: ['pipe', 'ignore', 'ignore'],
    // Out of reach of the terminal's ^C, which ends the whole group at once.
    detached: true,
  });
  watcher.unref();
  (watcher.stdin as unknown as { unref(): void }).unref();
  return watcher;
}

function makeSecrets(folder: string): BrokerSecrets {
  const tokenSecret = randomBytes(32);
  return { certificate: makeCertificate(folder), tokenSecret, brokerToken: makeToken(tokenSecret, 'broker') };
}

/** Ports of brokers that may not have taken them yet. */
const given = new Set<number>();

/** Free ports below those that the system gives to outgoing connections, so that they are still free at a restart. */
async function freePorts(): Promise<BrokerPorts> {
  const first = randomInt(20_000, 32_000);
  const free: number[] = [];
  for (let port = first; free.length < 5 && port < 32_700; port++) {
    if (given.has(port) || !(await isFree(port))) continue;
    given.add(port);
    free.push(port);
  }
  const [service, web, bookie, serviceTls, webTls] = free as [number, number, number, number, number];
  return { service, web, bookie, serviceTls, webTls };
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(false));
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)));
  });
}
