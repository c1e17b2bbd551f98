/** The progress line, on a terminal and where there is none. */
import { describe, expect, it } from 'vitest';
import { Progress, type StatusDocument, statusDocument } from '../../examples/pulsar-replicator/status/index.js';
import { convergedTopic, divergedTopic, nowMs, replicator, statusView } from './status-view.js';

const CLEAR = '\r\x1b[K';

function at(afterMs: number, entries = 0): StatusDocument {
  const view = statusView([
    {
      topic: 't',
      clusters: [{ cluster: 'a' }, { cluster: 'b' }],
      directions: [{ from: 'a', status: replicator('b', [], { verbatimEntries: entries }) }],
    },
  ]);
  return statusDocument({ ...view, nowMs: nowMs + afterMs });
}

function writtenTo(terminal: { isTTY?: boolean; columns?: number }) {
  const written: string[] = [];
  return { written, progress: new Progress({ ...terminal, write: (text) => written.push(text) }) };
}

describe('Progress', () => {
  it('says in one line how far it is and what needs an operator', () => {
    const { written, progress } = writtenTo({});
    progress.show(statusDocument(statusView([divergedTopic('orders'), convergedTopic('payments')])));
    expect(written).toEqual([
      '1 of 2 topics converged · 0 entries/s · 1423194 verbatim, 88120 re-batched · backlog 26630 · 1 segment needs an operator\n',
    ]);
  });

  it('writes a plain line every ten seconds where there is no terminal', () => {
    const { written, progress } = writtenTo({});
    for (let ms = 0; ms <= 20_000; ms += 500) progress.show(at(ms, ms));
    progress.say('draining');
    progress.end();
    expect(written.map((line) => / (\d+) entries\/s/.exec(line)?.[1] ?? line)).toEqual([
      '0',
      '1000',
      '1000',
      'draining\n',
    ]);
  });

  it('rewrites one line in place on a terminal, never wider than it, and says other things above it', () => {
    const { written, progress } = writtenTo({ isTTY: true, columns: 30 });
    progress.show(at(0));
    progress.show(at(100));
    progress.show(at(250));
    progress.say('b: no\x1b[2J\nbroker');
    progress.end();
    const line = '0 of 1 topic converged · 0 ent';
    const drawn = CLEAR + line.slice(0, 29);
    expect(written).toEqual([drawn, drawn, `${CLEAR}b: no [2J broker\n`, drawn, CLEAR]);
  });
});
