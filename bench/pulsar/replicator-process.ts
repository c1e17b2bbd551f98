/** The program `examples/pulsar-replicator`, bundled as users' bundlers do it, as a process of its own. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { Cluster } from '../../test/pulsar/brokers.js';

const PROGRAM = fileURLToPath(new URL('../../dist/bench-pulsar/replicator.js', import.meta.url));
const START_MS = 60_000;
const STOP_MS = 20_000;

export interface ReplicatorOptions {
  readonly from: Cluster;
  readonly to: Cluster;
  /** The scalable topics of it that are on both clusters are replicated, also those to come. */
  readonly namespace: string;
  /** Where V8 writes a CPU profile at the end. */
  readonly profileFolder?: string;
}

export class ReplicatorProcess {
  private output = '';

  private readonly child: ChildProcess;
  private readonly folder = mkdtempSync(join(tmpdir(), 'isthmus-bench-'));

  /** Starts it. */
  constructor({ from, to, namespace, profileFolder }: ReplicatorOptions) {
    const clusters = [from, to].map(({ name, serviceUrl, adminUrl }) => [
      name,
      { serviceUrls: [serviceUrl], adminUrls: [adminUrl] },
    ]);
    const config = {
      name: 'bench',
      clusters: Object.fromEntries(clusters),
      directions: [[from.name, to.name]],
      namespaces: [namespace],
      http: null,
    };
    const file = join(this.folder, 'config.json');
    writeFileSync(file, JSON.stringify(config));
    const profile = profileFolder === undefined ? [] : ['--cpu-prof', `--cpu-prof-dir=${profileFolder}`];
    this.child = spawn(process.execPath, [...profile, PROGRAM, '--config', file], {
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    for (const stream of [this.child.stdout, this.child.stderr]) {
      stream?.on('data', (text: Buffer) => {
        this.output = `${this.output}${text.toString()}`.slice(-10_000);
      });
    }
  }

  /** Resolves when it leads: its states are prepared and its locks held. */
  async ready(): Promise<void> {
    const endMs = performance.now() + START_MS;
    while (!this.output.includes('this process leads')) {
      if (this.hasEnded || performance.now() > endMs) {
        const what = this.hasEnded ? 'has ended' : `does not lead after ${START_MS / 1_000} s`;
        throw new Error(`the replicator ${what}:\n${this.output}`);
      }
      await sleep(100);
    }
  }

  get pid(): number | undefined {
    return this.child.pid;
  }

  /** The end of what it has said. */
  get log(): string {
    return this.output;
  }

  async stop(): Promise<void> {
    if (!this.hasEnded) {
      const ended = once(this.child, 'exit');
      this.child.kill('SIGTERM');
      const limit = setTimeout(() => this.child.kill('SIGKILL'), STOP_MS);
      await ended;
      clearTimeout(limit);
    }
    rmSync(this.folder, { recursive: true, force: true });
  }

  private get hasEnded(): boolean {
    return this.child.exitCode !== null || this.child.signalCode !== null;
  }
}
