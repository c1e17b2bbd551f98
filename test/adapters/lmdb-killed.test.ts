/**
 * A process that writes to the embedded store is killed again and again (SIGKILL), each time in the middle of appends,
 * cursor writes and changes of the layout. What it had printed as resolved must be there, and all parts must agree.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import type { Layout, Segment } from 'isthmus';
import type { LmdbTopic } from 'isthmus/adapters/lmdb';
import { expect, it } from 'vitest';
import { openTopic, storeFolder } from '../support/lmdb.js';
import { readBody, SOURCES } from '../support/lmdb-stream.js';

const KILLS = 10;
const writer = fileURLToPath(new URL('../support/lmdb-writer.ts', import.meta.url));

/** One run of the writer: what it printed until it was killed. */
interface Run {
  readonly child: ChildProcess;
  readonly lines: string[];
  /** Resolves when all that it has printed is there. */
  readonly ended: Promise<unknown>;
  /** Resolves with the first line of that kind. */
  printed(kind: string): Promise<void>;
}

/** Starts a process that has loaded everything, and waits to be let go. */
function start(folder: string): Run {
  const child = spawn(process.execPath, ['--import', 'tsx', writer, folder], { stdio: ['pipe', 'pipe', 'inherit'] });
  const lines: string[] = [];
  let rest = '';
  const changed: (() => void)[] = [];
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    const pieces = (rest + text).split('\n');
    // A line that the kill has cut tells nothing.
    rest = pieces.pop() ?? '';
    lines.push(...pieces);
    for (const wake of changed.splice(0)) wake();
  });
  const ended = once(child, 'close');
  return {
    child,
    lines,
    ended,
    async printed(kind) {
      while (!lines.some((line) => line.startsWith(kind))) {
        await Promise.race([ended, new Promise<void>((wake) => changed.push(wake))]);
        if (child.exitCode !== null) throw new Error(`the writer ended with ${child.exitCode}: ${lines.at(-1)}`);
      }
    },
  };
}

/** Lets a process run for a random time from the first line of a kind on, and kills it. */
async function kill(run: Run, kind: string): Promise<void> {
  await run.printed('loaded');
  run.child.stdin?.write('go\n');
  await run.printed(kind);
  await new Promise((resolve) => setTimeout(resolve, Math.random() * 250));
  run.child.kill('SIGKILL');
  await run.ended;
  expect(run.lines.filter((line) => line.startsWith('fault'))).toEqual([]);
}

/** All that a store holds of the stream. */
interface Contents {
  /** Where each entry lies, by source and number: the segment and the entry id. */
  readonly places: ReadonlyMap<string, string>;
  /** The highest number in a segment and those that it came from, by segment and source. */
  readonly highest: ReadonlyMap<string, number>;
}

/** Reads everything; each entry must be there once, and those of one source in their order. */
function contentsOf(topic: LmdbTopic): Contents {
  const places = new Map<string, string>();
  const highest = new Map<string, number>();
  for (const { segmentId, parentIds } of ascending(topic.layout)) {
    for (const source of SOURCES) {
      const inherited = parentIds.map((parentId) => highest.get(`${parentId} ${source}`) ?? 0);
      highest.set(`${segmentId} ${source}`, Math.max(0, ...inherited));
    }
    for (const { position, bytes } of topic.entries(segmentId)) {
      const { source, number } = readBody(bytes);
      const last = highest.get(`${segmentId} ${source}`) ?? 0;
      if (number <= last) expect.fail(`${source} ${number} lies behind ${last} in segment ${segmentId}`);
      highest.set(`${segmentId} ${source}`, number);
      if (places.has(`${source} ${number}`)) expect.fail(`${source} ${number} is stored twice`);
      places.set(`${source} ${number}`, `${segmentId} ${position.entryId}`);
    }
  }
  return { places, highest };
}

function ascending({ segments }: Layout): Segment[] {
  return [...segments.values()].sort((a, b) => a.segmentId - b.segmentId);
}

/** What was printed as stored lies where it was said to lie. */
function checkStored(lines: readonly string[], { places }: Contents): void {
  for (const line of lines) {
    const [kind, source, number, segmentId, entryId] = line.split(' ');
    if (kind !== 'stored') continue;
    const place = places.get(`${source} ${number}`);
    if (place !== `${segmentId} ${entryId}`) expect.fail(`${line}: it lies at ${place}`);
  }
}

/** Each window knows what its segment has of each source, and what that came from had: no more and no less. */
function checkWindows(topic: LmdbTopic, { highest }: Contents): void {
  for (const { segmentId } of ascending(topic.layout)) {
    const window = topic.window(segmentId);
    for (const source of SOURCES) {
      const watermark = window.watermark(`pulsar.repl.b.${source}`);
      const known = watermark === undefined ? 0 : Number(watermark.entryId);
      expect(known, `window of segment ${segmentId}, source ${source}`).toBe(highest.get(`${segmentId} ${source}`));
    }
  }
}

/** A cursor is not behind what was printed as written, and nothing up to it is missing. */
async function checkCursors(lines: readonly string[], topic: LmdbTopic, { places }: Contents): Promise<void> {
  const cursors = await topic.cursors('b').load();
  for (const source of SOURCES) {
    const settled = Number(cursors.get(source)?.settled?.entryId ?? 0n);
    const printed = lines.filter((line) => line.startsWith(`cursor ${source} `)).map((line) => line.split(' ')[2]);
    expect(settled).toBeGreaterThanOrEqual(Math.max(0, ...printed.map(Number)));
    for (let number = 1; number <= settled; number++) {
      if (!places.has(`${source} ${number}`))
        expect.fail(`the cursor is at ${settled}, and ${source} ${number} is missing`);
    }
  }
}

/** The layout is not older than printed, and what is sealed behind it is what it says is sealed. */
async function checkLayout(lines: readonly string[], topic: LmdbTopic): Promise<void> {
  const printed = lines.filter((line) => line.startsWith('layout ')).map((line) => Number(line.split(' ')[1]));
  expect(topic.layout.epoch).toBeGreaterThanOrEqual(Math.max(0, ...printed));
  const recorded = ascending(topic.layout).map(({ segmentId, state }) => ({ segmentId, sealed: state === 'sealed' }));
  expect(await topic.layoutHost().segments.list()).toEqual(recorded);
}

it('B31: whatever ends the process, what resolved is there once, and windows and cursors agree with it', async () => {
  const folder = storeFolder();
  await openTopic(await folder.open());
  const lines: string[] = [];
  let next = start(folder.path);
  try {
    for (let kills = 0; kills < KILLS; kills++) {
      const run = next;
      await folder.close();
      // Every third run is killed just behind a change of the layout.
      await kill(run, kills % 3 === 2 ? 'layout' : 'stored');
      next = start(folder.path);
      lines.push(...run.lines);
      const topic = await openTopic(await folder.open());
      const contents = contentsOf(topic);
      checkStored(lines, contents);
      checkWindows(topic, contents);
      await checkCursors(lines, topic, contents);
      await checkLayout(lines, topic);
    }
  } finally {
    next.child.kill('SIGKILL');
    await folder.remove();
  }
  const count = (kind: string) => lines.filter((line) => line.startsWith(kind)).length;
  expect(count('stored')).toBeGreaterThan(KILLS);
  expect(count('cursor')).toBeGreaterThan(0);
  expect(count('layout')).toBeGreaterThan(0);
}, 120_000);
