/**
 * Transcripts: each file of test/scenarios/convergence is a story of clusters that converge, told in comments, commands
 * and what comes of them. The runner plays the commands and compares; with UPDATE_SCENARIOS=1 it writes the files anew.
 *
 * | command | meaning |
 * | --- | --- |
 * | `cluster a [plan] [segments=3] [at=4000,8000] [buckets=4] [caps=8x16] [limit=6] [delay=1s]` | a cluster and its first layout |
 * | `meet` | all elect leaders, evaluate their policies and exchange until nothing is left to say |
 * | `lead a`, `crash a`, `retire a` | a new leader (one that is there is deposed, until it retires); none |
 * | `split a 0 [at 2000]`, `merge a 8000`, `rebucket a 0 8`, `withdraw a 8000`, `withdraw a buckets 0` | the operator; segments are named by a hash in them |
 * | `cold a 8000 ...`, `cold a none`, `evaluate a` | what the policy holds for cold; the same again |
 * | `want a split 0`, `want a rebucket 0 8` | what the policy wants at once |
 * | `behind a split 0`, `behind a merge 8000` | somebody else changes the stored layout |
 * | `deliver [a->b]`, `lose a->b`, `copy a->b`, `hold a->b`, `release` | messages, which wait until then |
 * | `partition a\|b`, `heal a\|b`, `advance 30s` | links and time |
 * | `pass 24h` | time passes while messages get through; what happens meanwhile is not told |
 * | `fail a before`, `fail a after` | the next change of the layout fails, before or after the deed |
 * | `members a b`, `unsupported a`, `supported a`, `recreate a [...]` | who takes part |
 * | `show`, `status a` | layouts as stored; what a controller says of its peers |
 *
 * A layout reads `e1  0/4 8000/2`: its epoch, then the start and the bucket count of each segment, in hex; a list that
 * is not equal-width is written out. `a -> b` is a push as it arrives, `b => a` its answer.
 */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import {
  type ColdMarks,
  type ControllerOptions,
  type ControllerReport,
  controllerStatus,
  type ManualOperation,
  type PeerState,
  type PolicyDecision,
  statedShape,
} from '../../src/convergence/index.js';
import { IsthmusError } from '../../src/errors.js';
import {
  createLayout,
  equalShapes,
  findActiveSegment,
  type Layout,
  mergeSegments,
  type Operation,
  shapeOf,
  splitSegment,
} from '../../src/layout/index.js';
import { equalWidthSplits, formatRange, type HashRange } from '../../src/ring/index.js';
import { ConvergenceWorld, type WorldCluster, type WorldEvent } from '../../src/testing/convergence-world.js';
import { hexNumber, hexText, layoutText, shapeText } from './shorthand.js';

const folder = new URL('../scenarios/convergence/', import.meta.url);
const isUpdate = process.env.UPDATE_SCENARIOS === '1';
const START_MS = 1_700_000_000_000;

describe('scenarios of convergence', () => {
  const names = readdirSync(folder).filter((name) => name.endsWith('.txt'));
  // A day of two clusters takes a while.
  it.each(names)('%s', { timeout: 120_000 }, (name) => {
    const file = new URL(name, folder);
    const told = readFileSync(file, 'utf8');
    const played = play(told);
    if (isUpdate) writeFileSync(file, played);
    expect(played).toBe(isUpdate ? played : told);
  });
});

/** The transcript with what its commands lead to now. */
function play(transcript: string): string {
  const stage = new Stage();
  const lines: string[] = [];
  let isOutput = false;
  for (const line of transcript.split('\n')) {
    if (line.startsWith('> ')) {
      lines.push(line, ...stage.run(line.slice(2).trim()));
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

type Waiting = ConvergenceWorld['network']['waiting'][number];

/** Where a transcript is played. */
class Stage {
  private readonly clusters: WorldCluster[] = [];
  private built: ConvergenceWorld | undefined;
  private delayMs = 0;
  private readonly cold = new Map<string, ColdMarks>();
  private readonly action = new Map<string, PolicyDecision['action']>();
  private readonly shelf: Waiting[] = [];
  private isSilent = false;
  private output: string[] = [];

  run(command: string): string[] {
    this.output = [];
    const [verb = '', ...words] = command.split(/\s+/);
    try {
      this.perform(verb, words);
      this.built?.clock.advance(0);
    } catch (error) {
      if (!(error instanceof IsthmusError)) throw error;
      this.say(`refused: ${error.message}`);
    }
    return this.output;
  }

  private get world(): ConvergenceWorld {
    this.built ??= new ConvergenceWorld({
      seed: 1,
      clusters: this.clusters,
      byHand: true,
      hostDelayMs: [this.delayMs, this.delayMs],
      onEvent: (event) => {
        const line = this.isSilent ? undefined : eventLine(event);
        if (line !== undefined) this.say(line);
      },
    });
    return this.built;
  }

  private say(line: string): void {
    this.output.push(line);
  }

  private perform(verb: string, words: readonly string[]): void {
    const [first = ''] = words;
    switch (verb) {
      case 'cluster':
        return this.addCluster(first, words.slice(1));
      case 'meet':
        return this.meet();
      case 'lead':
        return this.world.elect(first);
      case 'crash':
        return this.world.crash(first);
      case 'retire':
        return this.world.retire(first);
      case 'split':
      case 'merge':
      case 'rebucket':
      case 'withdraw':
        return this.world.operate(first, this.manual(verb, words));
      case 'cold':
        this.cold.set(first, this.marks(first, words.slice(1)));
        return this.world.evaluate(first);
      case 'evaluate':
        return this.world.evaluate(first);
      case 'want': {
        const [, type, hash = '0', buckets = '1'] = words;
        const segmentId = this.segmentAt(first, hash);
        const reason = 'the scenario says so';
        this.action.set(
          first,
          type === 'split'
            ? { type, segmentId, reason }
            : { type: 'rebucket', segmentIds: [segmentId], buckets: Number(buckets), reason },
        );
        return this.world.evaluate(first);
      }
      case 'behind':
        return this.world.interfere(first, (layout) => interference(layout, words[1] ?? '', words[2] ?? ''));
      case 'deliver':
        return this.deliver(first);
      case 'lose':
        for (const transit of this.on(first)) this.world.network.drop(transit);
        return;
      case 'copy':
        for (const transit of this.on(first)) this.world.network.duplicate(transit);
        return;
      case 'hold':
        for (const transit of this.on(first)) {
          this.world.network.drop(transit);
          this.shelf.push(transit);
        }
        return;
      case 'release':
        for (const transit of this.shelf.splice(0)) this.world.network.duplicate(transit);
        return;
      case 'partition':
        return this.world.network.partition(...link(first, '|'));
      case 'heal':
        return this.world.network.heal(...link(first, '|'));
      case 'advance':
        return this.world.clock.advance(milliseconds(first));
      case 'pass':
        return this.pass(milliseconds(first));
      case 'fail':
        return this.world.failNextChange(first, words[1] === 'after' ? 'after' : 'before');
      case 'members':
        for (const cluster of this.world.clusters) {
          this.world.setMembers(cluster, words.includes(cluster) ? words : [cluster]);
        }
        return;
      case 'unsupported':
        return this.world.setSupported(first, false);
      case 'supported':
        return this.world.setSupported(first, true);
      case 'recreate':
        return this.world.recreate(first, layoutFrom(optionsIn(words.slice(1))));
      case 'show':
        return this.show();
      case 'status':
        return this.status(first);
      default:
        throw new Error(`${verb}: no such command`);
    }
  }

  private addCluster(cluster: string, words: readonly string[]): void {
    const options = optionsIn(words);
    const [segments, buckets] = (options.get('caps') ?? '64x64').split('x').map(Number);
    const limit = options.get('limit');
    const controller: Partial<ControllerOptions> = {
      caps: { maxSegments: segments ?? 64, maxEntryBucketsPerSegment: buckets ?? 64 },
      ...(limit === undefined ? {} : { foldLimit: Number(limit) }),
    };
    this.delayMs = Math.max(this.delayMs, milliseconds(options.get('delay') ?? '0s'));
    this.clusters.push({
      cluster,
      layout: layoutFrom(options),
      host: words.includes('plan') ? 'plan' : 'atomic',
      options: controller,
      policy: () => {
        const action = this.action.get(cluster);
        this.action.delete(cluster);
        return { action, coldMarks: this.cold.get(cluster) ?? { segments: [], buckets: [] } };
      },
    });
  }

  private meet(): void {
    const { world } = this;
    this.isSilent = true;
    for (const cluster of world.clusters) {
      world.elect(cluster);
      world.evaluate(cluster);
    }
    const { waiting } = world.network;
    for (let still = 0; still < 50; still++) {
      world.clock.advance(this.delayMs);
      if (waiting.length > 0) still = 0;
      this.deliver('');
    }
    this.isSilent = false;
    this.show();
  }

  private pass(ms: number): void {
    this.isSilent = true;
    for (let passedMs = 0; passedMs < ms; passedMs += 5000) {
      this.world.clock.advance(5000);
      this.deliver('');
    }
    this.isSilent = false;
  }

  private deliver(words: string): void {
    const { network, clock } = this.world;
    if (words !== '') {
      for (const transit of this.on(words)) {
        network.deliver(transit);
        clock.advance(0);
      }
      return;
    }
    for (let transit = network.waiting[0]; transit !== undefined; transit = network.waiting[0]) {
      network.deliver(transit);
      clock.advance(0);
    }
  }

  /** The messages that wait on a link, `a->b`. */
  private on(words: string): Waiting[] {
    const [from, to] = link(words, '->');
    const found = this.world.network.waiting.filter((transit) => transit.from === from && transit.to === to);
    if (found.length === 0) this.say('(nothing)');
    return found;
  }

  private manual(verb: 'split' | 'merge' | 'rebucket' | 'withdraw', words: readonly string[]): ManualOperation {
    const [cluster = '', hash = '0', ...more] = words;
    switch (verb) {
      case 'split': {
        const segmentId = this.segmentAt(cluster, hash);
        return more[0] === 'at'
          ? { type: 'split', segmentId, at: more.slice(1).map(hexNumber) }
          : { type: 'split', segmentId };
      }
      case 'merge':
        return { type: 'merge', boundary: hexNumber(hash) };
      case 'rebucket':
        return {
          type: 'rebucket',
          segmentId: this.segmentAt(cluster, hash),
          splits: equalWidthSplits(Number(more[0])),
        };
      case 'withdraw': {
        if (hash !== 'buckets') return { type: 'withdraw', boundary: hexNumber(hash) };
        return {
          type: 'withdraw',
          range: findActiveSegment(this.world.layout(cluster), hexNumber(more[0] ?? '0')).range,
        };
      }
    }
  }

  /** `8000 4000` are segment boundaries; `buckets=4` calls cold all but four equal-width buckets, everywhere. */
  private marks(cluster: string, words: readonly string[]): ColdMarks {
    const state = this.world.state(cluster);
    const kept = optionsIn(words).get('buckets');
    const keep = kept === undefined ? undefined : equalWidthSplits(Number(kept));
    const cells = state === undefined || keep === undefined ? [] : statedShape(state).cells;
    return {
      segments: words
        .filter((word) => /^[0-9a-f]+$/.test(word))
        .map(hexNumber)
        .sort((a, b) => a - b),
      buckets: cells.flatMap(({ range, entryBucketSplits }) => {
        const boundaries = entryBucketSplits.filter((boundary) => !keep?.includes(boundary));
        return boundaries.length === 0 ? [] : [{ range, boundaries }];
      }),
    };
  }

  private segmentAt(cluster: string, hash: string): number {
    return findActiveSegment(this.world.layout(cluster), hexNumber(hash)).segmentId;
  }

  private show(): void {
    for (const cluster of this.world.clusters) {
      const layout = this.world.layout(cluster);
      const state = this.world.state(cluster);
      const stated = state === undefined ? undefined : statedShape(state);
      const isOnTheWay = stated !== undefined && !equalShapes(stated, shapeOf(layout));
      const marks = state?.policyMarks === undefined ? undefined : controllerStatus(state, START_MS).coldMarks;
      const more = [isOnTheWay ? `goal ${shapeText(stated)}` : '', state === undefined ? 'no leader' : coldText(marks)];
      this.say([cluster, layoutText(layout), ...more.filter((text) => text !== '')].join('  '));
    }
  }

  private status(cluster: string): void {
    const state = this.world.state(cluster);
    if (state === undefined) return this.say('no leader');
    const { peers, unheard, effectiveCaps: caps } = controllerStatus(state, this.world.clock.nowMs);
    this.say(`caps ${caps.maxSegments}x${caps.maxEntryBucketsPerSegment}  unheard ${unheard.join(' ') || 'none'}`);
    for (const peer of peers) {
      const parts = [
        `${peer.cluster} ${peer.condition}`,
        `converged ${rangesText(peer.converged)}`,
        `diverged ${rangesText(peer.diverged)}`,
        `acked ${peer.ackedEpoch ?? 'nothing'}`,
        ...peer.mismatches.map(({ cap, own, theirs }) => `${cap} ${own} here, ${theirs} there`),
        ...(peer.leftOut ? ['left out'] : []),
        ...(peer.wentBack ? ['went back'] : []),
        ...(peer.lastError === undefined ? [] : [`error ${peer.lastError}`]),
      ];
      this.say(parts.join('; '));
    }
  }
}

function eventLine(event: WorldEvent): string | undefined {
  switch (event.type) {
    case 'push':
      return undefined;
    case 'arrival':
      return `${event.from} -> ${event.to}  ${stateText(event.state)}`;
    case 'answer': {
      const { state, error } = event.result;
      const parts = [...(error === undefined ? [] : [error.code]), ...(state === undefined ? [] : [stateText(state)])];
      return `${event.from} => ${event.to}  ${parts.join(': ')}`;
    }
    case 'pushFailed':
      return `${event.from} could not reach ${event.to}: ${event.reason}`;
    case 'written': {
      const how = event.operation === undefined ? 'writes' : operationText(event.operation);
      return `${event.cluster} ${how}  ${layoutText(event.layout)}`;
    }
    case 'changeFailed':
      return `${event.cluster} could not write: ${event.reason}`;
    case 'report':
      return `${event.cluster} reports ${reportText(event.report)}`;
  }
}

function operationText(operation: Operation): string {
  if (operation.type === 'merge') return `merges ${operation.leftId} and ${operation.rightId}`;
  if (operation.type === 'split') return `splits ${operation.segmentId}`;
  return `rebuckets ${operation.segmentId} to ${operation.buckets}`;
}

function reportText(report: ControllerReport): string {
  switch (report.type) {
    case 'markDropped':
      return `the mark of ${report.boundaries.map(hexText).join(' ')} dropped`;
    case 'capped':
      return `${report.action} capped`;
    case 'deferred':
      return `${report.action} deferred, unheard: ${report.unheard.join(' ')}`;
    case 'leftOut':
      return `${report.peer} left out`;
    case 'wentBack':
      return `${report.peer} went back to e${report.epoch}`;
  }
}

function stateText({ epoch, shape, coldMarks }: PeerState): string {
  return [`e${epoch}`, shapeText(shape), coldText(coldMarks)].filter((text) => text !== '').join('  ');
}

/** Nothing for no marks; a question mark for a state that does not say. */
function coldText(cold: ColdMarks | undefined): string {
  if (cold === undefined) return 'cold ?';
  const buckets = cold.buckets.map(
    ({ range, boundaries }) => `${hexText(range.start)}/(${boundaries.map(hexText).join(' ')})`,
  );
  const all = [...cold.segments.map(hexText), ...buckets];
  return all.length === 0 ? '' : `cold ${all.join(' ')}`;
}

function rangesText(ranges: readonly HashRange[]): string {
  return ranges.length === 0 ? '-' : ranges.map(formatRange).join(' ');
}

function optionsIn(words: readonly string[]): ReadonlyMap<string, string> {
  return new Map(words.flatMap((word) => (word.includes('=') ? [word.split('=') as [string, string]] : [])));
}

function layoutFrom(options: ReadonlyMap<string, string>): Layout {
  const at = options.get('at');
  const first =
    at === undefined
      ? { segments: Number(options.get('segments') ?? 1) }
      : { boundaries: at.split(',').map(hexNumber) };
  return createLayout({ ...first, buckets: Number(options.get('buckets') ?? 1), nowMs: START_MS });
}

function interference(layout: Layout, verb: string, hash: string): Layout {
  const { segmentId, range } = findActiveSegment(layout, hexNumber(hash));
  if (verb === 'split') return splitSegment(layout, segmentId, { bucketPolicy: 'divide', nowMs: START_MS });
  const left = findActiveSegment(layout, range.start - 1);
  return mergeSegments(layout, left.segmentId, segmentId, { bucketPolicy: 'sum', nowMs: START_MS });
}

function link(words: string, between: string): [string, string] {
  const [a = '', b = ''] = words.split(between);
  return [a, b];
}

function milliseconds(text: string): number {
  const [, amount = '0', unit = 's'] = /^(\d+)(ms|s|m|h)$/.exec(text) ?? [];
  return Number(amount) * ({ ms: 1, s: 1000, m: 60_000, h: 3_600_000 }[unit] ?? 1);
}
