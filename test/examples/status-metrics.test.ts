/** The text that Prometheus scrapes: the metrics of a replication, in the grammar of its text format. */
import { newCounters } from 'isthmus';
import { describe, expect, it } from 'vitest';
import { metricsText } from '../../examples/pulsar-replicator/status/index.js';
import { replicator, segment } from './status-view.js';

const HOSTILE = 'a\\b"c\nd';

const text = metricsText({
  replicators: () => [
    {
      topic: HOSTILE,
      replicator: {
        status: () =>
          replicator('b', [segment(0, { for: 'entries' }, { backlog: 7 })], {
            verbatimEntries: 12,
            duplicates: { restart: 3 },
          }),
      },
    },
  ],
  controllers: () => [],
  rates: new Map([['b', { waiting: 2 }]]),
});

describe('metricsText', () => {
  it('gives every metric under its own name, with its labels escaped', () => {
    const lines = text().split('\n');
    const topic = 'topic="a\\\\b\\"c\\nd"';
    expect(lines).toEqual(
      expect.arrayContaining([
        '# HELP isthmus_replication_entries_total Source entries stored on the remote, by path: verbatim or rebatched. Unit: {entry}.',
        '# TYPE isthmus_replication_entries_total counter',
        `isthmus_replication_entries_total{${topic},remote="b",path="verbatim"} 12`,
        `isthmus_replication_duplicates_total{${topic},remote="b",cause="restart"} 3`,
        '# TYPE isthmus_replication_backlog gauge',
        `isthmus_replication_backlog{${topic},remote="b",segment="0"} 7`,
        'isthmus_rate_limit_waiting{remote="b"} 2',
      ]),
    );
  });

  it('is in the grammar of the format: each family once, its head first, no series twice, a newline at the end', () => {
    const found = text();
    expect(found.endsWith('\n')).toBe(true);
    const families = new Set<string>();
    const series = new Set<string>();
    let family = '';
    for (const line of found.trimEnd().split('\n')) {
      const [, helped] = /^# HELP ([a-z_]+) .+$/.exec(line) ?? [];
      if (helped !== undefined) {
        expect(families.has(helped)).toBe(false);
        families.add(helped);
        family = helped;
        continue;
      }
      if (line.startsWith('#')) {
        expect(line).toMatch(new RegExp(`^# TYPE ${family} (counter|gauge)$`));
        continue;
      }
      const [, name, set = ''] =
        /^([a-z_]+)(\{(?:[a-z_]+="(?:[^"\\\n]|\\[\\"n])*",?)*\})? -?(?:[0-9.e+-]+|Inf|NaN)$/.exec(line) ?? [];
      expect(name).toBe(family);
      expect(series.has(name + set)).toBe(false);
      series.add(name + set);
    }
    expect(families.size).toBeGreaterThan(8);
  });

  it('reads anew at every scrape; of two series with the same labels the last counts, and none is nothing', () => {
    let entries: readonly number[] = [];
    const scrape = metricsText({
      replicators: () =>
        entries.map((verbatimEntries) => ({
          topic: 't',
          replicator: { status: () => ({ ...replicator('b', []), counters: { ...newCounters(), verbatimEntries } }) },
        })),
    });
    expect(scrape()).toBe('');
    entries = [1, 2];
    expect(scrape().match(/^isthmus_replication_entries_total\{.*verbatim"\} .*$/gm)).toEqual([
      'isthmus_replication_entries_total{topic="t",remote="b",path="verbatim"} 2',
    ]);
  });
});
