/**
 * The story: a process copies a folder of NDJSON to a topic of a target over HTTPS. In the middle the target goes down
 * and comes back; later the process is killed just when the target has accepted all of a slab and its cursor is not
 * written yet, and starts again. At the end the target holds every record, each key in order.
 */
import { type ChildProcess, fork } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { CredentialKeys, drawSalt, fnv1a, Guard, Secret } from 'isthmus';
import { sealRemote } from 'isthmus/drivers';
import { type FakeTarget, startFakeTarget } from 'isthmus/testing';
import { readFlights } from '../demo/flights.js';
import { type Comparison, compare, countDuplicates } from './compare.js';
import { NdjsonParent } from './ndjson-parent.js';
import type { ReplicateConfig, ReplicateNews } from './replicate.js';
import { FolderRegistry } from './state-folder.js';

const REPLICATE = fileURLToPath(new URL('./replicate.ts', import.meta.url));
const PARTITIONS = 3;
const LANES = 2;
/** The most records of a slab: what one cursor may send again after a kill. */
export const SLAB_RECORDS = LANES * 500;
/** How long a batch is stored before it is answered, so that the copy has a middle. */
const BATCH_MS = 20;
const OUTAGE_MS = 1_000;

export interface StoryOptions {
  readonly records: number;
  /** An empty folder, for what is copied and for what outlives the process. */
  readonly folder: string;
  readonly print: (line: string) => void;
}

export interface StoryOutcome extends Comparison {
  /** Copies that the target held before the process was killed, and those that came after. */
  readonly duplicatesOfOutage: number;
  readonly duplicatesOfKill: number;
  /** What one interruption may cost: a slab for each cursor. */
  readonly duplicatesAllowed: number;
  /** The states in which the link was seen, in order. */
  readonly states: readonly string[];
  readonly lives: number;
}

/** Tells the story. Rejects when the copy is refused, or when a process ends before it is done. */
export async function runStory({ records, folder, print }: StoryOptions): Promise<StoryOutcome> {
  const source = await writeFolder(records, join(folder, 'source'));
  const parent = new NdjsonParent('flights', source, 'origin');
  const target = await startFakeTarget({ topics: { flights: { partitions: 4 } } });
  const secret = randomBytes(32).toString('hex');
  const lives: Life[] = [];
  const start = (): Life => {
    const life = new Life(join(folder, 'config.json'), secret);
    lives.push(life);
    return life;
  };
  try {
    target.fault = ({ kind }) => (kind === 'batch' ? { type: 'slow', ms: BATCH_MS, stores: true } : undefined);
    await register(target, { folder, source, secret });
    print(`copying ${records} records of ${PARTITIONS} partitions in ${LANES} lanes each to ${target.url}`);
    const first = start();
    await first.until(() => target.stored('flights').length >= records * 0.3);
    await outage(target, first, print);
    await first.until(() => target.stored('flights').length >= records * 0.6);
    const held = await first.hold();
    await first.kill();
    const before = target.stored('flights').length;
    const duplicatesOfOutage = countDuplicates(target.stored('flights'));
    print(`kill -9 between a 202 and the cursor write: partition ${held.partition} had come to record ${held.offset}`);
    const second = start();
    const { requests } = await second.done();
    print(
      `all is there: ${target.stored('flights').length - before} messages in the second life, ${requests} requests`,
    );
    const found = compare(parent.partitions, target.stored('flights'));
    return {
      ...found,
      duplicatesOfOutage,
      duplicatesOfKill: found.duplicates - duplicatesOfOutage,
      duplicatesAllowed: PARTITIONS * SLAB_RECORDS,
      states: lives.flatMap(({ states }) => states),
      lives: lives.length,
    };
  } finally {
    await Promise.all(lives.map((life) => life.kill()));
    await target.close();
  }
}

/** Real flights, numbered; those of one airport in one file. */
async function writeFolder(count: number, folder: string): Promise<string> {
  mkdirSync(folder, { recursive: true });
  const lines: string[][] = Array.from({ length: PARTITIONS }, () => []);
  for (const [row, { key, value }] of (await readFlights(count)).entries()) {
    const [origin = ''] = key.split('-');
    const flight = JSON.parse(new TextDecoder().decode(value)) as object;
    lines[fnv1a(Buffer.from(origin)) % PARTITIONS]?.push(`${JSON.stringify({ row, origin, ...flight })}\n`);
  }
  for (const [partition, of] of lines.entries()) writeFileSync(join(folder, `${partition}.ndjson`), of.join(''));
  return folder;
}

/** Seals the target's credential into the metadata, and writes what a life is started with. */
async function register(
  target: FakeTarget,
  { folder, source, secret }: { readonly folder: string; readonly source: string; readonly secret: string },
): Promise<void> {
  const state = join(folder, 'state');
  mkdirSync(state);
  const salt = drawSalt();
  const keys = new CredentialKeys({ secret: new Secret(secret), salt });
  const allowed = {
    allowedHosts: ['127.0.0.1'],
    allowedPorts: [Number(new URL(target.url).port)],
    allowAddresses: ['127.0.0.0/8'],
  };
  const { url, caPem, credential } = target;
  const sealed = await sealRemote({ name: 'b', url, caPem, ...credential }, { keys, guard: new Guard(allowed) });
  if (sealed.type === 'refused') throw new Error(`the remote was refused: ${sealed.reason}`);
  await (await FolderRegistry.open(state)).addRemote(sealed.remote);
  const config: ReplicateConfig = {
    ...{ source, keyMember: 'origin', state, salt: Buffer.from(salt).toString('base64') },
    ...{ remote: 'b', topic: 'flights', lanes: LANES },
    ...allowed,
  };
  writeFileSync(join(folder, 'config.json'), JSON.stringify(config));
}

async function outage(target: FakeTarget, life: Life, print: StoryOptions['print']): Promise<void> {
  await target.down();
  const stored = target.stored('flights').length;
  print(`the target goes down with ${stored} messages`);
  await sleep(OUTAGE_MS);
  await life.until(() => life.states.at(-1) !== 'running');
  print(`the link is ${life.states.at(-1)}; the target comes back`);
  await target.up();
  await life.until(() => target.stored('flights').length > stored);
}

/** One life of the replicating process. */
class Life {
  readonly states: string[] = [];
  private readonly process: ChildProcess;
  private readonly ended: Promise<void>;
  private hasEnded = false;
  private refusal: string | undefined;
  private held: Extract<ReplicateNews, { type: 'holding' }> | undefined;
  private finished: Extract<ReplicateNews, { type: 'done' }> | undefined;

  constructor(config: string, secret: string) {
    const env = { ...process.env, ISTHMUS_MASTER_SECRET: secret };
    this.process = fork(REPLICATE, [config], { env, execArgv: ['--import', 'tsx'] });
    this.process.on('message', (news: ReplicateNews) => this.take(news));
    this.ended = new Promise((resolve) => {
      this.process.once('exit', () => {
        this.hasEnded = true;
        resolve();
      });
    });
  }

  /** Asks it to leave its next cursor unwritten, and waits for that. */
  async hold(): Promise<Extract<ReplicateNews, { type: 'holding' }>> {
    this.process.send('hold');
    await this.until(() => this.held !== undefined);
    return this.held ?? { type: 'holding', partition: 0, offset: 0 };
  }

  async done(): Promise<Extract<ReplicateNews, { type: 'done' }>> {
    await this.until(() => this.finished !== undefined);
    await this.ended;
    return this.finished ?? { type: 'done', requests: 0, resent: 0 };
  }

  async kill(): Promise<void> {
    if (!this.hasEnded) this.process.kill('SIGKILL');
    await this.ended;
  }

  async until(condition: () => boolean): Promise<void> {
    while (!condition()) {
      if (this.refusal !== undefined) throw new Error(`the copy was refused: ${this.refusal}`);
      if (this.hasEnded) throw new Error('the process ended before it was done');
      await sleep(5);
    }
  }

  private take(news: ReplicateNews): void {
    if (news.type === 'holding') this.held ??= news;
    else if (news.type === 'done') this.finished = news;
    else if (news.type === 'refused') this.refusal = news.reason;
    else if (news.state !== this.states.at(-1)) this.states.push(news.state);
  }
}
