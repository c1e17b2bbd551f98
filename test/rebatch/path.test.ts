/** The path of one entry: the whole table of the design, row by row, and the two laws behind it. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  type Entry,
  type MessageFields,
  Outer,
  type OuterFields,
  parseEntry,
  readBatch,
} from '../../src/entry/index.js';
import {
  choosePath,
  inspectBatch,
  type Path,
  type PathOptions,
  type RemoteLayout,
  type SourceSegment,
} from '../../src/rebatch/index.js';
import { FULL_RANGE } from '../../src/ring/index.js';
import { arbEntry, frameEntry, rawField, splitFields } from '../../src/testing/entries.js';
import { arbRemoteLayout, arbSourceSegment } from '../../src/testing/remotes.js';
import { codecs } from '../support/codecs.js';
import { refusal } from '../support/expect.js';
import { fixtureEntry } from '../support/fixtures.js';
import {
  batch,
  batchOf,
  bucketHashOf,
  bucketOf,
  classicRemote,
  keysIn,
  message,
  OUTER,
  remoteOf,
  segment,
  segmentOf,
  single,
} from '../support/rebatch.js';

/** The lower half of the ring. Keys in it, as segment/hashB: d 2719/1473, a 3c25/69b2, key2 7371/39b4, hello 248b/fa47. */
const S: SourceSegment = { segmentId: 5, range: { start: 0, end: 0x7fff }, legacy: false };
const LEGACY: SourceSegment = { segmentId: 5, range: FULL_RANGE, legacy: true };

/** D (segment 0) covers S, in one bucket; with a cut between hashB 1473 and 69b2; or S is spread over two segments. */
const FITS = remoteOf([0, 0x8000], [0x8000]);
const BUCKETS = remoteOf([0, 0x8000], [0x4000, 0x8000]);
const NEITHER = remoteOf([0, 0x4000, 0x8000], [0x8000]);

const ENCRYPTED: Partial<OuterFields> = { encryptionKeys: [{ key: 'k', value: Uint8Array.of(1) }] };
const chunk = { uuid: 'p-1', chunkId: 1, numChunks: 3, totalSize: 12 };

/** A path in one word: `verbatim fits 0`, `skip marker`. */
function told(path: Path): string {
  return path.kind === 'verbatim' ? `${path.kind} ${path.reason} ${path.segmentId}` : `${path.kind} ${path.reason}`;
}

function path(entry: Entry, remote: RemoteLayout, options?: PathOptions, source = S): string {
  return told(choosePath(entry, source, remote, options));
}

const golden = (name: string): Entry => parseEntry(fixtureEntry(name));

/** Puts fields behind the metadata that no encoder here writes. */
function withFields(entry: Entry, ...fields: readonly Uint8Array[]): Entry {
  const metadata = Buffer.concat([entry.metadataBytes, ...fields]);
  return parseEntry(frameEntry({ metadata, payload: entry.payload, checksum: true }));
}

describe('the table of paths', () => {
  const ROWS: readonly (readonly [row: string, entry: Entry, fits: string, buckets: string, neither: string])[] = [
    ['stamped batch', batchOf(['d', 'a']), 'verbatim fits 0', 'rebatch bucketFit', 'rebatch segmentFit'],
    ['stamped batch of one key', batchOf(['d', 'd']), 'verbatim fits 0', 'verbatim fits 0', 'rebatch segmentFit'],
    [
      'R1: stamped batch whose keys all lie in one segment',
      batchOf(['d', 'hello']),
      'rebatch bucketFit',
      'rebatch bucketFit',
      'rebatch segmentFit',
    ],
    ['batch of one (E5, B38)', batchOf(['d']), 'verbatim fits 0', 'verbatim fits 0', 'rebatch segmentFit'],
    [
      'R2: single, keyed, stamped',
      single({ partitionKey: 'key2' }),
      'verbatim single 0',
      'verbatim single 0',
      'verbatim single 1',
    ],
    [
      'R2: single, keyed, unstamped',
      single({ partitionKey: 'key2' }, { stamp: false }),
      'verbatim single 0',
      'verbatim single 0',
      'verbatim single 1',
    ],
    [
      'R2: single, keyed, encrypted',
      single({ ...ENCRYPTED, partitionKey: 'key2' }),
      'verbatim single 0',
      'verbatim single 0',
      'verbatim single 1',
    ],
    ['R3: single, unkeyed', single(), 'verbatim single 0', 'verbatim single 0', 'verbatim unkeyed 0'],
    [
      'R3, R9: single with an ordering key alone',
      single({ orderingKey: Buffer.from('key2') }),
      'verbatim single 0',
      'verbatim single 0',
      'verbatim unkeyed 0',
    ],
    [
      'unstamped batch',
      batchOf(['d', 'a'], { stamp: false }),
      'rebatch unstamped',
      'rebatch unstamped',
      'rebatch unstamped',
    ],
    [
      'R4: batch stamped [0,0] without an outer key',
      batchOf([undefined, undefined]),
      'verbatim fits 0',
      'verbatim fits 0',
      'inspect zeroStamp',
    ],
    [
      'R4: batch stamped [0,0] with an outer key',
      batchOf(['key-30884']),
      'verbatim fits 0',
      'verbatim fits 0',
      'rebatch segmentFit',
    ],
    [
      'R4: batch stamped [0,0] with an outer ordering key',
      batch([{ ...message(undefined), orderingKey: Buffer.from('key-30884') }]),
      'verbatim fits 0',
      'verbatim fits 0',
      'rebatch segmentFit',
    ],
    [
      'R5: encrypted batch',
      batchOf(['d', 'a'], { outer: ENCRYPTED }),
      'verbatim fits 0',
      'hold encryptedBatch',
      'hold encryptedBatch',
    ],
    [
      'R5: encrypted batch stamped [0,0]',
      batchOf([undefined], { outer: ENCRYPTED }),
      'verbatim fits 0',
      'verbatim fits 0',
      'hold encryptedBatch',
    ],
    [
      'R5: encrypted batch, unstamped',
      batchOf(['d'], { outer: ENCRYPTED, stamp: false }),
      'hold encryptedBatch',
      'hold encryptedBatch',
      'hold encryptedBatch',
    ],
    [
      'R6: chunk, keyed',
      single({ partitionKey: 'key2', chunk }, { stamp: false }),
      'verbatim single 0',
      'verbatim single 0',
      'verbatim single 1',
    ],
    [
      'R6: chunk, unkeyed',
      single({ chunk }, { stamp: false }),
      'verbatim single 0',
      'verbatim single 0',
      'verbatim unkeyed 0',
    ],
    ['marker', single({ markerType: 1000 }), 'skip marker', 'skip marker', 'skip marker'],
    [
      'replicated entry',
      batchOf(['d'], { outer: { replicatedFrom: 'c' } }),
      'skip replicated',
      'skip replicated',
      'skip replicated',
    ],
    [
      'not listed',
      batchOf(['d'], { outer: { replicateTo: ['c'] } }),
      'skip notListed',
      'skip notListed',
      'skip notListed',
    ],
  ];

  it.each(ROWS)('%s', (_, entry, fits, buckets, neither) => {
    expect(path(entry, FITS)).toBe(fits);
    expect(path(entry, BUCKETS)).toBe(buckets);
    expect(path(entry, NEITHER)).toBe(neither);
  });

  it('R1: the answer depends on the range of the source, not on where the keys of the entry lie', () => {
    const entry = batchOf(['d', 'a']);
    expect(path(entry, NEITHER, {}, { ...S, range: { start: 0, end: 0x3fff } })).toBe('verbatim fits 0');
    expect(path(entry, NEITHER, {}, { ...S, range: { start: 0, end: 0x4000 } })).toBe('rebatch segmentFit');
    expect(path(entry, NEITHER, {}, { ...S, range: { start: 0x3fff, end: 0x3fff } })).toBe('verbatim fits 0');
    expect(path(entry, NEITHER, {}, { ...S, range: { start: 0x4000, end: 0x7fff } })).toBe('verbatim fits 1');
  });

  it('R2: a key outside its source range goes with its batches while one segment covers the source', () => {
    // In S's log, although its text hashes to 0xd836: a client routed it by another rule.
    expect(path(single({ partitionKey: 'k2' }), FITS)).toBe('verbatim single 0');
    expect(path(single({ partitionKey: 'k2' }), NEITHER)).toBe('verbatim single 2');
  });

  it('bucket fit: both bounds are inclusive, and a bucket begins at its split', () => {
    const stamped = (min: number, max: number) =>
      withFields(
        batchOf(['d'], { stamp: false }),
        rawField(Outer.stampMin, BigInt(min)),
        rawField(Outer.stampMax, BigInt(max)),
      );
    expect(path(stamped(0x4000, 0x7fff), BUCKETS)).toBe('verbatim fits 0');
    expect(path(stamped(0x3fff, 0x4000), BUCKETS)).toBe('rebatch bucketFit');
    expect(path(stamped(0x8000, 0xffff), BUCKETS)).toBe('verbatim fits 0');
    expect(path(stamped(0, 0xffff), remoteOf([0]))).toBe('verbatim fits 0');
  });

  it.each([
    ['one bound', [rawField(Outer.stampMin, 1n)]],
    ['the other bound', [rawField(Outer.stampMax, 1n)]],
    ['min above max', [rawField(Outer.stampMin, 2n), rawField(Outer.stampMax, 1n)]],
    ['a bound above 0xFFFF', [rawField(Outer.stampMin, 0n), rawField(Outer.stampMax, 0x10000n)]],
  ])('a stamp with %s counts as none', (_, fields) => {
    expect(path(withFields(batchOf(['d'], { stamp: false }), ...fields), FITS)).toBe('rebatch unstamped');
  });

  it.each<[string, RemoteLayout]>([
    ['has no active segment, or legacy ones beside others', { ...FITS, active: [] }],
    [
      'has no active segment, or legacy ones beside others',
      { ...FITS, active: [...FITS.active, ...classicRemote(1).active] },
    ],
    ['has a gap or an overlap at ', { ...FITS, active: FITS.active.slice(1) }],
    [
      'has a gap or an overlap at 36864',
      { ...FITS, active: [...FITS.active, segment(9, { start: 0x9000, end: 0x9fff })] },
    ],
    ['ends at ', { ...FITS, active: FITS.active.slice(0, 1) }],
  ])('a layout that %s is refused, and named', (rule, remote) => {
    const message = expect.stringContaining(`of "${remote.cluster}" at epoch ${remote.epoch} ${rule}`);
    expect(() => path(batchOf(['d']), remote)).toThrow(expect.objectContaining({ code: 'invalidLayout', message }));
  });
});

describe('what is skipped', () => {
  it('a marker comes before a replicated entry, that before the list, that before the TTL', () => {
    const all: Partial<OuterFields> = { markerType: 10, replicatedFrom: 'c', replicateTo: ['c'], publishTimeMs: 0 };
    const expired: PathOptions = { nowMs: 10, ttlMs: 1 };
    const { markerType: _, ...unmarked } = all;
    const { replicatedFrom: __, ...original } = unmarked;
    const { replicateTo: ___, ...listed } = original;
    const reasons = [all, unmarked, original, listed].map((outer) => path(single(outer), FITS, expired));
    expect(reasons).toEqual(['skip marker', 'skip replicated', 'skip notListed', 'skip expired']);
  });

  it('skipping comes before holding', () => {
    const entry = batchOf(['d'], { stamp: false, outer: { ...ENCRYPTED, replicateTo: ['c'] } });
    expect(path(entry, FITS)).toBe('skip notListed');
  });

  it.each([
    'bld-marker-zero',
    'bld-marker-txn-abort',
    'bld-marker-unknown',
    'bld-marker-snapshot',
    'bld-marker-update',
  ])('B30: %s is a marker by the presence of the field alone', (name) =>
    expect(path(golden(name), FITS)).toBe('skip marker'),
  );

  it.each([
    [['__local__'], 'skip notListed'],
    [['c'], 'skip notListed'],
    [[], 'verbatim single 0'],
    [undefined, 'verbatim single 0'],
    [['b', 'b'], 'verbatim single 0'],
    [['c', 'b'], 'verbatim single 0'],
    [['B'], 'skip notListed'],
  ])('B26: replicate_to %j towards b: %s', (replicateTo, expected) => {
    expect(path(single({ replicateTo }), FITS)).toBe(expected);
    const fits = expected.replace('single', 'fits');
    expect(path(batchOf(['d'], { outer: { replicateTo } }), FITS)).toBe(fits);
  });

  it('B26: an entry that a real client marked as not to be replicated stays', () => {
    expect(path(golden('cap-v4-disable-replication'), FITS)).toBe('skip notListed');
  });

  it('B26: no loops: an entry that a replicator brought is not sent on, batch or single', () => {
    for (const name of ['cap-geo-copy-1', 'cap-geo-copy-2', 'bld-batch-replicated']) {
      expect(path(golden(name), FITS)).toBe('skip replicated');
    }
  });

  const NOW = 1_700_000_100_000;
  const aged = (seconds: number) => single({ publishTimeMs: NOW - seconds * 1000 });

  it.each([
    [
      [0, 10],
      [false, false],
    ],
    [
      [70, 10],
      [true, false],
    ],
    [
      [60, 60.001],
      [false, true],
    ],
  ] as const)('B23: of ages %j s a TTL of 60 s expires %j', (ages, expired) => {
    const paths = ages.map((age) => path(aged(age), FITS, { nowMs: NOW, ttlMs: 60_000 }));
    expect(paths).toEqual(expired.map((is) => (is ? 'skip expired' : 'verbatim single 0')));
  });

  it('B23: nothing expires without a TTL, with a TTL of 0, or published in the future', () => {
    expect(path(aged(1e6), FITS)).toBe('verbatim single 0');
    expect(path(aged(1e6), FITS, { nowMs: NOW, ttlMs: 0 })).toBe('verbatim single 0');
    expect(path(aged(-1e6), FITS, { nowMs: NOW, ttlMs: 1 })).toBe('verbatim single 0');
    expect(refusal(() => path(aged(0), FITS, { ttlMs: 1 }))).toBe('invalidArgument');
  });

  it("B23: the source broker's time counts where it noted one", () => {
    const { metadataBytes: metadata, payload } = aged(70);
    const stored = (seconds: number) => {
      const broker = rawField(1, BigInt(NOW - seconds * 1000));
      return parseEntry(frameEntry({ metadata, payload, checksum: true, broker }));
    };
    const ttl = { nowMs: NOW, ttlMs: 60_000 };
    expect(path(stored(10), FITS, ttl)).toBe('verbatim single 0');
    expect(path(stored(60), FITS, ttl)).toBe('verbatim single 0');
    expect(path(stored(61), FITS, ttl)).toBe('skip expired');
    const indexOnly = parseEntry(frameEntry({ metadata, payload, checksum: true, broker: rawField(2, 9n) }));
    expect(path(indexOnly, FITS, ttl)).toBe('skip expired');
  });

  it('done: a single that an earlier attempt has sent is not sent again, by its place and not by its segment', () => {
    const entry = single({ partitionKey: 'key2' });
    const cell = (start: number, end: number, from: number, to: number) => [
      { range: { start, end }, buckets: { start: from, end: to } },
    ];
    expect(path(entry, NEITHER, { done: cell(0x7371, 0x7371, 0x39b4, 0x39b4) })).toBe('skip done');
    expect(path(entry, NEITHER, { done: cell(0x7372, 0xffff, 0, 0xffff) })).toBe('verbatim single 1');
    expect(path(entry, NEITHER, { done: cell(0, 0x7370, 0, 0xffff) })).toBe('verbatim single 1');
    expect(path(entry, NEITHER, { done: cell(0, 0xffff, 0x39b5, 0xffff) })).toBe('verbatim single 1');
    expect(path(entry, NEITHER, { done: cell(0, 0xffff, 0, 0x39b3) })).toBe('verbatim single 1');
    expect(path(entry, NEITHER, { done: [] })).toBe('verbatim single 1');
    const ordered = single({ partitionKey: 'key2', orderingKey: Buffer.from('hello') });
    expect(path(ordered, NEITHER, { done: cell(0x7371, 0x7371, 0xfa47, 0xfa47) })).toBe('skip done');
    expect(path(single(), NEITHER, { done: cell(0, 0x3fff, 0, 0) })).toBe('skip done');
    expect(path(single(), NEITHER, { done: cell(1, 0xffff, 0, 0xffff) })).toBe('verbatim unkeyed 0');
  });

  it('done: a batch of which something was sent is re-batched, even where it would fit', () => {
    const done = [{ range: { start: 0, end: 0x1fff }, buckets: FULL_RANGE }];
    expect(path(batchOf(['d', 'a']), FITS, { done })).toBe('rebatch partlyDone');
    expect(path(batchOf([undefined]), NEITHER, { done })).toBe('rebatch partlyDone');
    expect(path(batchOf(['d', 'a'], { outer: ENCRYPTED }), FITS, { done })).toBe('hold encryptedBatch');
  });
});

describe('R3: where unkeyed messages go', () => {
  it('to the segment that contains the start of the source', () => {
    const remote = remoteOf([0, 0x2000, 0x3000, 0x9000]);
    const unkeyed = (start: number) => path(single(), remote, {}, { ...S, range: { start, end: 0xffff } });
    expect([0, 0x1fff, 0x2000, 0x2fff, 0x8fff].map(unkeyed)).toEqual(
      [0, 0, 1, 1, 2].map((id) => `verbatim unkeyed ${id}`),
    );
  });

  it('from a legacy source to the place of its id, each bit of which halves the ring', () => {
    const remote = {
      ...NEITHER,
      active: [2, 0, 1].map((i) => ({ ...(NEITHER.active[i] ?? segment(0, FULL_RANGE)), segmentId: 10 + i })),
    };
    const unkeyed = (segmentId: number) => path(single(), remote, {}, { ...LEGACY, segmentId });
    expect([0, 1, 2, 3, 5].map(unkeyed)).toEqual([10, 12, 11, 12, 12].map((id) => `verbatim unkeyed ${id}`));
  });

  it('and towards classic partitions the same way', () => {
    const unkeyed = (segmentId: number) => path(single(), classicRemote(4), {}, { ...S, segmentId });
    expect([0, 3, 4, 7].map(unkeyed)).toEqual([0, 3, 0, 3].map((id) => `verbatim unkeyed ${id}`));
  });

  it('B49: so all chunks of one unkeyed message go to one segment', () => {
    for (const remote of [FITS, NEITHER, classicRemote(3)]) {
      const paths = [0, 1, 2].map((chunkId) =>
        path(single({ chunk: { ...chunk, chunkId } }, { stamp: false }), remote),
      );
      expect(new Set(paths).size).toBe(1);
    }
  });
});

describe('which hash decides', () => {
  it('B07: segments go by the unmasked hash', () => {
    // k1 hashes to fdc6602a; with bit 31 cleared it would land at 7dc6.
    expect(path(single({ partitionKey: 'k1' }), remoteOf([0, 0x8000]), {}, { ...S, range: FULL_RANGE })).toBe(
      'verbatim single 1',
    );
  });

  it.each([
    ['k1', 2],
    ['key-1', 0],
    ['b', 3],
    ['', 0],
  ])('B07, E9: towards classic partitions key %j goes by the masked hash modulo 4', (partitionKey, partition) => {
    const shuffled = { ...classicRemote(4), active: [...classicRemote(4).active].reverse() };
    expect(path(single({ partitionKey }), shuffled, {}, { ...S, range: FULL_RANGE })).toBe(
      `verbatim single ${partition}`,
    );
  });

  it('E9: a lone classic partition takes everything', () => {
    for (const entry of [batchOf(['d', 'a']), single({ partitionKey: 'k1' }), single()]) {
      expect(path(entry, classicRemote(1))).toMatch(/^verbatim (fits|single) 0$/);
    }
    expect(path(batchOf(['d', 'a']), classicRemote(2))).toBe('rebatch segmentFit');
  });

  it('E9: the range of a legacy source proves nothing about its keys', () => {
    const source = { segmentId: 5, range: { start: 0, end: 0x3fff }, legacy: true };
    expect(path(batchOf(['d', 'd']), FITS, {}, source)).toBe('rebatch segmentFit');
    expect(path(single({ partitionKey: 'k1' }), FITS, {}, source)).toBe('verbatim single 1');
    expect(path(batchOf(['d', 'd']), remoteOf([0]), {}, source)).toBe('verbatim fits 0');
  });

  it('B08: the text of a binary key is hashed, not the bytes behind it', () => {
    // AAECAw== lies at 9173, its bytes 00 01 02 03 at f4c0.
    const remote = remoteOf([0, 0x9173, 0x9174]);
    const entry = single({ partitionKey: 'AAECAw==', partitionKeyB64: true });
    expect(path(entry, remote, {}, { ...S, range: FULL_RANGE })).toBe('verbatim single 1');
  });

  it('B08, R9: the segment of a single comes from its partition key, whatever its ordering key', () => {
    const entry = single({ partitionKey: 'k1', orderingKey: Buffer.from('d') });
    expect(path(entry, remoteOf([0, 0x8000]), {}, { ...S, range: FULL_RANGE })).toBe('verbatim single 1');
  });
});

describe('R4: a stamp of [0,0]', () => {
  const cut = remoteOf([0, 0x8000], [0x8000]);
  const all: SourceSegment = { ...S, range: FULL_RANGE };

  it('trust: forwarded as unkeyed without a look, encrypted or not', () => {
    const trust = { unkeyedBatches: 'trust' } as const;
    expect(path(batchOf([undefined]), cut, trust, all)).toBe('verbatim unkeyed 0');
    expect(path(batchOf([undefined], { outer: ENCRYPTED }), cut, trust, all)).toBe('verbatim unkeyed 0');
    expect(path(batchOf(['key-30884']), cut, trust, all)).toBe('rebatch segmentFit');
  });

  it.each([
    ['cap-v5-batch-unkeyed', 'verbatim unkeyed 0'],
    ['cap-v5-batch-mixed-bucket0', 'rebatch segmentFit'],
  ])('B09: %s is looked into: %s', (name, expected) => {
    expect(path(golden(name), cut, {}, all)).toBe('inspect zeroStamp');
    expect(told(inspectBatch(golden(name), all, cut, { codecs }))).toBe(expected);
  });

  it('B09: two keys of hashB 0 on different segments, under no outer key', () => {
    const entry = batchOf(['key-30884', 'key-78688'], { outer: { partitionKey: undefined } });
    expect(path(entry, cut, {}, all)).toBe('inspect zeroStamp');
    expect(told(inspectBatch(entry, all, cut, { codecs }))).toBe('rebatch segmentFit');
  });

  it('B09: the empty key is a key, also as an ordering key', () => {
    expect(path(golden('cap-v5-empty-key-2'), cut, {}, all)).toBe('rebatch segmentFit');
    for (const keys of [{ partitionKey: '' }, { orderingKey: new Uint8Array(0) }] satisfies Partial<MessageFields>[]) {
      const entry = batch([message(undefined), { ...message(undefined), ...keys }]);
      expect(path(entry, cut, {}, all)).toBe('inspect zeroStamp');
      expect(told(inspectBatch(entry, all, cut, { codecs }))).toBe('rebatch segmentFit');
    }
  });

  it('inspect opens the batch, so it refuses what cannot be opened, and goes where unkeyed messages go', () => {
    const entry = batchOf([undefined, undefined], { compression: 'lz4' });
    expect(refusal(() => inspectBatch(entry, all, cut, { codecs: {} }))).toBe('codecUnavailable');
    expect(refusal(() => inspectBatch(entry, all, cut, { codecs, limits: { maxUncompressedBytes: 4 } }))).toBe(
      'undecodableBatch',
    );
    expect(refusal(() => inspectBatch(single(), all, cut, { codecs }))).toBe('invalidArgument');
    expect(told(inspectBatch(entry, { ...LEGACY, segmentId: 3 }, cut, { codecs }))).toBe('verbatim unkeyed 1');
  });
});

describe('what is never opened here', () => {
  it('B24, B40: a damaged or falsely compressed payload is forwarded as it is where it fits', () => {
    for (const name of ['bld-batch-cut', 'bld-batch-count-more', 'bld-payload-corrupt', 'bld-checksum-wrong']) {
      expect(path(golden(name), remoteOf([0]))).toMatch(/^verbatim/);
    }
    const marked = withFields(batchOf(['d']), rawField(Outer.compression, 1n), rawField(Outer.uncompressedSize, 6n));
    expect(path(marked, FITS)).toBe('verbatim fits 0');
  });

  it('B43: an encrypted single goes by its outer key, an encrypted batch that straddles or has no stamp is held', () => {
    expect(path(golden('cap-v5-encrypted-1'), NEITHER)).toMatch(/^verbatim single/);
    expect(path(golden('bld-encrypted-batch-stamped'), remoteOf([0], [2]))).toBe('hold encryptedBatch');
    expect(path(golden('bld-encrypted-batch-stamped'), remoteOf([0], [3]))).toBe('verbatim fits 0');
    expect(path(golden('cap-v4-encrypted-batch'), remoteOf([0]))).toBe('hold encryptedBatch');
  });

  it('B57: layouts that do not nest need the slow path on both sides of a shared boundary only', () => {
    const remote = remoteOf([0, 0x5555, 0xaaaa]);
    const from = (start: number, end: number) => path(batchOf(['d', 'd']), remote, {}, { ...S, range: { start, end } });
    expect(from(0, 0x7fff)).toBe('rebatch segmentFit');
    expect(from(0x8000, 0xffff)).toBe('rebatch segmentFit');
    expect(from(0x5555, 0xaaa9)).toBe('verbatim fits 1');
    expect(from(0, 0)).toBe('verbatim fits 0');
    expect(from(0xffff, 0xffff)).toBe('verbatim fits 2');
    // Three buckets against four.
    const stamped = withFields(
      batchOf(['d'], { stamp: false }),
      rawField(Outer.stampMin, 0x5000n),
      rawField(Outer.stampMax, 0x6000n),
    );
    expect(path(stamped, remoteOf([0], [0x4000, 0x8000, 0xc000]))).toBe('verbatim fits 0');
    expect(path(stamped, remoteOf([0], [0x5555, 0xaaaa]))).toBe('rebatch bucketFit');
  });

  it('the path depends on the outer metadata alone', () => {
    fc.assert(
      fc.property(
        arbEntry(codecs),
        arbSourceSegment(),
        arbRemoteLayout(),
        fc.uint8Array(),
        (generated, source, remote, noise) => {
          const entry = parseEntry(generated.bytes);
          const damaged = parseEntry(frameEntry({ metadata: entry.metadataBytes, payload: noise }));
          expect(choosePath(damaged, source, remote)).toEqual(choosePath(entry, source, remote));
        },
      ),
    );
  });
});

/** A source, and a batch whose keys a producer of it really sends there, rightly stamped. */
const arbSourced = arbSourceSegment().chain((source) => {
  const keys = [...keysIn(source.range), undefined];
  const arbMessage = fc
    .tuple(fc.constantFrom(...keys), fc.option(fc.uint8Array({ maxLength: 3 }), { freq: 5, nil: undefined }))
    .map(([key, orderingKey]) => ({ ...message(key), ...(orderingKey === undefined ? {} : { orderingKey }) }));
  return fc.record({ source: fc.constant(source), messages: fc.array(arbMessage, { minLength: 1, maxLength: 5 }) });
});

describe('the laws of the fast path', () => {
  it('what is forwarded as it is lies in one bucket of the segment it is sent to, message by message', () => {
    const seen = { verbatim: 0, other: 0 };
    fc.assert(
      fc.property(arbSourced, arbRemoteLayout(), ({ source, messages }, remote) => {
        const entry = batch(messages);
        const chosen = choosePath(entry, source, remote);
        const decided = chosen.kind === 'inspect' ? inspectBatch(entry, source, remote, { codecs }) : chosen;
        if (decided.kind !== 'verbatim') {
          seen.other++;
          return;
        }
        seen.verbatim++;
        const places = readBatch(entry, codecs).map(({ partitionKeyBytes, orderingKey }) => {
          const keys = { partitionKey: partitionKeyBytes, orderingKey };
          const { segmentId, entryBucketSplits } = segmentOf(keys, source, remote);
          return JSON.stringify({ segmentId, bucket: bucketOf(entryBucketSplits, bucketHashOf(keys)) });
        });
        expect(new Set(places).size).toBe(1);
        expect(JSON.parse(places[0] ?? '')).toMatchObject({ segmentId: decided.segmentId });
      }),
      { numRuns: 400 },
    );
    expect(Math.min(seen.verbatim, seen.other)).toBeGreaterThan(20);
  });

  it('a batch is forwarded as it is exactly when one segment covers the source and one bucket of it the stamp', () => {
    const outer = fc.constant<OuterFields>(OUTER);
    const entries = arbEntry(codecs, { kinds: ['batch'], outer });
    fc.assert(
      fc.property(entries, arbSourceSegment(), arbRemoteLayout(), fc.boolean(), (generated, source, remote, trust) => {
        const { stamp, encrypted } = generated;
        const entry = parseEntry(generated.bytes);
        const chosen = choosePath(entry, source, remote, { unkeyedBatches: trust ? 'trust' : 'inspect' });
        const { active } = remote;
        const covering = active.filter(({ range, legacyTopicName }) => {
          const whole = source.legacy || legacyTopicName !== undefined ? active.length === 1 : true;
          return whole && range.start <= source.range.start && source.range.end <= range.end;
        });
        const zero =
          stamp?.max === 0 &&
          !splitFields(entry.metadataBytes).some(
            ({ field }) => field === Outer.partitionKey || field === Outer.orderingKey,
          );
        const [cover] = covering;
        const fits =
          cover !== undefined && stamp !== undefined && bucketOf(cover.entryBucketSplits, stamp.min).end >= stamp.max;
        if (fits) expect(chosen).toEqual({ kind: 'verbatim', reason: 'fits', segmentId: cover.segmentId });
        else if (zero && trust)
          expect(chosen).toEqual({
            kind: 'verbatim',
            reason: 'unkeyed',
            segmentId: segmentOf({}, source, remote).segmentId,
          });
        else if (encrypted) expect(chosen.kind).toBe('hold');
        else if (zero) expect(chosen.kind).toBe('inspect');
        else {
          const reason = stamp === undefined ? 'unstamped' : cover === undefined ? 'segmentFit' : 'bucketFit';
          expect(chosen).toEqual({ kind: 'rebatch', reason });
        }
      }),
      { numRuns: 400 },
    );
  });

  it('a single message is never opened nor held: it goes where its key says, or where its source goes', () => {
    const outer = fc.record({
      partitionKey: fc.option(fc.string(), { nil: undefined }),
      orderingKey: fc.option(fc.uint8Array(), { nil: undefined }),
    });
    fc.assert(
      fc.property(outer, fc.boolean(), arbSourceSegment(), arbRemoteLayout(), (keys, encrypted, source, remote) => {
        const entry = single({ ...keys, ...(encrypted ? ENCRYPTED : {}) });
        expect(choosePath(entry, source, remote)).toMatchObject({
          kind: 'verbatim',
          segmentId: segmentOf(keys, source, remote).segmentId,
        });
      }),
      { numRuns: 300 },
    );
  });
});
