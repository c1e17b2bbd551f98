/**
 * What unmodified Pulsar 5.0.1 brokers were seen to do in the cells of the provisioning table, on two live clusters with
 * classic geo-replication from one to the other. The page of the docs has it beside what isthmus does.
 */
import type { provisioningMarkdown } from '../src/provisioning/index.js';

type Seen = NonNullable<Parameters<typeof provisioningMarkdown>[0]>;

const RUNS = 'replicates';
const STUCK = 'does not begin; tries again for ever, and the admin REST shows no more than `connected: false`';
const NOTHING = 'does not replicate, and creates nothing';

export const SEEN: Seen = [
  {
    local: 'nonPartitioned',
    remote: 'missing',
    phase: 'waiting',
    on: 'creates a plain topic, and replicates',
    off: STUCK,
  },
  { local: 'nonPartitioned', remote: 'nonPartitioned', phase: 'waiting', on: RUNS, off: RUNS },
  { local: 'nonPartitioned', remote: 'partitioned', phase: 'waiting', on: STUCK, off: STUCK },
  {
    local: 'nonPartitioned',
    remote: 'orphans',
    phase: 'waiting',
    on: 'creates a plain topic beside the partitions, and replicates',
    off: STUCK,
  },
  {
    local: 'nonPartitioned',
    remote: 'scalable',
    phase: 'waiting',
    on: 'creates a plain topic beside the scalable one, and replicates',
    off: STUCK,
  },
  {
    local: 'nonPartitioned',
    remote: 'missing',
    phase: 'running',
    on: 'creates it again within a second',
    off: 'its reconnecting producer creates it again in 0.15 s where the remote allows auto-creation; where it does not, the broker tries without a pause and fills its log (23 MB a second for three topics)',
  },
  {
    local: 'nonPartitioned',
    remote: 'namespaceMissing',
    phase: 'waiting',
    on: 'tries again; replicates a second after the namespace is there',
  },
  {
    local: 'nonPartitioned',
    remote: 'unknown',
    phase: 'waiting',
    on: 'tries again, with an error in the log each time',
    off: 'tries again, with an error in the log each time',
  },
  {
    local: 'partitioned',
    remote: 'missing',
    phase: 'waiting',
    on: 'creates the partitioned topic with the local count, and replicates',
    off: STUCK,
  },
  {
    local: 'partitioned',
    remote: 'nonPartitioned',
    phase: 'waiting',
    on: 'does not begin; enabling replication of the topic is refused (412)',
    off: STUCK,
  },
  { local: 'partitioned', remote: 'equal', phase: 'waiting', on: RUNS, off: RUNS },
  {
    local: 'partitioned',
    remote: 'equalAbsent',
    phase: 'waiting',
    off: 'its producers create the partitions, even where the remote forbids auto-creation',
  },
  {
    local: 'partitioned',
    remote: 'smaller',
    phase: 'waiting',
    on: 'does not begin, the matching partitions included; where replication is enabled on the topic, or the topic is created later, it leaves partition topics on the remote that its record does not cover',
    off: STUCK,
  },
  {
    local: 'partitioned',
    remote: 'smaller',
    phase: 'updated',
    on: 'expands the remote at once',
    off: 'expands the remote at once, all the same',
  },
  {
    local: 'partitioned',
    remote: 'larger',
    phase: 'waiting',
    on: 'does not begin; enabling replication of the topic is refused (412)',
    off: STUCK,
  },
  {
    local: 'partitioned',
    remote: 'larger',
    phase: 'running',
    on: 'goes on; whatever is restarted later does not begin again',
  },
  {
    local: 'partitioned',
    remote: 'larger',
    phase: 'updated',
    on: 'is refused by the remote (422), and the local topic stays expanded',
  },
  {
    local: 'partitioned',
    remote: 'orphansBelow',
    phase: 'waiting',
    on: 'creates the record with the local count, and replicates',
    off: STUCK,
  },
  {
    local: 'partitioned',
    remote: 'scalable',
    phase: 'waiting',
    on: 'creates the partitioned topic beside the scalable one, and replicates',
    off: STUCK,
  },
  ...(['missing', 'nonPartitioned', 'partitioned', 'orphans', 'sameSegments', 'otherSegments'] as const).map(
    (remote) => ({ local: 'scalable' as const, remote, phase: 'waiting' as const, on: NOTHING, off: NOTHING }),
  ),
];
