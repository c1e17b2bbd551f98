/** The source against a broker in memory: the acceptance suite, seals and markers, going back, claims and shares. */
import { createLayout, encodeMessage, type Layout, type SourcePosition, splitSegment } from 'isthmus';
import { testEntrySource } from 'isthmus/testing';
import { describe, expect, it } from 'vitest';
import type { PulsarClient } from '../../../src/adapters/pulsar/protocol/index.js';
import {
  type PulsarSource,
  type PulsarSourceOptions,
  pulsarSource,
  type SourceSubscriptions,
} from '../../../src/adapters/pulsar/source/index.js';
import type { Members } from '../../../src/adapters/pulsar/state/index.js';
import { joinBuffers } from '../../../src/entry/index.js';
import { Notifier } from '../../../src/notifier.js';
import type { Clock } from '../../../src/ports/index.js';
import { MemoryBroker } from './memory-broker.js';

const SUBSCRIPTION = 'isthmus.b';
const hex = (hash: number) => hash.toString(16).padStart(4, '0');

/** A scalable topic on a broker in memory. */
class Topic {
  readonly broker = new MemoryBroker();
  readonly changed = new Notifier();
  readonly deleted: (readonly string[])[] = [];
  layout: Layout;

  constructor(segments = 2) {
    this.layout = createLayout({ segments, nowMs: 1 });
    for (const { segmentId } of this.layout.active) this.broker.create(this.topic(segmentId));
  }

  topic(segmentId: number): string {
    const { start = 0, end = 0 } = this.layout.segments.get(segmentId)?.range ?? {};
    return `segment://public/default/x/${hex(start)}-${hex(end)}-${segmentId}`;
  }

  split(segmentId: number): void {
    const before = this.layout;
    this.layout = splitSegment(before, segmentId, { nowMs: 2 });
    for (const { segmentId: id } of this.layout.active) {
      this.broker.create(this.topic(id));
      if (!before.segments.has(id)) this.broker.subscribe(this.topic(id), SUBSCRIPTION);
    }
    this.broker.seal(this.topic(segmentId));
    this.changed.wake();
  }

  append(segmentId: number, count: number, markerType?: number): void {
    for (let i = 0; i < count; i++) {
      const outer = { producerName: 'p', sequenceId: BigInt(i), publishTimeMs: 1, markerType };
      this.broker.append(this.topic(segmentId), joinBuffers(encodeMessage(Uint8Array.of(i), { outer })));
    }
  }

  backlog(segmentId: number): number {
    return this.broker.backlog(this.topic(segmentId), SUBSCRIPTION);
  }

  source(options: Partial<PulsarSourceOptions> = {}): PulsarSource {
    const topics = () => [...this.layout.segments.keys()].map((id) => this.topic(id));
    const subscriptions: SourceSubscriptions = {
      ensureSubscription: async (name) => {
        const results = topics().map((topic) => this.broker.subscribe(topic, name));
        return results.includes('created') ? 'created' : 'existed';
      },
      skipAll: async (name) => {
        for (const topic of topics()) this.broker.skipAll(topic, name);
      },
      deleteSubscription: async (name, legacy) => {
        this.deleted.push(legacy);
        for (const topic of topics()) this.broker.unsubscribe(topic, name);
      },
      backlog: async (name, segmentId) => this.broker.backlog(this.topic(segmentId), name),
    };
    return pulsarSource({
      ...{ client: this.broker.client(), cluster: 'a', topic: 'topic://public/default/x', subscription: SUBSCRIPTION },
      subscriptions,
      layouts: { load: async () => this.layout, watch: (signal) => this.watch(signal) },
      ...options,
    });
  }

  private async *watch(signal: AbortSignal): AsyncGenerator<Layout, void, undefined> {
    while (!signal.aborted) {
      yield this.layout;
      await this.changed.changed(signal).catch(() => undefined);
    }
  }
}

const { signal } = new AbortController();
const PLENTY = { maxEntries: 1_000, maxBytes: 1_000_000, signal };

async function readTo(source: PulsarSource, segmentId: number, count: number): Promise<SourcePosition[]> {
  const all: SourcePosition[] = [];
  while (all.length < count) {
    const { entries, ended } = await source.read(segmentId, all.at(-1), PLENTY);
    all.push(...entries.map(({ position }) => position));
    if (ended) break;
  }
  return all;
}

/** A clock whose sleeps end at once and are noted. */
function hurriedClock(): { readonly clock: Clock; readonly slept: number[] } {
  const slept: number[] = [];
  const sleep = (ms: number, aborted: AbortSignal) => {
    slept.push(ms);
    return new Promise<void>((resolve, reject) => {
      aborted.addEventListener('abort', () => reject(aborted.reason), { once: true });
      setTimeout(resolve, 5);
    });
  };
  return { clock: { now: () => Date.now(), sleep }, slept };
}

describe('the acceptance suite', () => {
  testEntrySource(() => {
    const topic = new Topic();
    const source = topic.source();
    return {
      source,
      append: (segmentId, count) => topic.append(segmentId, count),
      split: (segmentId) => topic.split(segmentId),
      teardown: () => source.close(),
    };
  }, it);
});

describe('the subscription', () => {
  it('is made on the topic before a layout is told, and begins with what comes where it is new and was told to', async () => {
    const topic = new Topic();
    topic.append(0, 3);
    for (const expected of [0, 2]) {
      const source = topic.source({ startAt: 'latest' });
      for await (const _ of source.layouts(signal)) break;
      expect(topic.backlog(0)).toBe(expected);
      await source.close();
      topic.append(0, 2);
    }
  });

  it('is given up with everything that hangs on it', async () => {
    const topic = new Topic();
    const source = topic.source();
    topic.append(0, 1);
    await readTo(source, 0, 1);
    await source.release();
    expect(topic.deleted).toEqual([[]]);
    await expect(source.read(0, undefined, PLENTY)).rejects.toThrow(/given up/);
  });

  it.each(['', 'pulsar.repl.b'])('is not called %j', (subscription) => {
    expect(() => new Topic().source({ subscription })).toThrow(/subscription/);
  });
});

describe('markers', () => {
  it('at the end of a sealed segment, or alone in it, are no backlog', async () => {
    const topic = new Topic();
    const source = topic.source();
    topic.append(0, 2);
    topic.append(0, 2, 1000);
    topic.append(1, 3, 1000);
    topic.split(0);
    topic.split(1);
    const [, last] = await readTo(source, 0, 3);
    if (last !== undefined) await source.acknowledge(0, last);
    expect(await source.read(1, undefined, PLENTY)).toEqual({ entries: [], ended: true });
    expect([topic.backlog(0), topic.backlog(1)]).toEqual([0, 0]);
  });

  it('behind entries that are not settled are not acknowledged', async () => {
    const topic = new Topic();
    const source = topic.source();
    topic.append(0, 3);
    topic.append(0, 1, 1000);
    const [first] = await readTo(source, 0, 3);
    if (first !== undefined) await source.acknowledge(0, first);
    expect(topic.backlog(0)).toBe(3);
    // Nor where they have not been read.
    topic.append(1, 2);
    topic.append(1, 1, 1000);
    const [begin] = await readTo(source, 1, 1);
    if (begin !== undefined) await source.acknowledge(1, begin);
    expect(topic.backlog(1)).toBe(2);
  });
});

describe('reading', () => {
  it('goes on after a cut, with the hold and the reader anew', async () => {
    const topic = new Topic();
    const client = topic.broker.client();
    const source = topic.source({ client });
    topic.append(0, 4);
    const all = await readTo(source, 0, 4);
    const waiting = source.read(0, all.at(-1), PLENTY);
    await new Promise((resolve) => setTimeout(resolve, 20));
    topic.broker.cut(client);
    await expect(waiting).rejects.toThrow();
    topic.append(0, 1);
    const { entries } = await source.read(0, all.at(-1), PLENTY);
    expect(entries.length).toBe(1);
  });

  it('lies ahead in bounds of messages and bytes', async () => {
    const topic = new Topic();
    let granted = 0;
    const client = counting(topic.broker.client(), (permits) => {
      granted += permits;
    });
    const source = topic.source({ client, flowMessages: 10, bufferBytes: 400 });
    topic.append(0, 200);
    const { entries } = await source.read(0, undefined, { ...PLENTY, maxEntries: 1 });
    await new Promise((resolve) => setTimeout(resolve, 20));
    expect(granted).toBeLessThan(20);
    const rest = await readTo(source, 0, 200);
    expect(rest[0]).toEqual(entries[0]?.position);
    expect(rest.length).toBe(200);
  });
});

/** Hears of every grant. */
function counting(client: PulsarClient, onFlow: (permits: number) => void): PulsarClient {
  return {
    ...client,
    async subscribe(options, events) {
      const result = await client.subscribe(options, events);
      if (result.type !== 'subscribed') return result;
      const { consumer } = result;
      const flow = consumer.flow.bind(consumer);
      consumer.flow = (permits) => {
        onFlow(permits);
        flow(permits);
      };
      return result;
    },
  };
}

describe('claims', () => {
  it('are tried with a growing pause while another process has the segment, and other refusals are told', async () => {
    const topic = new Topic();
    const other = topic.source();
    const held = await other.claim(0, signal);
    const { clock, slept } = hurriedClock();
    const refusals: string[] = [];
    const source = topic.source({ clock, onRefused: (id, reason) => refusals.push(`${id}: ${reason}`) });
    const claiming = source.claim(0, signal);
    await expect.poll(() => slept.length).toBeGreaterThan(5);
    expect(slept.slice(0, 6)).toEqual([1_000, 2_000, 4_000, 8_000, 10_000, 10_000]);
    expect(refusals).toEqual([]);
    topic.broker.refusals.push({ type: 'refused', code: 4, message: 'not allowed' });
    await expect.poll(() => refusals).toEqual(['0: not allowed (error 4)']);
    await held.release();
    const claim = await claiming;
    topic.append(0, 1);
    expect((await readTo(source, 0, 1)).length).toBe(1);
    await claim.release();
    await expect(source.read(0, undefined, PLENTY)).rejects.toThrow(/not this process's own/);
  });

  it('end with their signal', async () => {
    const topic = new Topic();
    const held = await topic.source().claim(0, signal);
    const stop = new AbortController();
    const claiming = topic.source().claim(0, stop.signal);
    setTimeout(() => stop.abort(new Error('stopped')), 20);
    await expect(claiming).rejects.toThrow('stopped');
    await held.release();
  });

  it('are lost with the consumer, and nothing is acknowledged for them any more', async () => {
    const topic = new Topic();
    const client = topic.broker.client();
    const source = topic.source({ client });
    const claim = await source.claim(0, signal);
    topic.append(0, 2);
    const [position] = await readTo(source, 0, 2);
    topic.broker.cut(client);
    expect(await claim.ending).toBe('lost');
    if (position !== undefined) await expect(source.acknowledge(0, position)).rejects.toThrow();
    expect(topic.backlog(0)).toBe(2);
  });

  it('keep to the share of each kind, and the latest are asked back', async () => {
    const topic = new Topic(4);
    topic.split(0);
    const members = new FakeMembers();
    const source = topic.source({ members });
    for await (const _ of source.layouts(signal)) break;
    const ids = [0, 1, 2, 3, 4, 5];
    const claims = await Promise.all(ids.map((id) => source.claim(id, signal)));
    const asked: number[] = [];
    for (const [id, { ending }] of claims.entries()) void ending.then((how) => how === 'asked' && asked.push(id));
    members.set(2);
    await new Promise((resolve) => setTimeout(resolve, 20));
    // Of five active segments three may stay; of one sealed one it.
    expect(asked).toEqual([4, 5]);
    await claims[5]?.release();
    await claims[4]?.release();
    const waiting = source.claim(4, signal);
    const isHeld = await Promise.race([waiting.then(() => true), new Promise((resolve) => setTimeout(resolve, 30))]);
    expect(isHeld).toBeUndefined();
    members.set(1);
    await (await waiting).release();
  });

  it('begin when the members are known', async () => {
    const topic = new Topic();
    const members = new FakeMembers();
    members.set(Number.POSITIVE_INFINITY);
    const source = topic.source({ members });
    for await (const _ of source.layouts(signal)) break;
    const claiming = source.claim(0, signal);
    setTimeout(() => members.set(1), 10);
    await (await claiming).release();
  });
});

class FakeMembers implements Members {
  private live = 1;
  private readonly listeners = new Set<() => void>();

  share(segments: number): number {
    return Math.ceil(segments / this.live);
  }

  onChange(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  set(live: number): void {
    this.live = live;
    for (const listener of this.listeners) listener();
  }
}
