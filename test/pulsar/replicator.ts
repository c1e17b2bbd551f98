/** The program `examples/pulsar-replicator` as a process of its own, for the demo and the scenarios: started, watched, killed. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { StatusDocument } from '../../examples/pulsar-replicator/status/index.js';
import type { Cluster } from './brokers.js';

const MAIN = fileURLToPath(new URL('../../examples/pulsar-replicator/main.ts', import.meta.url));
/** The program as built for a run of tests, which begins in a tenth of the time; or its sources. */
const BUILT = process.env.ISTHMUS_REPLICATOR;
const PROGRAM = BUILT === undefined ? ['--import', import.meta.resolve('tsx'), MAIN] : [BUILT];

export interface ReplicatorSettings {
  readonly clusters: readonly Cluster[];
  readonly topics?: readonly string[];
  readonly name?: string;
  /** More of the configuration. */
  readonly more?: Readonly<Record<string, unknown>>;
}

export class ReplicatorProcess {
  private readonly folder = mkdtempSync(join(tmpdir(), 'isthmus-replicator-'));
  private readonly config = join(this.folder, 'config.json');
  private child: ChildProcess | undefined;
  private output = '';
  private exit: Promise<unknown> = Promise.resolve();

  private constructor(
    settings: ReplicatorSettings,
    private readonly port: number,
  ) {
    const { clusters, topics = [], name = 'replicator', more = {} } = settings;
    const described = clusters.map((cluster) => [
      cluster.name,
      { serviceUrls: [cluster.serviceUrl], adminUrls: [cluster.adminUrl] },
    ]);
    const config = { name, clusters: Object.fromEntries(described), topics, http: { port }, ...more };
    writeFileSync(this.config, JSON.stringify(config));
  }

  static async start(settings: ReplicatorSettings): Promise<ReplicatorProcess> {
    const replicator = new ReplicatorProcess(settings, await freePort());
    await replicator.restart();
    return replicator;
  }

  /** Runs it to its end, as with `--check`: how it ended, and what it said. */
  static async run(
    settings: ReplicatorSettings,
    args: readonly string[],
  ): Promise<{ readonly code: number | null; readonly output: string }> {
    const replicator = new ReplicatorProcess(settings, await freePort());
    replicator.spawn(args);
    await replicator.exit;
    rmSync(replicator.folder, { recursive: true, force: true });
    return { code: replicator.child?.exitCode ?? null, output: replicator.output };
  }

  private spawn(args: readonly string[]): void {
    const child = spawn(process.execPath, [...PROGRAM, '--config', this.config, ...args], {
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    for (const stream of [child.stdout, child.stderr]) {
      stream.on('data', (text: Buffer) => {
        this.output += text.toString();
      });
    }
    this.exit = once(child, 'close');
    this.child = child;
  }

  /** Starts it, or starts it again after a kill; resolves when it answers. */
  async restart(): Promise<void> {
    this.spawn([]);
    for (;;) {
      const { child } = this;
      if (child?.exitCode !== null) throw new Error(`the replicator has ended:\n${this.output}`);
      if ((await this.status().catch(() => undefined)) !== undefined) return;
      await sleep(100);
    }
  }

  async status(): Promise<StatusDocument> {
    const response = await fetch(`http://127.0.0.1:${this.port}/status.json`, { signal: AbortSignal.timeout(5_000) });
    return (await response.json()) as StatusDocument;
  }

  /** Everything that it has said. */
  get log(): string {
    return this.output;
  }

  /** Waits until its status is as wanted. */
  async until(what: string, isSo: (status: StatusDocument) => boolean, limitMs = 60_000): Promise<StatusDocument> {
    const endMs = Date.now() + limitMs;
    for (;;) {
      const status = await this.status().catch(() => undefined);
      if (status !== undefined && isSo(status)) return status;
      if (Date.now() > endMs) {
        throw new Error(`not within ${limitMs} ms: ${what}\n${JSON.stringify(status)}\n${this.output.slice(-4_000)}`);
      }
      await sleep(100);
    }
  }

  async kill(signal: 'SIGKILL' | 'SIGSTOP' | 'SIGCONT' = 'SIGKILL'): Promise<void> {
    this.child?.kill(signal);
    if (signal === 'SIGKILL') await this.exit;
  }

  /** Asks it to end, and gives its exit code. */
  async stop(): Promise<number | null> {
    const { child } = this;
    if (child !== undefined && child.exitCode === null && child.signalCode === null) {
      child.kill('SIGTERM');
      const limit = setTimeout(() => child.kill('SIGKILL'), 30_000);
      await this.exit;
      clearTimeout(limit);
    }
    rmSync(this.folder, { recursive: true, force: true });
    return child?.exitCode ?? null;
  }
}

/** All layouts of all topics are equal. */
export function isConverged(status: StatusDocument): boolean {
  return status.topics.length > 0 && status.topics.every(({ convergence }) => convergence.state === 'converged');
}

/** Nothing is left to be replicated, as far as the clusters tell. */
export function isCaughtUp(status: StatusDocument): boolean {
  // A process that has just begun knows of no segments yet.
  const lines = status.topics.flatMap(({ directions }) => directions.map(({ segments }) => segments));
  return (
    lines.length > 0 &&
    lines.every(
      (segments) =>
        segments.length > 0 &&
        segments.every(
          ({ state, backlog, unsettledEntries }) => state === 'drained' || (backlog === 0 && unsettledEntries === 0),
        ),
    )
  );
}

async function freePort(): Promise<number> {
  const server = createServer();
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  server.close();
  await once(server, 'close');
  if (address === null || typeof address === 'string') throw new Error('no free port');
  return address.port;
}
