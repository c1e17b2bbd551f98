/** What a topic in memory does beyond the suites of its ports: trimming, cuts, barriers, subscriptions, and its hosts' limits. */
import {
  createLayout,
  encodeMessage,
  formatSourcePosition,
  mergeSegments,
  parseEntry,
  parseSourcePosition,
  pruneSegment,
  type SourcePosition,
  splitSegment,
} from 'isthmus';
import { BARRIER_MARKER_TYPE, type MemoryRemoteOptions, MemoryTopic } from 'isthmus/adapters/memory';
import { describe, expect, it } from 'vitest';
import type { RemoteProducer, RemoteTopic, Send, SendResult } from '../../src/ports/index.js';
import { refusal } from '../support/expect.js';
import { newTopic } from '../support/memory-suites.js';

const nowMs = 1_700_000_000_000;
const at = parseSourcePosition;

const entry = (body: string) =>
  encodeMessage(new TextEncoder().encode(body), { outer: { producerName: 'p', sequenceId: 0n, publishTimeMs: nowMs } });

/** A send whose body is its position. */
const sendOf = (position: string, after?: string, size?: number): Send => ({
  position: at(position),
  previous: after === undefined ? undefined : at(after),
  lowestHash: undefined,
  buffers: entry(size === undefined ? position : 'x'.repeat(size)),
});

const bodies = (entries: readonly { readonly bytes: Uint8Array }[]) =>
  entries.map(({ bytes }) => new TextDecoder().decode(parseEntry(bytes).payload)).join(' ');
const textOf = (position: SourcePosition | undefined) => position && formatSourcePosition(position);

/** A topic with entries `0:0` to `0:3` in segment 0, whose bodies are their positions. */
function filled(): MemoryTopic {
  const topic = newTopic();
  for (let i = 0; i < 4; i++) topic.append(0, entry(`0:${i}`));
  return topic;
}

interface Lane {
  readonly producer: RemoteProducer;
  readonly results: SendResult[];
}

async function open(remote: RemoteTopic, segmentId = 0): Promise<Lane> {
  const results: SendResult[] = [];
  const opened = await remote.open(5, segmentId, (result) => results.push(result));
  if (opened.type !== 'opened') throw new Error(opened.type);
  return { producer: opened.producer, results };
}

const typesOf = (results: readonly SendResult[]) => results.map(({ type }) => type).join(' ');
const limits = () => ({ maxEntries: 10, maxBytes: 10_000, signal: new AbortController().signal });

describe('trimming', () => {
  it('drops what nobody needs any more, and reads begin behind it', async () => {
    const topic = filled();
    expect(topic.trim(0, at('0:1'))).toBe(2);
    expect(topic.trim(0, at('0:1'))).toBe(0);
    expect(bodies(topic.entries(0))).toBe('0:2 0:3');
    const source = topic.source('b');
    const { entries } = await source.read(0, undefined, limits());
    expect(bodies(entries)).toBe('0:2 0:3');
    expect(bodies((await source.read(0, at('0:0'), limits())).entries)).toBe('0:2 0:3');
    expect(bodies((await source.read(0, at('0:2'), limits())).entries)).toBe('0:3');
    expect(textOf(await source.lastPosition(0))).toBe('0:3');
    topic.append(0, entry('0:4'));
    expect(bodies((await source.read(0, at('0:3'), limits())).entries)).toBe('0:4');
  });

  it.each<[string, (topic: MemoryTopic) => void]>([
    ['a replication cursor', (topic) => void topic.source('b').acknowledge(0, at('0:0'))],
    ['a pin', (topic) => void topic.remote('b', { dedup: 'readBack' }).pin?.move(0, at('0:0'))],
    [
      'a subscription',
      (topic) => {
        topic.subscribe('s');
        topic.consume('s', 0, at('0:0'));
      },
    ],
  ])('stops at %s, unless it is forced', (_, hold) => {
    const topic = filled();
    hold(topic);
    expect(topic.trim(0, at('0:2'))).toBe(1);
    expect(topic.trim(0, at('0:2'), { force: true })).toBe(2);
    expect(bodies(topic.entries(0))).toBe('0:3');
  });

  it('by force takes cursors, pins and subscriptions along (R15)', async () => {
    const topic = filled();
    const source = topic.source('b');
    const { pin } = topic.remote('b', { dedup: 'readBack' });
    topic.subscribe('s');
    topic.trim(0, at('0:1'), { force: true });
    expect(textOf(await source.acknowledged(0))).toBe('0:1');
    expect(textOf(await pin?.position(0))).toBe('0:1');
    expect(await topic.backlogQuery().backlog(0, 's')).toBe(2);
    expect(topic.backlog(0, 'b')).toBe(2);
    // Nothing is trimmed that was never there.
    topic.trim(0, at('0:99'), { force: true });
    expect(textOf(await source.acknowledged(0))).toBe('0:3');
  });

  it('is held back no longer by a remote that has left, or a subscription that is gone', async () => {
    const topic = filled();
    const source = topic.source('b');
    topic.subscribe('s');
    await source.release();
    topic.unsubscribe('s');
    expect(topic.trim(0, at('0:3'))).toBe(4);
    // What a replicator that has not stopped yet acknowledges brings nothing back.
    await source.acknowledge(0, at('0:3'));
    expect(await source.acknowledged(0)).toBeUndefined();
  });

  it('in the middle of a read-back makes it reject: it would not know what it has not seen', async () => {
    const topic = newTopic();
    for (let i = 0; i < 250; i++) topic.append(0, entry(`${i}`));
    const remote = topic.remote('b', { dedup: 'readBack' });
    const range = { after: undefined, through: at('0:249') };
    const pieces = remote.readBack(0, range, new AbortController().signal)[Symbol.asyncIterator]();
    expect((await pieces.next()).done).toBe(false);
    topic.trim(0, at('0:200'), { force: true });
    await expect(pieces.next()).rejects.toThrow('trimmed');
  });
});

describe('a cut connection', () => {
  it('makes sends ambiguous and gives the names back, of one source cluster or of all (R14)', async () => {
    const topic = newTopic();
    const lanes = await Promise.all([open(topic.remote('b')), open(topic.remote('c'))]);
    topic.disconnect('b');
    for (const { producer } of lanes) producer.send(sendOf('7:1'));
    expect(lanes.map(({ results }) => typesOf(results))).toEqual(['ambiguous', 'stored']);
    const next = await open(topic.remote('b'));
    topic.disconnect();
    for (const { producer } of [...lanes, next]) producer.send(sendOf('7:2'));
    expect(typesOf(next.results)).toBe('ambiguous');
    expect(lanes.map(({ results }) => typesOf(results))).toEqual(['ambiguous ambiguous', 'stored ambiguous']);
    expect(bodies(topic.entries(0))).toBe('7:1');
  });

  it('turns results that were not told yet into ambiguous ones, although the entries are stored', async () => {
    const topic = newTopic();
    const results: string[] = [];
    const opened = await topic.remote('b').open(5, 0, ({ type }) => {
      results.push(type);
      if (results.length > 1 || opened.type !== 'opened') return;
      opened.producer.send(sendOf('7:2', '7:1'));
      topic.disconnect();
    });
    if (opened.type === 'opened') opened.producer.send(sendOf('7:1'));
    expect(results).toEqual(['stored', 'ambiguous']);
    expect(bodies(topic.entries(0))).toBe('7:1 7:2');
  });
});

describe('a producer', () => {
  it('takes sends from within a result, tells theirs behind it, and needs no stack for that', async () => {
    const topic = newTopic();
    const told: number[] = [];
    let isTelling = false;
    const opened = await topic.remote('b').open(5, 0, () => {
      expect(isTelling).toBe(false);
      isTelling = true;
      told.push(told.length);
      if (told.length < 20_000 && opened.type === 'opened') opened.producer.send(sendOf(`7:${told.length}`));
      isTelling = false;
    });
    if (opened.type === 'opened') opened.producer.send(sendOf('7:0'));
    expect(told).toHaveLength(20_000);
    expect(topic.entries(0)).toHaveLength(20_000);
  });

  it('that is read back, with fail-stop: behind a failure there is a gap until the lane begins anew (R12b)', async () => {
    const topic = newTopic();
    const { producer, results } = await open(topic.remote('b', { dedup: 'readBack' }));
    for (const send of [sendOf('7:1'), sendOf('7:2', '7:1', 2_000), sendOf('7:3', '7:2'), sendOf('7:4', '7:3')]) {
      producer.send(send);
    }
    // The refused one is nobody's previous any more; or the lane names none at all.
    producer.send(sendOf('7:3', '7:1'));
    producer.send(sendOf('7:4', '7:3', 2_000));
    producer.send(sendOf('7:5'));
    expect(typesOf(results)).toBe('stored tooLarge gap gap stored tooLarge stored');
    expect(bodies(topic.entries(0))).toBe('7:1 7:3 7:5');
  });

  it('that is read back stores what comes, twice as well; without fail-stop also behind a failure', async () => {
    const topic = newTopic();
    const { producer, results } = await open(topic.remote('b', { dedup: 'readBack', failStop: false }));
    for (const send of [sendOf('7:1'), sendOf('7:1'), sendOf('7:2', '7:1', 2_000), sendOf('7:3', '7:2')]) {
      producer.send(send);
    }
    expect(typesOf(results)).toBe('stored stored tooLarge stored');
    expect(bodies(topic.entries(0))).toBe('7:1 7:1 7:3');
  });

  it('tells nothing and stores nothing once it is closed', async () => {
    const topic = newTopic();
    const { producer, results } = await open(topic.remote('b'));
    await producer.close();
    producer.send(sendOf('7:1'));
    expect(results).toEqual([]);
    expect(topic.entries(0)).toEqual([]);
  });

  it('fails all sends to a segment that is sealed behind the record already', async () => {
    const topic = newTopic();
    const { producer, results } = await open(topic.remote('b'));
    await topic.layoutHost().segments.seal([0]);
    for (const send of [sendOf('7:1'), sendOf('7:2', '7:1')]) producer.send(send);
    expect(typesOf(results)).toBe('sealed sealed');
    expect(topic.append(0, entry('x'))).toBe('sealed');
    // A layout that still calls it active, of a controller that came too late, does not open it again.
    topic.change((layout) => splitSegment(layout, 1, { nowMs }));
    expect(topic.append(0, entry('x'))).toBe('sealed');
  });

  it('cannot be opened where a segment is not in the layout yet, nor where it is not any more', async () => {
    const topic = newTopic();
    const next = splitSegment(topic.layout, 0, { nowMs });
    await topic.layoutHost().segments.create(next.active);
    expect((await topic.remote('b').open(5, 2, () => undefined)).type).toBe('unavailable');
    topic.change(() => pruneSegment(next, 0));
    expect((await topic.remote('b').open(5, 2, () => undefined)).type).toBe('opened');
    expect((await topic.remote('b').open(5, 0, () => undefined)).type).toBe('sealed');
  });
});

describe('a barrier', () => {
  it('is a marker among the entries, and counts for no backlog', async () => {
    const topic = filled();
    topic.subscribe('s');
    topic.source('c');
    const { producer } = await open(topic.remote('b', { dedup: 'readBack' }));
    expect(textOf(await producer.barrier())).toBe('0:4');
    const markers = topic.entries(0).map(({ bytes }) => parseEntry(bytes).metadata.markerType);
    expect(markers).toEqual([undefined, undefined, undefined, undefined, BARRIER_MARKER_TYPE]);
    expect(await topic.backlogQuery().backlog(0, 's')).toBe(4);
    expect(topic.backlog(0, 'c')).toBe(4);
    topic.consume('s', 0, at('0:3'));
    expect(await topic.backlogQuery().backlog(0, 's')).toBe(0);
  });

  it.each<[string, MemoryRemoteOptions, (topic: MemoryTopic, producer: RemoteProducer) => unknown]>([
    ['with a window', {}, () => undefined],
    ['over a cut connection', { dedup: 'readBack' }, (topic) => topic.disconnect()],
    ['of a closed producer', { dedup: 'readBack' }, (_, producer) => producer.close()],
    [
      'in a sealed segment',
      { dedup: 'readBack' },
      (topic) => topic.change((layout) => splitSegment(layout, 0, { nowMs })),
    ],
  ])('is refused %s', async (_, options, before) => {
    const topic = newTopic();
    const { producer } = await open(topic.remote('b', options));
    await before(topic, producer);
    await expect(producer.barrier()).rejects.toThrow();
    expect(topic.entries(0)).toEqual([]);
  });
});

describe('a form of remote', () => {
  it('has nothing of the other', async () => {
    const topic = filled();
    const [window, readBack] = [topic.remote('b'), topic.remote('b', { dedup: 'readBack' })];
    expect(window.pin).toBeUndefined();
    expect(window.supports).toEqual({ dedup: 'window', failStop: true });
    expect(await readBack.watermark(5, 0)).toMatchObject({ type: 'unsupported' });
    const range = { after: undefined, through: 'end' } as const;
    const { signal } = new AbortController();
    const read = async (remote: RemoteTopic) => {
      for await (const _ of remote.readBack(0, range, signal)) break;
    };
    await expect(read(window)).rejects.toThrow('windows');
    // It has no final end, and nobody waits for one that may never come.
    await expect(read(readBack)).rejects.toThrow('not sealed');
  });
});

describe('subscriptions', () => {
  it('are those of consumers, and pins; the cursors of replication are not among them', async () => {
    const topic = filled();
    topic.subscribe('s');
    topic.source('b');
    topic.remote('b', { dedup: 'readBack' });
    const query = topic.backlogQuery();
    expect(await query.subscriptions()).toEqual(['s', 'isthmus.b']);
    expect([await query.backlog(0, 's'), await query.backlog(1, 's')]).toEqual([4, 0]);
    topic.consume('s', 0);
    expect(await query.backlog(0, 's')).toBe(0);
    topic.append(0, entry('more'));
    expect(await query.backlog(0, 's')).toBe(1);
    topic.unsubscribe('s');
    expect(await query.subscriptions()).toEqual(['isthmus.b']);
    await expect(query.backlog(9, 's')).rejects.toThrow('no such segment');
  });

  it('have names of their own', () => {
    const topic = newTopic();
    topic.source('b');
    topic.subscribe('s');
    topic.subscribe('s');
    expect(refusal(() => topic.subscribe('pulsar.repl.b'))).toBe('invalidArgument');
    expect(refusal(() => topic.consume('pulsar.repl.b', 0))).toBe('invalidArgument');
    expect(refusal(() => topic.unsubscribe('t'))).toBe('invalidArgument');
  });

  it('of one remote are shared by all its replicators, and each remote has its own', async () => {
    const topic = filled();
    await topic.source('b').acknowledge(0, at('0:2'));
    expect(textOf(await topic.source('b').acknowledged(0))).toBe('0:2');
    expect(await topic.source('c').acknowledged(0)).toBeUndefined();
    expect([topic.backlog(0, 'b'), topic.backlog(0, 'c')]).toEqual([1, 4]);
  });
});

describe('pruning', () => {
  it('drops the entries; a late acknowledgement is no error, a read is', async () => {
    const topic = filled();
    const source = topic.source('b');
    topic.change((layout) => splitSegment(layout, 0, { nowMs }));
    topic.change((layout) => pruneSegment(layout, 0));
    expect(refusal(() => topic.entries(0))).toBe('invalidArgument');
    await source.acknowledge(0, at('0:3'));
    await expect(source.read(0, undefined, limits())).rejects.toThrow('no such segment');
  });

  it('ends a read that waits with what it has', async () => {
    const topic = newTopic();
    const waiting = topic.source('b').read(0, undefined, limits());
    topic.append(0, entry('last'));
    topic.change((layout) => pruneSegment(splitSegment(layout, 0, { nowMs }), 0));
    const { entries, ended } = await waiting;
    expect([bodies(entries), ended]).toEqual(['last', true]);
  });
});

describe('windows', () => {
  it('R13: pass through several changes made at once', async () => {
    const topic = newTopic();
    const { producer } = await open(topic.remote('b'));
    producer.send(sendOf('7:3'));
    topic.change((layout) => {
      const split = splitSegment(layout, 0, { nowMs });
      const [left, right] = split.active.filter(({ parentIds }) => parentIds.includes(0));
      return mergeSegments(split, left?.segmentId ?? -1, right?.segmentId ?? -1, { nowMs });
    });
    const merged = topic.layout.active.find(({ segmentId }) => segmentId > 1)?.segmentId ?? -1;
    expect(await topic.remote('b').watermark(5, merged)).toEqual({ type: 'known', watermark: at('7:3') });
  });
});

describe('a host that performs operations', () => {
  const layout = () => createLayout({ segments: 2, buckets: 4, nowMs });

  it.each([
    ['a rebucket', { type: 'rebucket', segmentId: 0, buckets: 9 }],
    ['a merge whose buckets add up', { type: 'merge', leftId: 0, rightId: 1 }],
  ] as const)('refuses %s beyond its limit, and changes nothing', async (_, operation) => {
    const topic = new MemoryTopic({ cluster: 'a', layout: layout() });
    const before = topic.layout;
    const limit = operation.type === 'merge' ? 7 : 8;
    const result = await topic.planningHost(limit).segments.perform(operation);
    expect(result).toMatchObject({ type: 'failed', reason: expect.stringContaining(`the limit is ${limit}`) });
    expect(topic.layout).toBe(before);
  });

  it('performs what keeps to the limit, also beside a segment that is beyond it already', async () => {
    const topic = new MemoryTopic({ cluster: 'a', layout: layout() });
    const host = topic.planningHost(8);
    expect(host.segments.supports.maxBuckets).toBe(8);
    expect((await host.segments.perform({ type: 'rebucket', segmentId: 0, buckets: 8 })).type).toBe('performed');
    const tighter = topic.planningHost(2);
    expect((await tighter.segments.perform({ type: 'split', segmentId: 1 })).type).toBe('performed');
  });
});
