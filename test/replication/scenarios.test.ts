/**
 * Transcripts: each file of test/scenarios/replication is a story of one source segment on its way to a remote, told in
 * comments, commands and what comes of them. The runner plays the commands and compares; with UPDATE_SCENARIOS=1 it
 * writes the files anew.
 *
 * | command | meaning |
 * | --- | --- |
 * | `source 0-7fff` | the range of the source segment, which is the whole ring otherwise |
 * | `remote 0/2 8000/2 [readBack] [oneByOne] [max=1000]` | the remote: its segments by start, each with so many buckets |
 * | `options ttlMs=60000 windowEntries=4` | how the machines made from now on work; cursors are written at once otherwise |
 * | `take up`, `start`, `crash`, `in two` | the machine is made; its parents have drained; the process ends; go on in another one |
 * | `entry 2.7 9.1 [x3] [schema=v1] [age=70s] [size=100] [to=c]` | a batch of these keys; a key is named by the first digits of its segment hash and of its bucket hash, `-` is none |
 * | `encrypted 2.7 9.1`, `damaged 2.7`, `single 2.7`, `chunk m 1/3 2.7`, `marker` | other entries |
 * | `seal`, `rebuild 3`, `expire 7:4` | the source segment ends; is made anew in ledger 3; lets entries go by itself |
 * | `layout 0/1 4000/1 8000/1 [untold]`, `prune 0`, `tell layout` | the remote's layout changes, and the machine is told |
 * | `hold sends`, `let sends go` | answers of a kind wait: `reads`, `opens`, `sends`, `writes`, `recoveries`, `grants`, `translations` |
 * | `arrives 0 [unanswered]`, `result 0 sealed` | the oldest send to a segment is judged by the remote, or gets this result |
 * | `opened 0 [fenced]`, `asked 0 [fails]`, `written [fails]`, `read [fails]`, `granted`, `translated` | what waits is answered |
 * | `keep the read`, `the kept read` | a read is on its way for long, and comes |
 * | `cut`, `trim 0 up to 0:3`, `push the pin of 0 to 0:3`, `move the pin of 0 to 0:3`, `forget the cursor`, `remember the cursor`, `restore the cursor` | the world does harm |
 * | `schema v1 w1`, `schema v1 incompatible` | what the translator says |
 * | `skip 7:3`, `pause`, `resume`, `stop`, `advance 100ms` | the operator, and time |
 * | `status`, `counters`, `show` | what the machine says of itself; what the remote holds |
 *
 * Below a command is what the machine asks for, each with its answer; `...` is an answer that waits.
 */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { parseSourcePosition } from '../../src/entry/index.js';
import { applyShape, createLayout, pruneSegment } from '../../src/layout/index.js';
import type { SendResult } from '../../src/ports/index.js';
import type { SegmentEvent } from '../../src/replication/index.js';
import { shape } from '../convergence/shorthand.js';
import { type Kind, type Process, SegmentStage, START_MS } from '../support/segment-stage.js';
import { encodeEntry } from '../support/stage-entries.js';
import { position, storedText, waitText } from '../support/stage-text.js';

const folder = new URL('../scenarios/replication/', import.meta.url);
const isUpdate = process.env.UPDATE_SCENARIOS === '1';

/** The stories with the ids that their first lines cite. */
const STORIES = readdirSync(folder)
  .filter((name) => name.endsWith('.txt'))
  .map((name) => {
    const [head = ''] = readFileSync(new URL(name, folder), 'utf8').split('\n\n');
    return { name, head, ids: (head.match(/\b[RB]\d+[bc]?\b/g) ?? []).join(' ') };
  });

describe('scenarios of replication', () => {
  it.each(STORIES)('$name ($ids)', async ({ name, head, ids }) => {
    const file = new URL(name, folder);
    const told = readFileSync(file, 'utf8');
    const played = await play(told);
    if (isUpdate) writeFileSync(file, played);
    expect(played).toBe(isUpdate ? played : told);
    expect(head, 'a story begins with what it shows').toMatch(/^(?:# .*\n?)+$/);
    expect(ids, 'and with the ids of that').not.toBe('');
  });
});

/** The transcript with what its commands lead to now. */
async function play(transcript: string): Promise<string> {
  const story = new Story();
  const lines: string[] = [];
  let isOutput = false;
  for (const line of transcript.split('\n')) {
    if (line.startsWith('> ')) {
      lines.push(line, ...(await story.run(line.slice(2).trim())));
      isOutput = true;
    } else if (line === '' || line.startsWith('#')) {
      lines.push(line);
      isOutput = false;
    } else if (!isOutput) {
      throw new Error(`${line}: neither a comment nor a command, nor the output of one`);
    }
  }
  return lines.join('\n');
}

type OpenFailure = Extract<SegmentEvent, { type: 'openFailed' }>['failure'];

/** Where a transcript is played. */
class Story {
  private source: { range?: { start: number; end: number } } = {};
  private options: Record<string, number | boolean> = {};
  private stage: SegmentStage | undefined;
  private name = 'one';
  private kept: (() => Promise<void>) | undefined;
  private remembered: SegmentStage['record'];

  async run(command: string): Promise<string[]> {
    const [verb = '', ...words] = command.split(/\s+/);
    const before = this.stage?.lines.length ?? 0;
    await this.perform(verb, words);
    return this.stage?.lines.slice(before) ?? [];
  }

  private get world(): SegmentStage {
    if (this.stage === undefined) throw new Error('there is no remote yet');
    return this.stage;
  }

  private get process(): Process {
    return this.world.process(this.name);
  }

  private async perform(verb: string, words: readonly string[]): Promise<void> {
    const [first = '', second = ''] = words;
    switch (verb) {
      case 'source':
        this.source = { range: rangeOf(first) };
        return;
      case 'remote':
        return this.build(words);
      case 'options':
        for (const [name, value] of optionsIn(words)) this.options[name] = value === 'true' ? true : Number(value);
        if (this.stage !== undefined) this.stage.options = this.options;
        return;
      case 'take':
        await this.process.takeUp();
        return this.process.tell({ type: 'layout', layout: this.world.remoteLayout });
      case 'start':
        return this.process.start();
      case 'crash':
        return this.process.crash();
      case 'in':
        this.name = first;
        return;
      case 'entry':
      case 'encrypted':
      case 'damaged':
      case 'single':
      case 'chunk':
      case 'marker':
        return this.append(verb, words);
      case 'seal':
        this.world.source.isSealed = true;
        return this.world.sourceChanged();
      case 'rebuild':
        return this.world.source.rebuild(BigInt(first));
      case 'expire':
        this.world.source.acknowledged = parseSourcePosition(first);
        return;
      case 'layout':
        this.world.topic.change((layout) =>
          applyShape(layout, shape(words.filter((word) => word !== 'untold').join(' ')), { nowMs: START_MS }),
        );
        return words.includes('untold') ? this.layoutText() : this.tellLayout();
      case 'prune':
        this.world.topic.change((layout) => pruneSegment(layout, Number(first)));
        return this.tellLayout();
      case 'tell':
        return this.tellLayout();
      case 'hold':
        this.world.held.add(first as Kind);
        return;
      case 'let':
        return this.process.letGo(first as Kind);
      case 'arrives':
        return this.process.arrives(Number(first), second === 'unanswered');
      case 'result':
        return this.process.result(Number(first), resultOf(second, words[2]));
      case 'opened':
        return this.process.opened(
          Number(first),
          second === '' ? undefined : ({ type: second, reason: 'the story says so' } as OpenFailure),
        );
      case 'asked':
        return this.process.recovered(Number(first), second === '' ? undefined : 'the story says so');
      case 'written':
        return this.process.written(first === '' ? undefined : 'the story says so');
      case 'read':
        return this.process.endRead(first === '' ? undefined : 'the story says so');
      case 'granted':
        return this.process.granted();
      case 'translated':
        return this.process.translated();
      case 'keep':
        this.kept = this.process.takeRead();
        return;
      case 'the':
        return this.kept?.();
      case 'cut':
        return this.world.topic.disconnect();
      case 'trim':
        this.world.topic.trim(Number(first), parseSourcePosition(words[3] ?? ''));
        return;
      case 'push':
        this.world.topic.trim(Number(words[3]), parseSourcePosition(words[5] ?? ''), { force: true });
        return;
      case 'move':
        return this.world.remote.pin?.move(Number(words[3]), parseSourcePosition(words[5] ?? ''));
      case 'forget':
        this.world.source.acknowledged = undefined;
        return this.world.replaceRecord(undefined);
      case 'remember':
        this.remembered = this.world.record;
        return;
      case 'restore':
        this.world.source.acknowledged = this.remembered?.settled;
        return this.world.replaceRecord(this.remembered);
      case 'schema':
        this.world.schemas.set(
          first,
          second === 'incompatible'
            ? { type: 'incompatible', reason: `${first} cannot be read there` }
            : { type: 'translated', version: Buffer.from(second) },
        );
        return;
      case 'skip':
        return this.process.tell({ type: 'skip', position: parseSourcePosition(first) });
      case 'pause':
      case 'resume':
      case 'stop':
        return this.process.tell({ type: verb });
      case 'advance':
        return this.world.advance(milliseconds(first));
      case 'status':
        return this.status();
      case 'counters':
        return this.counters();
      case 'show':
        for (const line of storedText(this.world.topic)) this.world.say(line);
        return;
      default:
        throw new Error(`${verb}: no such command`);
    }
  }

  private build(words: readonly string[]): void {
    const max = optionsIn(words).get('max');
    const cells = shape(words.join(' ')).cells;
    const [buckets = 0, ...others] = cells.map(({ entryBucketSplits }) => entryBucketSplits.length + 1);
    if (others.some((other) => other !== buckets)) throw new Error('a remote begins with equal numbers of buckets');
    this.stage = new SegmentStage({
      source: this.source,
      layout: createLayout({
        boundaries: cells.slice(1).map(({ range }) => range.start),
        buckets,
        nowMs: START_MS,
      }),
      remote: {
        dedup: words.includes('readBack') ? 'readBack' : 'window',
        failStop: !words.includes('oneByOne'),
      },
      ...(max === undefined ? {} : { maxEntryBytes: Number(max) }),
      options: this.options,
    });
  }

  private async append(verb: string, words: readonly string[]): Promise<void> {
    const { source } = this.world;
    const times = words.find((word) => /^x\d+$/.test(word));
    const { nowMs } = this.world;
    const content = words.filter((word) => word !== times);
    for (let i = 0; i < Number(times?.slice(1) ?? 1); i++) {
      const at = source.append(encodeEntry(verb, content, nowMs));
      if (!this.process.isRunning) this.world.say(`the source has ${position(at)}`);
    }
    await this.world.sourceChanged();
  }

  private layoutText(): void {
    const { epoch, active, segments } = this.world.remoteLayout;
    const text = (segmentId: number, start: number, buckets: number) =>
      `${segmentId} from ${start.toString(16)}/${buckets}`;
    const sealed = [...segments.values()].filter(({ state }) => state === 'sealed').map(({ segmentId }) => segmentId);
    const parts = active.map((one) => text(one.segmentId, one.range.start, one.entryBucketSplits.length + 1));
    this.world.say(
      `the remote's epoch ${epoch}: ${parts.join(', ')}${sealed.length === 0 ? '' : `; sealed ${sealed.join(' ')}`}`,
    );
  }

  private async tellLayout(): Promise<void> {
    this.layoutText();
    for (const process of this.world.processes.values()) {
      if (process.isRunning) await process.tell({ type: 'layout', layout: this.world.remoteLayout });
    }
  }

  private status(): void {
    const { state, waitingFor, settled, unsettledEntries, held, lanes } = this.process.machine.report();
    const rest = state === 'drained' || (state === 'stopped' && waitingFor.for === 'nothing');
    this.world.say(rest ? state : `${state}, waits for ${waitText(waitingFor)}`);
    this.world.say(`settled up to ${position(settled)}, ${unsettledEntries} read and not settled`);
    if (held !== undefined) this.world.say(`holds ${position(held.position)}, ${held.reason}`);
    for (const { segmentId, state: lane, inFlight, queued, failure } of lanes) {
      const counts = `${inFlight} in flight, ${queued} queued`;
      this.world.say(`lane to ${segmentId}: ${lane}, ${counts}${failure === undefined ? '' : `; ${failure}`}`);
    }
  }

  private counters(): void {
    const parts = Object.entries(this.process.counters).flatMap(([name, value]) => {
      if (name.endsWith('Bytes')) return [];
      if (typeof value === 'number') return value === 0 ? [] : [`${name} ${value}`];
      return Object.entries(value as Record<string, number>).map(([kind, n]) => `${name} ${kind} ${n}`);
    });
    this.world.say(parts.join(', ') || 'nothing counted');
  }
}

function resultOf(type: string, hash = '0'): SendResult {
  const reason = 'the story says so';
  switch (type) {
    case 'stored':
    case 'duplicate':
    case 'gap':
      return { type };
    case 'partial':
      return { type, partial: Number.parseInt(hash, 16) };
    default:
      return { type: type as 'sealed', reason };
  }
}

function optionsIn(words: readonly string[]): ReadonlyMap<string, string> {
  return new Map(words.flatMap((word) => (word.includes('=') ? [word.split('=') as [string, string]] : [])));
}

function rangeOf(text: string): { start: number; end: number } {
  const [start = '0', end = 'ffff'] = text.split('-');
  return { start: Number.parseInt(start, 16), end: Number.parseInt(end, 16) };
}

function milliseconds(text: string): number {
  const [, amount = '0', unit = 's'] = /^(\d+)(ms|s|m|h)$/.exec(text) ?? [];
  return Number(amount) * ({ ms: 1, s: 1000, m: 60_000, h: 3_600_000 }[unit] ?? 1);
}
