/**
 * One segment under any schedule: answers that are late, lost or failures, layouts that change under way and are told
 * late, processes that die anywhere, pauses. Whatever happens, in the end everything is on the remote, each key in its
 * order, chunks together, and twice only where R13 lets it; and at every moment something is outstanding.
 */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseEntry, readBatch } from '../../src/entry/index.js';
import { applyShape, createLayout } from '../../src/layout/index.js';
import type { SegmentOptions } from '../../src/replication/index.js';
import { shape } from '../convergence/shorthand.js';
import { codecs } from '../support/codecs.js';
import { batch, message, single } from '../support/rebatch.js';
import { type Kind, type Process, SegmentStage, START_MS } from '../support/segment-stage.js';
import { keyAt } from '../support/stage-text.js';

const KEYS = ['0.1', '2.7', '2.b', '5.8', '7.e', '9.1', 'c.6'].map((place) => keyAt(place) as string);
const SHAPES = ['0/1', '0/2', '0/1 8000/1', '0/2 8000/1', '0/1 4000/2 8000/1', '0/1 4000/1 8000/1 c000/2'];
const KINDS: readonly Kind[] = ['reads', 'opens', 'writes', 'recoveries', 'grants'];

type Action =
  | { readonly do: 'batch'; readonly keys: readonly number[] }
  | { readonly do: 'single'; readonly key: number }
  | { readonly do: 'chunk'; readonly key: number }
  | { readonly do: 'answer' | 'lose'; readonly lane: number }
  | { readonly do: 'fail'; readonly lane: number; readonly type: 'unavailable' | 'throttled' | 'fenced' | 'ambiguous' }
  | { readonly do: 'layout'; readonly shape: number }
  | { readonly do: 'hold' | 'letGo'; readonly kind: Kind }
  | { readonly do: 'wait'; readonly ms: number }
  | { readonly do: 'tell' | 'crash' | 'pause' | 'resume' };

const key = fc.nat({ max: KEYS.length - 1 });
const lane = fc.nat({ max: 3 });
const ACTION: fc.Arbitrary<Action> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({ do: fc.constant('batch' as const), keys: fc.array(key, { minLength: 1, maxLength: 4 }) }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('single' as const), key }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('chunk' as const), key }) },
  { weight: 9, arbitrary: fc.record({ do: fc.constant('answer' as const), lane }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('lose' as const), lane }) },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant('fail' as const),
      lane,
      type: fc.constantFrom('unavailable', 'throttled', 'fenced', 'ambiguous'),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({ do: fc.constant('layout' as const), shape: fc.nat({ max: SHAPES.length - 1 }) }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constantFrom('hold', 'letGo'), kind: fc.constantFrom(...KINDS) }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('wait' as const), ms: fc.constantFrom(100, 400, 5_000) }) },
  { weight: 4, arbitrary: fc.record({ do: fc.constant('tell' as const) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constantFrom('crash', 'pause', 'resume') }) },
);

const OPTIONS: SegmentOptions = { codecs, windowEntries: 4, maxReadEntries: 2 };

/** A source segment, a remote, and what was produced. */
class Play {
  readonly stage: SegmentStage;
  readonly process: Process;
  /** The bodies of each key, and the chunks of each message, as they were produced. */
  readonly produced = new Map<string, string[]>();
  private bodies = 0;
  private chunks = { message: 0, next: 0 };
  /** R13: a merge, or a seal inside a chunked message, may store twice after a crash or an answer that did not come. */
  isInDoubt = false;
  hasMerged = false;

  constructor(dedup: 'window' | 'readBack', failStop: boolean) {
    const layout = createLayout({ segments: 2, buckets: 1, nowMs: START_MS });
    this.stage = new SegmentStage({ layout, remote: { dedup, failStop }, options: OPTIONS });
    this.process = this.stage.process('one');
    this.stage.held.add('sends');
  }

  async act(action: Action): Promise<void> {
    const { stage, process } = this;
    switch (action.do) {
      case 'batch':
        return this.append(
          batch(action.keys.map((index) => message(KEYS[index], this.body(KEYS[index] as string)))).bytes,
        );
      case 'single': {
        const partitionKey = KEYS[action.key] as string;
        return this.append(single({ partitionKey }, { body: this.body(partitionKey) }).bytes);
      }
      case 'chunk':
        return this.append(this.chunk(KEYS[action.key] as string));
      case 'answer':
      case 'lose':
      case 'fail': {
        const waiting = process.waitingSends;
        const segmentId = waiting[action.lane % Math.max(1, waiting.length)];
        if (segmentId === undefined) return;
        this.isInDoubt ||= action.do !== 'answer';
        if (action.do === 'fail') return process.result(segmentId, { type: action.type, reason: 'so it is' });
        return process.arrives(segmentId, action.do === 'lose');
      }
      case 'layout': {
        const before = stage.topic.layout;
        stage.topic.change((layout) => applyShape(layout, shape(SHAPES[action.shape] as string), { nowMs: START_MS }));
        const born = stage.topic.layout.active.filter(({ segmentId }) => !before.segments.has(segmentId));
        this.hasMerged ||= born.some(({ parentIds }) => parentIds.length > 1);
        return;
      }
      case 'tell':
        return process.tell({ type: 'layout', layout: stage.remoteLayout });
      case 'hold':
        stage.held.add(action.kind);
        return;
      case 'letGo':
        return process.letGo(action.kind);
      case 'wait':
        return stage.advance(action.ms);
      case 'crash':
        this.isInDoubt = true;
        await process.crash();
        return process.start();
      case 'pause':
      case 'resume':
        return process.tell({ type: action.do });
    }
  }

  private body(of: string): string {
    const body = `${this.bodies++}`;
    this.produced.set(of, [...(this.produced.get(of) ?? []), body]);
    return body;
  }

  /** The next chunk of three; all of one message have the key of the first. */
  private chunk(partitionKey: string): Uint8Array {
    const { message: number, next } = this.chunks;
    this.chunks = next === 2 ? { message: number + 1, next: 0 } : { message: number, next: next + 1 };
    const chunk = { uuid: `m${number}`, chunkId: next, numChunks: 3, totalSize: 12 };
    return single({ partitionKey: KEYS[number % KEYS.length] ?? partitionKey, chunk }).bytes;
  }

  private async append(bytes: Uint8Array): Promise<void> {
    this.stage.source.append(bytes);
    await this.stage.sourceChanged();
  }

  /** All that was begun is ended, and nothing fails any more. */
  async end(): Promise<void> {
    const { stage, process } = this;
    while (this.chunks.next !== 0) await this.append(this.chunk(''));
    await process.tell({ type: 'resume' });
    stage.held.clear();
    for (const kind of [...KINDS, 'sends'] as const) await process.letGo(kind);
    await process.tell({ type: 'layout', layout: stage.remoteLayout });
    for (let i = 0; i < 20; i++) await stage.advance(30_000);
  }
}

/** What the remote has of each key in order, repeats left out and counted; and the segments that have a whole chunked message. */
function consumed({ topic }: SegmentStage): { keys: Map<string, string[]>; repeats: number; whole: Set<string> } {
  const keys = new Map<string, string[]>();
  const whole = new Set<string>();
  let repeats = 0;
  for (const segmentId of [...topic.layout.segments.keys()].sort((a, b) => a - b)) {
    const chunks = new Map<string, number>();
    for (const { bytes } of topic.entries(segmentId)) {
      const entry = parseEntry(bytes);
      const { metadata } = entry;
      if (metadata.markerType !== undefined) continue;
      if (metadata.chunk !== undefined) {
        const { uuid, chunkId } = metadata.chunk;
        const next = chunks.get(uuid) ?? 0;
        if (next === chunkId) chunks.set(uuid, next + 1);
        if (next === 2 && chunkId === 2) whole.add(uuid);
        continue;
      }
      const messages =
        metadata.numMessagesInBatch === undefined
          ? [{ partitionKey: metadata.partitionKey, payload: entry.payload }]
          : readBatch(entry, codecs);
      for (const { partitionKey = '', payload } of messages) {
        const list = keys.get(partitionKey) ?? [];
        const body = Buffer.from(payload).toString();
        if (list.includes(body)) repeats++;
        else list.push(body);
        keys.set(partitionKey, list);
      }
    }
  }
  return { keys, repeats, whole };
}

describe('R5, R6, R12, R13, R15: any schedule', () => {
  const remotes = [
    ['a window', 'window', true],
    ['a window, one send at a time', 'window', false],
    ['reading back', 'readBack', true],
  ] as const;
  it.each(remotes)(
    '%s: no loss, order by key, chunks together, no needless duplicate, progress',
    async (_name, dedup, failStop) => {
      await fc.assert(
        fc.asyncProperty(fc.array(ACTION, { maxLength: 60 }), async (actions) => {
          const play = new Play(dedup, failStop);
          await play.process.start();
          for (const action of actions) await play.act(action);
          await play.end();
          const { stage, process } = play;
          expect(process.machine.report(), stage.lines.join('\n')).toMatchObject({
            waitingFor: { for: 'entries' },
            unsettledEntries: 0,
          });
          const { keys, repeats, whole } = consumed(stage);
          expect(keys, stage.lines.join('\n')).toEqual(play.produced);
          const messages = new Set(
            stage.source.entries.flatMap(({ bytes }) => parseEntry(bytes).metadata.chunk?.uuid ?? []),
          );
          expect(whole, stage.lines.join('\n')).toEqual(messages);
          const mayRepeat = dedup === 'window' && play.isInDoubt && (play.hasMerged || messages.size > 0);
          if (!mayRepeat) expect(repeats, stage.lines.join('\n')).toBe(0);
          expect(stage.source.acknowledged).toEqual(stage.source.lastPosition);
        }),
        { numRuns: 150 },
      );
    },
  );
});
