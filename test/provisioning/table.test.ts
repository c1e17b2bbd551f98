/**
 * The decision table: every cell lies in one rule, every cell is reached by real shapes, and what comes out obeys laws
 * that are told here without the table. Then the rows that PIP-370 and its review speak of, one by one.
 */
import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { SEEN } from '../../scripts/provisioning-seen.js';
import {
  cellOf,
  covers,
  decideProvisioning,
  everyCell,
  type LocalKind,
  PROVISIONING_OUTCOMES,
  PROVISIONING_PHASES,
  PROVISIONING_REASONS,
  PROVISIONING_TABLE,
  type ProvisioningCell,
  type ProvisioningDecision,
  type ProvisioningInput,
  partitionsOf,
  provisioningMarkdown,
  type RemoteKind,
  type TopicShape,
} from '../../src/provisioning/index.js';
import {
  arbPolicy,
  arbTopicShape,
  beyond,
  both,
  halfMade,
  missing,
  mixed,
  noNamespace,
  orphans,
  partitioned,
  plain,
  policy,
  scalable,
  unreachable,
} from './shapes.js';

const cells = [...everyCell()];
const named: TopicShape = { type: 'nonPartitioned', partitionNamed: true };

/** Local topics of each kind. A partitioned one has three partitions, a scalable one two segments. */
const LOCALS: Readonly<Record<LocalKind, readonly TopicShape[]>> = {
  nonPartitioned: [plain],
  partitionNamed: [named],
  partitioned: [partitioned(3), partitioned(3, 1), beyond(3, 4)],
  scalable: [scalable(0, 0x8000)],
  irregular: [orphans(0), mixed(2), halfMade(0), both],
  missing: [missing, noNamespace],
  unknown: [unreachable],
};

/** What each kind of remote is towards them. */
const REMOTES: Readonly<Record<RemoteKind, readonly TopicShape[]>> = {
  any: [
    missing,
    plain,
    partitioned(3),
    orphans(1),
    beyond(2, 3),
    mixed(3),
    scalable(0),
    halfMade(0),
    both,
    unreachable,
  ],
  unknown: [unreachable, { type: 'unknown', failure: 'unauthorized', reason: '401' }],
  namespaceMissing: [noNamespace],
  mixed: [mixed(3)],
  both: [both],
  scalablePartial: [halfMade(0, 0x8000)],
  missing: [missing],
  nonPartitioned: [plain],
  partitioned: [partitioned(1), partitioned(3), partitioned(3, 0), beyond(3, 5)],
  orphans: [orphans(0), orphans(0, 1, 2), orphans(7)],
  scalable: [scalable(0), scalable(0, 0x8000)],
  equal: [partitioned(3)],
  equalAbsent: [partitioned(3, 0), partitioned(3, 0, 1, 2), { ...beyond(3, 4), absent: [2] } as TopicShape],
  equalBeyond: [beyond(3, 3), beyond(3, 5, 6)],
  smaller: [partitioned(2), partitioned(1), partitioned(2, 1)],
  smallerBeyond: [beyond(2, 2), beyond(1, 4)],
  larger: [partitioned(4), partitioned(5, 4), beyond(4, 7)],
  orphansBelow: [orphans(0), orphans(0, 1, 2), orphans(2)],
  orphansAbove: [orphans(3), orphans(0, 7)],
  sameSegments: [scalable(0, 0x8000)],
  otherSegments: [scalable(0), scalable(0, 0x4000, 0x8000), scalable(0, 0x4000)],
};

const sides = [...new Map(cells.map((cell) => [`${cell.local} against ${cell.remote}`, cell])).keys()];

function inputsOf(cell: ProvisioningCell): ProvisioningInput[] {
  const { create, mismatch, sameShape, phase } = cell;
  const allowed = {
    createTopicToRemoteCluster: create,
    onPartitionMismatch: mismatch,
    requireSameShape: sameShape,
  };
  return LOCALS[cell.local].flatMap((local) =>
    REMOTES[cell.remote].map((remote) => ({ local, remote, policy: allowed, phase })),
  );
}

/** The laws of provisioning, as what is broken of them. */
function broken(input: ProvisioningInput, decision: ProvisioningDecision): string[] {
  const { local, remote, phase, policy: allowed } = input;
  const [here, there] = [partitionsOf(local), partitionsOf(remote)];
  const isPartitioned = ({ type }: TopicShape) => type === 'partitioned' || type === 'partitionedAndOrphans';
  const isIrregular = ({ type }: TopicShape) => ['both', 'mixed', 'scalablePartial'].includes(type);
  const isUnequal = isPartitioned(local) && isPartitioned(remote) && here !== there;
  const isSound = ['nonPartitioned', 'partitioned', 'partitionedAndOrphans', 'scalable'].includes(local.type);
  const laws: [string, boolean][] = [
    ['with creation off nothing is created', allowed.createTopicToRemoteCluster || decision.type !== 'create'],
    ['what is unknown creates nothing', ![local.type, remote.type].includes('unknown') || decision.type !== 'create'],
    ['an unknown remote changes nothing', !(isSound && remote.type === 'unknown') || decision.type === 'hold'],
    ['an unknown local topic changes nothing', local.type !== 'unknown' || decision.type === 'hold'],
    ['only what is unknown is held', decision.type !== 'hold' || [local.type, remote.type].includes('unknown')],
    ['irregular shapes stop', !(isIrregular(remote) && isSound) || decision.type === 'stop'],
    ['no local topic, nothing done', isSound || !['create', 'replicate'].includes(decision.type)],
    ['no namespace is made up', remote.type !== 'namespaceMissing' || decision.type !== 'create'],
    ['unequal counts are named', !isUnequal || [here, there].every((count) => decision.message.includes(`${count}`))],
    [
      'unequal counts run by one policy only',
      !(isUnequal && decision.type === 'replicate') ||
        (allowed.onPartitionMismatch === 'replicateMatching' && !allowed.requireSameShape),
    ],
    ['a name with a partition suffix is not created', decision.type !== 'create' || local !== named],
    ['a lost topic is not made at once', phase !== 'running' || decision.type !== 'create' || isUnequal],
  ];
  if (decision.type === 'create') laws.push(...lawsOfCreation(input, decision.creation));
  if (decision.type === 'replicate') laws.push(...lawsOfScope(input, decision.scope));
  return laws.filter(([, holds]) => !holds).map(([law]) => law);
}

type Create = Extract<ProvisioningDecision, { type: 'create' }>['creation'];
type Scope = Extract<ProvisioningDecision, { type: 'replicate' }>['scope'];

function lawsOfCreation(
  { local, remote, policy: allowed, phase }: ProvisioningInput,
  creation: Create,
): [string, boolean][] {
  const isClassic = local.type !== 'scalable';
  const found = remote.type;
  switch (creation.type) {
    case 'createPlain':
      return [['a plain topic where there is nothing', local.type === 'nonPartitioned' && found === 'missing']];
    case 'createScalable':
      return [['a scalable topic where there is nothing', !isClassic && found === 'missing']];
    case 'createPartitioned':
      return [
        ['a record where there is none', found === 'missing' || found === 'orphans'],
        ['with the local count', creation.partitions === partitionsOf(local)],
        ['no partition is left out', found !== 'orphans' || Math.max(...remote.indices) < creation.partitions],
      ];
    case 'completePartitions':
      return [['only what is promised', 'absent' in remote && remote.absent.length > 0 && isClassic]];
    case 'expandPartitions':
      return [
        ['with the local count', creation.partitions === partitionsOf(local)],
        ['only more', creation.partitions > partitionsOf(remote)],
        ['not beside orphans', found === 'partitioned'],
        ['because somebody wants it', allowed.onPartitionMismatch === 'expand' || phase === 'updated'],
      ];
  }
}

function lawsOfScope({ local, remote }: ProvisioningInput, scope: Scope): [string, boolean][] {
  if (scope.type !== 'partitioned')
    return [['one kind on both sides', local.type === remote.type && scope.type === local.type]];
  const absent = 'absent' in remote ? remote.absent : [];
  const common = Math.min(partitionsOf(local), partitionsOf(remote));
  return [
    ['partitions on both sides', common > 0],
    ['only partitions that exist', scope.partitions.every((index) => index < common && !absent.includes(index))],
    ['all of them', scope.partitions.length === common - absent.filter((index) => index < common).length],
  ];
}

/** Where a decision is not the one of the cell that it was made for, or is against a law. */
function faultsOf(cell: ProvisioningCell, input: ProvisioningInput): string[] {
  const rule = PROVISIONING_TABLE.find((each) => covers(each, cell));
  const decision = decideProvisioning(input);
  const faults = broken(input, decision);
  if (JSON.stringify(cellOf(input)) !== JSON.stringify(cell)) faults.push('it lies in another cell');
  if (decision.outcome !== rule?.outcome || decision.reason !== rule.reason) faults.push('the rule says otherwise');
  return faults.map((fault) => `${JSON.stringify(input)}: ${fault}`);
}

describe('the table', () => {
  it('has every cell in exactly one rule, and needs every rule, outcome and reason', () => {
    const rulesOf = (cell: ProvisioningCell) => PROVISIONING_TABLE.filter((rule) => covers(rule, cell)).length;
    expect(cells.filter((cell) => rulesOf(cell) !== 1)).toEqual([]);
    expect(PROVISIONING_TABLE.filter((rule) => !cells.some((cell) => covers(rule, cell)))).toEqual([]);
    expect(new Set(PROVISIONING_TABLE.map(({ outcome }) => outcome))).toEqual(
      new Set(Object.keys(PROVISIONING_OUTCOMES)),
    );
    expect(new Set(PROVISIONING_TABLE.map(({ reason }) => reason))).toEqual(new Set(Object.keys(PROVISIONING_REASONS)));
  });

  it.each(sides)('%s: every policy and phase is decided by its cell, and within the laws', (side) => {
    const faults = cells
      .filter(({ local, remote }) => side === `${local} against ${remote}`)
      .flatMap((cell) => inputsOf(cell).flatMap((input) => faultsOf(cell, input)));
    expect(faults).toEqual([]);
  });

  it('decides any two shapes within the laws', () => {
    const arbInput = fc.record({
      local: arbTopicShape,
      remote: arbTopicShape,
      policy: arbPolicy,
      phase: fc.constantFrom(...PROVISIONING_PHASES),
    });
    const law = (input: ProvisioningInput) => broken(input, decideProvisioning(input)).length === 0;
    fc.assert(fc.property(arbInput, law), { numRuns: 2_000 });
  });

  it('is what the page of the docs shows', () => {
    const page = readFileSync(new URL('../../docs/provisioning.md', import.meta.url), 'utf8');
    expect(page.includes(`begin -->\n\n${provisioningMarkdown(SEEN)}\n\n<!--`)).toBe(true);
  });

  it('stands beside what released brokers do: once for a cell, in cells that there are', () => {
    const sides = SEEN.map(({ local, remote, phase }) => `${local} against ${remote}, ${phase}`);
    expect(new Set(sides).size).toBe(sides.length);
    const known = new Set(cells.map(({ local, remote, phase }) => `${local} against ${remote}, ${phase}`));
    expect(sides.filter((side) => !known.has(side))).toEqual([]);
    const [row] = provisioningMarkdown(SEEN.slice(0, 1))
      .split('\n')
      .filter((line) => line.includes('| waiting |'));
    expect(row).toMatch(
      /^\| plain \| no topic \| waiting \| .* \| `createPlain`: `topicMissing` \| .* \| `wait`: `topicMissing` \|$/,
    );
  });
});

/** What becomes of a local and a remote topic while nothing is replicated: the outcome and its reason. */
function outcomeOf(local: TopicShape, remote: TopicShape, allowed = policy()): string {
  const { outcome, reason } = decideProvisioning({ local, remote, policy: allowed, phase: 'waiting' });
  return `${outcome}: ${reason}`;
}

describe('PIP-370', () => {
  const off = policy({ createTopicToRemoteCluster: false });
  const phase2 = policy({ onPartitionMismatch: 'expand' });
  const asFirstWritten = policy({ onPartitionMismatch: 'replicateMatching' });

  it.each([
    ['(2, missing)', partitioned(2), missing, 'createPartitioned: topicMissing', 'createPartitioned: topicMissing'],
    ['(2, 1)', partitioned(2), partitioned(1), 'stop: partitionMismatch', 'expandPartitions: partitionMismatch'],
    ['(2, 2)', partitioned(2), partitioned(2), 'replicate: sameShape', 'replicate: sameShape'],
    ['(2, 4)', partitioned(2), partitioned(4), 'stop: partitionMismatch', 'stop: partitionMismatch'],
    ['(2, 0)', partitioned(2), plain, 'stop: typeMismatch', 'stop: typeMismatch'],
    ['(0, missing)', plain, missing, 'createPlain: topicMissing', 'createPlain: topicMissing'],
    ['(0, 0)', plain, plain, 'replicate: sameShape', 'replicate: sameShape'],
    ['(0, 2)', plain, partitioned(2), 'stop: typeMismatch', 'stop: typeMismatch'],
  ])('B61: %s with creation on, in phase 1 and in phase 2', (_, local, remote, first, second) => {
    expect(outcomeOf(local, remote)).toBe(first);
    expect(outcomeOf(local, remote, phase2)).toBe(second);
  });

  it.each([
    ['(2, missing)', partitioned(2), missing, 'wait: topicMissing'],
    ['(0, missing)', plain, missing, 'wait: topicMissing'],
    ['(2, 1)', partitioned(2), partitioned(1), 'stop: partitionMismatch'],
    ['(2, 2)', partitioned(2), partitioned(2), 'replicate: sameShape'],
    ['(2, 4)', partitioned(2), partitioned(4), 'stop: partitionMismatch'],
    ['(2, 0)', partitioned(2), plain, 'stop: typeMismatch'],
    ['(0, 2)', plain, partitioned(2), 'stop: typeMismatch'],
  ])('B61: %s with creation off, in both phases', (_, local, remote, outcome) => {
    expect(outcomeOf(local, remote, off)).toBe(outcome);
    expect(outcomeOf(local, remote, { ...off, onPartitionMismatch: 'expand' })).toBe(outcome);
  });

  it('B61: matching partitions are copied where that is chosen, and the same shape is not asked for', () => {
    expect(outcomeOf(partitioned(2), partitioned(4), asFirstWritten)).toBe('replicateMatching: partitionMismatch');
    expect(outcomeOf(partitioned(2), partitioned(4), { ...asFirstWritten, requireSameShape: true })).toBe(
      'stop: partitionMismatch',
    );
  });

  it('B61: a remote that is too old to be looked at safely changes nothing, whatever is allowed', () => {
    const tooOld: TopicShape = { type: 'unknown', failure: 'unsupported', reason: 'a look-up could create' };
    for (const allowed of [policy(), off, phase2, asFirstWritten]) {
      expect(outcomeOf(partitioned(2), tooOld, allowed)).toBe('hold: remoteUnknown');
    }
  });

  it('B61: the reason of a stop names both numbers', () => {
    const { message } = decideProvisioning({
      local: partitioned(3),
      remote: partitioned(5),
      policy: policy(),
      phase: 'running',
    });
    expect(message).toBe('local: 3 partitions; remote: 5 partitions');
  });

  it('whoever expands the local topic by a call has decided for both', () => {
    const input = { local: partitioned(5), remote: partitioned(3), policy: policy() } as const;
    expect(decideProvisioning({ ...input, phase: 'running' }).outcome).toBe('stop');
    expect(decideProvisioning({ ...input, phase: 'updated' })).toMatchObject({
      creation: { type: 'expandPartitions', partitions: 5 },
    });
    expect(decideProvisioning({ ...input, policy: off, phase: 'updated' }).outcome).toBe('stop');
  });

  it('B58: partitions without a record are completed when creation is allowed, with the local count', () => {
    const local = partitioned(2);
    expect(outcomeOf(local, orphans(0, 1))).toBe('createPartitioned: orphansWithoutRecord');
    expect(outcomeOf(local, partitioned(2, 0, 1))).toBe('completePartitions: partitionsAbsent');
    expect(outcomeOf(local, orphans(0, 1), off)).toBe('wait: orphansWithoutRecord');
    expect(outcomeOf(local, orphans(0, 2))).toBe('stop: orphansAboveCount');
    expect(outcomeOf(plain, orphans(0, 1))).toBe('stop: orphansWithoutRecord');
  });
});
