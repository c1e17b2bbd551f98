/**
 * What was written on every cluster of a simulated world and where it has arrived, kept by brute force beside the
 * machines. Every entry that a remote stores is judged when it is stored: it is what the source wrote, lies where it
 * belongs, comes in order, never comes home, and never comes twice without a reason.
 */
import {
  type Codecs,
  type Entry,
  joinBuffers,
  openBatch,
  parseEntry,
  parseSourcePosition,
  restamp,
  SOURCE_POSITION_PROPERTY,
  type SourcePosition,
} from '../entry/index.js';
import type { StoredEntry } from '../ports/index.js';
import { bucketIndex, classicPartition, contains, covers, type HashRange } from '../ring/index.js';
import { BrokenInvariant } from './convergence-invariants.js';

/** One message that a local producer wrote. */
export interface Message {
  readonly id: number;
  /** Messages of one line must arrive in their order: those of a key, or the unkeyed ones of a segment. */
  readonly line: string;
  /** Its place among all messages of its cluster; for a chunked one that of the last chunk, -1 before. */
  place: number;
  /** The raw hash of its partition key, -1 without one. */
  readonly keyHash: number;
  readonly bucketHash: number;
  /** By remote: the segments that it was stored in, one after the other. */
  readonly stored: Map<string, number[]>;
  /** The entries that hold it: several when it is chunked. */
  readonly entries: SourceEntry[];
}

/** What a remote may refuse about an entry until somebody acts. */
export type Refusal = 'rejected' | 'tooLarge';

/** One entry that a local producer wrote, or that stands in a segment for another reason. */
export interface SourceEntry {
  readonly cluster: string;
  readonly segmentId: number;
  readonly position: SourcePosition;
  readonly bytes: Uint8Array;
  /** None: nobody is owed this entry. */
  readonly messages: readonly Message[];
  readonly chunk: { readonly uuid: string; readonly chunkId: number; readonly numChunks: number } | undefined;
  readonly publishedAtMs: number;
  /** The remotes that it is for; undefined: all. */
  readonly remotes: readonly string[] | undefined;
  /** By remote: what it refuses. */
  readonly refusedBy: Map<string, Refusal>;
  /** By remote: why it is not owed any more. */
  readonly excused: Map<string, 'skipped' | 'evicted' | 'givenUp' | 'expired'>;
  /** What a copy of the whole entry must be. */
  verbatim: Uint8Array | undefined;
}

/** What a truth asks of its world when something is stored. */
export interface TruthHost {
  readonly codecs: Codecs;
  /** A message is stored again in one segment that was stored in another before: undefined where that is allowed, else the rule. */
  forbidsRepeat(repeat: Repeat): string | undefined;
  sourceRange(cluster: string, segmentId: number): HashRange | undefined;
  count(what: string): void;
}

/** Something that was stored once more. */
export interface Repeat {
  readonly entry: SourceEntry;
  readonly remote: string;
  readonly before: readonly number[];
  readonly segmentId: number;
}

/** Where something is stored. */
export interface StoringPlace {
  readonly remote: string;
  readonly segmentId: number;
  readonly range: HashRange;
  readonly entryBucketSplits: readonly number[];
  /** Of a classic topic: the number of its partitions. */
  readonly partitions: number | undefined;
}

/** The chunks of a message that one segment of a remote has. */
interface Assembly {
  readonly entry: SourceEntry;
  readonly chunkIds: Set<number>;
}

const text = new TextDecoder();

export class Truth {
  /** By cluster and place. */
  private readonly entries = new Map<string, SourceEntry>();
  /** By cluster and segment: its entries in order, local ones and others alike. */
  private readonly segments = new Map<string, SourceEntry[]>();
  /** By remote and line: the last place that was delivered first. */
  private readonly delivered = new Map<string, number>();
  /** By remote and place there: what a copy was made of. */
  private readonly copies = new Map<string, SourceEntry>();
  /** By remote, segment and message: chunks. */
  private readonly assemblies = new Map<string, Assembly>();
  /** By remote and message: chunks of it are stored somewhere. */
  private readonly begun = new Set<string>();
  private nextId = 0;
  private nextPlace = 0;

  constructor(private readonly host: TruthHost) {}

  message(line: string, keyHash: number, bucketHash: number): Message {
    return { id: this.nextId++, line, place: -1, keyHash, bucketHash, stored: new Map(), entries: [] };
  }

  /** An entry was written on a cluster, by a local producer or by a replicator. */
  written(entry: SourceEntry): void {
    this.entries.set(keyOf(entry.cluster, entry.position), entry);
    this.inSegment(entry.cluster, entry.segmentId).push(entry);
    const { chunk } = entry;
    for (const message of entry.messages) message.entries.push(entry);
    if (chunk !== undefined && chunk.chunkId < chunk.numChunks - 1) return;
    for (const message of entry.messages) message.place = this.nextPlace++;
  }

  inSegment(cluster: string, segmentId: number): SourceEntry[] {
    const key = `${cluster}/${segmentId}`;
    let list = this.segments.get(key);
    if (list === undefined) {
      list = [];
      this.segments.set(key, list);
    }
    return list;
  }

  at(cluster: string, position: SourcePosition): SourceEntry | undefined {
    return this.entries.get(keyOf(cluster, position));
  }

  /** What the entry at a place of a remote was copied from. */
  copyAt(remote: string, position: SourcePosition): SourceEntry | undefined {
    return this.copies.get(keyOf(remote, position));
  }

  /** Judges an entry that came from another cluster, and is stored now. */
  stored({ position: at, bytes }: StoredEntry, place: StoringPlace): void {
    const copy = parseEntry(bytes);
    const { metadata } = copy;
    if (metadata.markerType !== undefined) return;
    const from = metadata.replicatedFrom ?? '';
    const name = metadata.properties.findLast(([property]) => property === SOURCE_POSITION_PROPERTY)?.[1] ?? '';
    const position = parseSourcePosition(name);
    const entry = this.at(from, position);
    if (entry === undefined)
      throw new BrokenInvariant(`verbatim: ${place.remote} stores ${from} ${name}: no such entry`);
    const what = `${from} ${name} in segment ${place.segmentId} of ${place.remote}`;
    if (from === place.remote) throw new BrokenInvariant(`loops: ${what} comes home`);
    if (entry.messages.length === 0) throw new BrokenInvariant(`loops: ${what} is not ${from}'s own`);
    this.copies.set(keyOf(place.remote, at), entry);
    const messages = position.part === undefined ? this.whole(copy, entry, what) : this.part(copy, entry, what);
    this.checkAffinity(copy, entry, messages, place, what);
    if (entry.chunk === undefined) {
      for (const message of messages) this.deliver(message, entry, place, what);
    } else this.storedChunk(entry, place, what);
  }

  /** The copy of a whole entry differs from it by the stamp alone. */
  private whole(copy: Entry, entry: SourceEntry, what: string): readonly Message[] {
    entry.verbatim ??= joinBuffers(
      restamp(parseEntry(entry.bytes), { replicatedFrom: entry.cluster, sourcePosition: entry.position }),
    );
    if (Buffer.compare(entry.verbatim, copy.bytes) !== 0) {
      throw new BrokenInvariant(`verbatim: ${what} is not the source's entry with a stamp`);
    }
    return entry.messages;
  }

  /** A part holds some messages of the entry, each as it was. */
  private part(copy: Entry, entry: SourceEntry, what: string): readonly Message[] {
    const table = openBatch(copy, this.host.codecs);
    const { stamp } = copy.metadata;
    const messages: Message[] = [];
    for (let i = 0; i < table.count; i++) {
      const id = Number(text.decode(table.bytes.subarray(table.metadataEnd[i], table.end[i])));
      const message = entry.messages.find((other) => other.id === id);
      if (message === undefined) throw new BrokenInvariant(`verbatim: ${what} holds a message that its entry has not`);
      const { bucketHash } = message;
      if (stamp === undefined || bucketHash < stamp.min || bucketHash > stamp.max) {
        throw new BrokenInvariant(`affinity: message ${id} of ${what} lies outside the stamp`);
      }
      messages.push(message);
    }
    return messages;
  }

  private checkAffinity(
    copy: Entry,
    entry: SourceEntry,
    messages: readonly Message[],
    { segmentId, range, entryBucketSplits, partitions }: StoringPlace,
    what: string,
  ): void {
    const { stamp, numMessagesInBatch } = copy.metadata;
    const bucketOf = (hash: number) => bucketIndex(entryBucketSplits, hash);
    if (numMessagesInBatch !== undefined && (stamp === undefined || bucketOf(stamp.min) !== bucketOf(stamp.max))) {
      throw new BrokenInvariant(`affinity: ${what} straddles a bucket`);
    }
    const sourceRange = this.host.sourceRange(entry.cluster, entry.segmentId);
    const takesAll = sourceRange !== undefined && covers(range, sourceRange);
    for (const { keyHash, bucketHash, id } of messages) {
      if (numMessagesInBatch !== undefined && bucketOf(bucketHash) !== bucketOf(stamp?.min ?? 0)) {
        throw new BrokenInvariant(`affinity: message ${id} of ${what} lies in another bucket`);
      }
      if (keyHash < 0) continue;
      if (
        partitions === undefined
          ? contains(range, keyHash >>> 16) || takesAll
          : classicPartition(keyHash, partitions) === segmentId
      ) {
        continue;
      }
      throw new BrokenInvariant(`affinity: message ${id} of ${what} does not belong to the segment`);
    }
  }

  private storedChunk(entry: SourceEntry, place: StoringPlace, what: string): void {
    const { chunk } = entry;
    const [message] = entry.messages;
    if (chunk === undefined || message === undefined) return;
    const key = `${place.remote}/${place.segmentId}/${entry.cluster}/${chunk.uuid}`;
    let assembly = this.assemblies.get(key);
    if (assembly === undefined) {
      assembly = { entry, chunkIds: new Set() };
      this.assemblies.set(key, assembly);
      const begun = `${place.remote}/${entry.cluster}/${chunk.uuid}`;
      if (this.begun.has(begun)) this.host.count('chunksSentAgain');
      this.begun.add(begun);
    }
    if (assembly.chunkIds.has(chunk.chunkId)) {
      const rule = this.host.forbidsRepeat({ entry, ...place, before: [place.segmentId] });
      if (rule === undefined) return;
      throw new BrokenInvariant(`duplicates: chunk ${chunk.chunkId} ${what} again: ${rule}`);
    }
    assembly.chunkIds.add(chunk.chunkId);
    if (assembly.chunkIds.size === chunk.numChunks) this.deliver(message, entry, place, what);
  }

  /** The first entry of a chunked message that lies incomplete in a remote segment, by source segment. */
  *incomplete(remote: string, segmentId: number): Generator<SourceEntry, void, undefined> {
    for (const [key, { entry, chunkIds }] of this.assemblies) {
      if (!key.startsWith(`${remote}/${segmentId}/`)) continue;
      if (entry.chunk !== undefined && chunkIds.size < entry.chunk.numChunks) yield entry;
    }
  }

  private deliver(message: Message, entry: SourceEntry, place: StoringPlace, what: string): void {
    const { remote, segmentId } = place;
    const before = message.stored.get(remote);
    if (before !== undefined) {
      const rule = this.host.forbidsRepeat({ entry, remote, before, segmentId });
      if (rule !== undefined) throw new BrokenInvariant(`duplicates: message ${message.id} of ${what} again: ${rule}`);
      this.host.count('storedTwice');
      before.push(segmentId);
      return;
    }
    message.stored.set(remote, [segmentId]);
    this.host.count('delivered');
    const line = `${remote}/${message.line}`;
    const last = this.delivered.get(line) ?? -1;
    if (message.place < last) {
      throw new BrokenInvariant(`order: message ${message.id} of ${what} comes behind a later one of ${message.line}`);
    }
    this.delivered.set(line, message.place);
  }

  /** Why a remote is still owed an entry; undefined when it is settled. */
  owes(entry: SourceEntry, remote: string): string | undefined {
    if (entry.excused.has(remote)) return undefined;
    if (entry.remotes !== undefined && !entry.remotes.includes(remote)) return undefined;
    const missing = entry.messages.find(({ stored }) => !stored.has(remote));
    return missing === undefined ? undefined : `message ${missing.id} (${missing.line}) is not on ${remote}`;
  }
}

function keyOf(cluster: string, { ledgerId, entryId }: SourcePosition): string {
  return `${cluster}/${ledgerId}:${entryId}`;
}
