/** The decision table as Markdown: the page of the docs is written from it, so that the two cannot drift apart. */
import { type LocalKind, PROVISIONING_PHASES, type ProvisioningPhase, REMOTE_KINDS, type RemoteKind } from './cells.js';
import { ruleOf } from './decide.js';
import { ON_PARTITION_MISMATCH } from './policy.js';
import { PROVISIONING_REASONS } from './reasons.js';
import { PROVISIONING_OUTCOMES, PROVISIONING_TABLE, type ProvisioningRule } from './table.js';

const LOCAL: Readonly<Record<LocalKind, string>> = {
  nonPartitioned: 'plain',
  partitionNamed: 'plain, named like a partition',
  partitioned: 'n partitions',
  scalable: 'scalable',
  irregular: 'mixed, both kinds, half made, or without its record',
  missing: 'no topic, or no namespace',
  unknown: 'unknown',
};

const REMOTE: Readonly<Record<RemoteKind, string>> = {
  any: 'any',
  unknown: 'unknown',
  namespaceMissing: 'no namespace',
  mixed: 'a record and a plain topic',
  both: 'scalable and classic',
  scalablePartial: 'scalable, segments missing',
  missing: 'no topic',
  nonPartitioned: 'plain',
  partitioned: 'partitioned',
  orphans: 'partitions without a record',
  scalable: 'scalable',
  equal: 'n partitions',
  equalAbsent: 'a record of n, partitions missing',
  equalBeyond: 'n partitions, and more beyond the record',
  smaller: 'fewer than n',
  smallerBeyond: 'fewer than n, and more beyond the record',
  larger: 'more than n',
  orphansBelow: 'partitions below n without a record',
  orphansAbove: 'partitions without a record, some at n or above',
  sameSegments: 'scalable, the same segments',
  otherSegments: 'scalable, other segments',
};

/**
 * The table, its outcomes and its reasons, as Markdown tables with headings of the third level. `seen` is what released
 * brokers were seen to do in some cells, with creation on and off, in words: it is shown beside what is decided here.
 */
export function provisioningMarkdown(
  seen: readonly {
    readonly local: LocalKind;
    readonly remote: RemoteKind;
    readonly phase: ProvisioningPhase;
    readonly on?: string;
    readonly off?: string;
  }[] = [],
): string {
  const columns = ['Local', 'Remote', 'Creation', 'Partition mismatch', 'Same shape', 'Phase', 'Outcome', 'Reason'];
  return [
    '### Cells',
    table(columns, PROVISIONING_TABLE.map(row)),
    ...(seen.length === 0 ? [] : ['### Beside Pulsar 5.0.1', table(SEEN_COLUMNS, seen.map(seenRow))]),
    '### Outcomes',
    table(['Outcome', 'What it means'], Object.entries(PROVISIONING_OUTCOMES).map(codeFirst)),
    '### Reasons',
    table(['Reason', 'What it says, and what to do'], Object.entries(PROVISIONING_REASONS).map(codeFirst)),
  ].join('\n\n');
}

function row({ local, remote, create, mismatch, sameShape, phases, outcome, reason }: ProvisioningRule): string[] {
  const isEveryKind = remote.every((kind) => kind !== 'any') && local.length === locals.length;
  return [
    isEveryKind ? 'any other kind' : local.map((kind) => LOCAL[kind]).join('; '),
    remote.map((kind) => REMOTE[kind]).join('; '),
    create === undefined ? ANY : create ? 'on' : 'off',
    mismatch === undefined || mismatch.length === ON_PARTITION_MISMATCH.length ? ANY : mismatch.map(code).join(', '),
    sameShape === undefined ? ANY : sameShape ? 'required' : 'not required',
    phases === undefined || phases.length === PROVISIONING_PHASES.length ? ANY : phases.join(', '),
    code(outcome),
    code(reason),
  ];
}

const ANY = 'any';

const SEEN_COLUMNS = [
  'Local',
  'Remote',
  'Phase',
  '5.0.1, creation on',
  'isthmus, creation on',
  '5.0.1, creation off',
  'isthmus, creation off',
];

type Seen = NonNullable<Parameters<typeof provisioningMarkdown>[0]>[number];

function seenRow({ local, remote, phase, on = '-', off = '-' }: Seen): string[] {
  const decided = (create: boolean) => {
    const { outcome, reason } = ruleOf({ local, remote, create, mismatch: 'stop', sameShape: false, phase });
    return `${code(outcome)}: ${code(reason)}`;
  };
  return [LOCAL[local], REMOTE[remote], phase, on, decided(true), off, decided(false)];
}

/** The kinds of local topic that do not decide alone. */
const locals = Object.entries(REMOTE_KINDS).filter(([, kinds]) => kinds.length > 1);

function codeFirst([name, text]: readonly [string, string]): string[] {
  return [code(name), text];
}

function code(text: string): string {
  return `\`${text}\``;
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  return [head, head.map(() => '---'), ...rows].map((cells) => `| ${cells.join(' | ')} |`).join('\n');
}
