/**
 * Acceptance suite for `TopicAdmin`: the same tests that the adapters here pass. It is given the test function of the
 * runner, `it` or `test`, and a `setup` that lends a cluster for each test. Answers of creating calls are not believed:
 * after each the suite looks at what there is. Each message of a failure is the rule that is broken.
 */
import type { CreationResult, ListedSegment, TopicAdmin, TopicName } from '../ports/index.js';
import type { LookUp } from '../provisioning/index.js';
import { check, onFresh, type RegisterTest, type SuiteSetup } from './suite.js';

/** A cluster, and a namespace of it with nothing in it, which lets no topic be made by itself. */
export interface TopicAdminSetup extends SuiteSetup {
  readonly admin: TopicAdmin;
  readonly namespace: Pick<TopicName, 'tenant' | 'namespace'>;
  /** Makes partition topics of a name without a record, and tells their indices, all below 3. */
  makeOrphans(topic: TopicName): Promise<readonly number[]> | readonly number[];
  /** Deletes one partition topic of a record, as an operator can by its own name. */
  deletePartition(topic: TopicName, index: number): Promise<void> | void;
  /** Deletes the segment topic of an active segment, past the layout. */
  deleteSegment(topic: TopicName, segment: ListedSegment): Promise<void> | void;
  /** Takes the cluster down, as the administration sees it, or up again. */
  setReachable(isReachable: boolean): Promise<void> | void;
}

/** Lends a cluster for one test. */
export type TopicAdminFactory = () => Promise<TopicAdminSetup> | TopicAdminSetup;

/** Registers the tests of `TopicAdmin`. */
export function testTopicAdmin(setup: TopicAdminFactory, test: RegisterTest): void {
  const using = onFresh(setup);
  const name = (what: string) => `TopicAdmin: ${what}`;

  test(
    name('what is not there is missing, and no look-up makes it'),
    using(async ({ admin, namespace }) => {
      const seen = new Looking(admin, { ...namespace, name: 'nothing' });
      for (let times = 0; times < 2; times++) {
        check((await seen.namespace()).type === 'found', 'a namespace that is there is not found');
        check((await seen.partitions()).type === 'missing', 'a topic that is not there is not missing');
        check((await seen.segments()).type === 'missing', 'a scalable topic that is not there is not missing');
        check((await seen.listed()).length === 0, 'a look-up has made a topic, or a name is listed that is not there');
      }
    }),
  );

  test(
    name('a namespace that is not there is missing, and neither a look-up nor the creation of a topic makes it'),
    using(async ({ admin, namespace }) => {
      const seen = new Looking(admin, { ...namespace, namespace: `${namespace.namespace}-none`, name: 'orders' });
      const isMissing = async () => (await seen.namespace()).type === 'missing';
      check(await isMissing(), 'a namespace that is not there is not missing');
      const asked: readonly LookUp<unknown>[] = [await seen.partitions(), await seen.segments()];
      check(!asked.some(({ type }) => type === 'found'), 'a topic of a namespace that is not there is found');
      check(await isMissing(), 'a look-up of a topic has made its namespace');
      const made = [await seen.create('createPlain'), await seen.create('createPartitioned', 2)];
      check(!made.some(({ type }) => type === 'done'), 'a topic is created where there is no namespace');
      check(await isMissing(), 'the creation of a topic has made its namespace');
    }),
  );

  test(
    name('a plain topic has no partitions, goes by its own name only, and is not created twice'),
    using(async ({ admin, namespace }) => {
      const seen = new Looking(admin, { ...namespace, name: 'orders' });
      checkType(await seen.create('createPlain'), 'done', 'the creation of a plain topic');
      await seen.expect(0, ['orders'], 'a plain topic');
      for (const other of ['order', 'orders2', 'Orders', 'orders-partition-0']) {
        const { type } = await new Looking(admin, { ...namespace, name: other }).partitions();
        check(type === 'missing', 'a topic is taken for another of nearly its name');
      }
      checkType(await seen.create('createPlain'), 'conflict', 'creating a plain topic that is there');
      checkType(await seen.create('createPartitioned', 2), 'conflict', 'giving partitions to a plain topic');
      await seen.expect(0, ['orders'], 'a plain topic after refusals');
    }),
  );

  test(
    name('a partitioned topic has its record and each partition topic by its own name, and is not created twice'),
    using(async ({ admin, namespace }) => {
      const seen = new Looking(admin, { ...namespace, name: 'orders' });
      checkType(await seen.create('createPartitioned', 3), 'done', 'the creation of a partitioned topic');
      await seen.expect(3, partitions(0, 1, 2), 'a partitioned topic');
      const partition = async (index: number) =>
        new Looking(admin, { ...namespace, name: `orders-partition-${index}` }).partitions();
      const own = await partition(2);
      check(own.type === 'found' && own.value === 0, 'a partition topic is not found as the plain topic that it is');
      check((await partition(3)).type === 'missing', 'a partition topic that is not there is not missing');
      checkType(await seen.create('createPartitioned', 5), 'conflict', 'creating a partitioned topic that is there');
      checkType(await seen.create('createPlain'), 'conflict', 'creating a plain topic beside a record');
      await seen.expect(3, partitions(0, 1, 2), 'a partitioned topic after refusals');
    }),
  );

  test(
    name('creating takes in partition topics that are there without a record'),
    using(async ({ admin, namespace, makeOrphans }) => {
      const seen = new Looking(admin, { ...namespace, name: 'orders' });
      const orphans = await makeOrphans(seen.topic);
      await seen.expect(undefined, partitions(...orphans), 'what is there without a record');
      checkType(await seen.create('createPartitioned', 3), 'done', 'creating a record over partition topics');
      await seen.expect(3, partitions(0, 1, 2), 'a record over partition topics');
    }),
  );

  test(
    name('completing makes what the record promises and nothing else, as often as it is asked'),
    using(async ({ admin, namespace, deletePartition }) => {
      const seen = new Looking(admin, { ...namespace, name: 'orders' });
      check((await seen.create('completePartitions')).type !== 'done', 'there is nothing, and it is completed');
      await seen.expect(undefined, [], 'completing nothing');
      await seen.create('createPartitioned', 3);
      await deletePartition(seen.topic, 1);
      await seen.expect(3, partitions(0, 2), 'a record without one of its partition topics');
      for (let times = 0; times < 2; times++) {
        checkType(await seen.create('completePartitions'), 'done', 'completing a partitioned topic');
        await seen.expect(3, partitions(0, 1, 2), 'a completed topic');
      }
    }),
  );

  test(
    name('expanding raises a count with its partition topics, never lowers it, and makes no topic'),
    using(async ({ admin, namespace }) => {
      const seen = new Looking(admin, { ...namespace, name: 'orders' });
      check((await seen.create('expandPartitions', 2)).type !== 'done', 'there is nothing, and it is expanded');
      await seen.expect(undefined, [], 'expanding nothing');
      await seen.create('createPartitioned', 2);
      checkType(await seen.create('expandPartitions', 4), 'done', 'expanding a partitioned topic');
      await seen.expect(4, partitions(0, 1, 2, 3), 'an expanded topic');
      check((await seen.create('expandPartitions', 3)).type !== 'done', 'a count is lowered');
      await seen.expect(4, partitions(0, 1, 2, 3), 'a topic that was to be made smaller');
    }),
  );

  test(
    name('a scalable topic has the segments that were wanted, or as many equal ones, and is no classic topic'),
    using(async ({ admin, namespace }) => {
      const seen = new Looking(admin, { ...namespace, name: 'events' });
      checkType(await seen.createScalable([0, 0x8000], 2), 'done', 'the creation of a scalable topic');
      check(starts(await seen.layout()) === '0,32768', 'the segments are not those that were wanted');
      for (const segment of await seen.layout()) {
        check((await seen.segment(segment)).type === 'found', 'a segment that was created is not found');
      }
      await seen.expect(undefined, [], 'a scalable topic, asked for as a classic one');
      checkType(await seen.createScalable([0], 1), 'conflict', 'creating a scalable topic that is there');
      check(starts(await seen.layout()) === '0,32768', 'a creation that was refused has changed the segments');
      const uneven = new Looking(admin, { ...namespace, name: 'uneven' });
      await uneven.createScalable([0, 0x100], 4);
      const made = starts(await uneven.layout());
      check(['0,256', '0,16384,32768,49152'].includes(made), 'the segments are neither those wanted nor equal ones');
    }),
  );

  test(
    name('a segment without its topic is missing, and stays in the layout'),
    using(async ({ admin, namespace, deleteSegment }) => {
      const seen = new Looking(admin, { ...namespace, name: 'events' });
      await seen.createScalable([0, 0x8000], 2);
      const [gone, kept] = await seen.layout();
      check(gone !== undefined && kept !== undefined, 'two segments were created, and others are there');
      await deleteSegment(seen.topic, gone);
      for (let times = 0; times < 2; times++) {
        check((await seen.segment(gone)).type === 'missing', 'a segment whose topic was deleted is not missing');
      }
      check((await seen.segment(kept)).type === 'found', 'a segment is missing because another is');
      check((await seen.layout()).length === 2, 'a segment without its topic is not in the layout any more');
    }),
  );

  test(
    name('a cluster that does not answer is a failure as a value: nothing is missing, nothing found, nothing done'),
    using(async ({ admin, namespace, setReachable }) => {
      const seen = new Looking(admin, { ...namespace, name: 'orders' });
      await seen.create('createPlain');
      await setReachable(false);
      const asked: LookUp<unknown>[] = [await seen.namespace(), await seen.partitions(), await seen.names()];
      asked.push(await seen.segments(), await seen.segment({ segmentId: 0, start: 0 }));
      const wrong = asked.find(({ type }) => type !== 'failed');
      check(wrong === undefined, `a cluster that does not answer says ${wrong?.type}`);
      const made = [await seen.create('createPartitioned', 2), await seen.createScalable([0], 1)];
      made.push(await seen.create('completePartitions'), await seen.create('expandPartitions', 2));
      const believed = made.find(({ type }) => type !== 'failed');
      check(believed === undefined, `a creation that nobody answers is ${believed?.type}`);
      await setReachable(true);
      await seen.expect(0, ['orders'], 'a cluster that answers again');
    }),
  );
}

/** One name on a cluster, asked so that a rejection is told as what it is. */
class Looking {
  private readonly signal = new AbortController().signal;

  constructor(
    private readonly admin: TopicAdmin,
    readonly topic: TopicName,
  ) {}

  namespace(): Promise<LookUp<true>> {
    return asValue(this.admin.lookUps.namespace(this.topic, this.signal));
  }

  partitions(): Promise<LookUp<number>> {
    return asValue(this.admin.lookUps.partitions(this.topic, this.signal));
  }

  names(): Promise<LookUp<readonly string[]>> {
    return asValue(this.admin.lookUps.names(this.topic, this.signal));
  }

  segments(): Promise<LookUp<readonly ListedSegment[]>> {
    return asValue(this.admin.lookUps.segments(this.topic, this.signal));
  }

  segment(segment: ListedSegment): Promise<LookUp<true>> {
    return asValue(this.admin.lookUps.segment(this.topic, segment, this.signal));
  }

  async listed(): Promise<readonly string[]> {
    return found(await this.names(), 'the names of a namespace');
  }

  async layout(): Promise<readonly ListedSegment[]> {
    return found(await this.segments(), 'the segments of a scalable topic');
  }

  create(
    call: 'createPlain' | 'createPartitioned' | 'completePartitions' | 'expandPartitions',
    partitions = 0,
  ): Promise<CreationResult> {
    const { creations } = this.admin;
    const takesNoCount = call === 'createPlain' || call === 'completePartitions';
    return asValue(
      takesNoCount ? creations[call](this.topic, this.signal) : creations[call](this.topic, partitions, this.signal),
    );
  }

  createScalable(wanted: readonly number[], segments: number): Promise<CreationResult> {
    return asValue(this.admin.creations.createScalable(this.topic, { starts: wanted, segments }, this.signal));
  }

  /** What a topic is as a classic one: its count, undefined where it is missing, and the names in its namespace. */
  async expect(count: number | undefined, names: readonly string[], what: string): Promise<void> {
    const told = await this.partitions();
    const seen = told.type === 'found' ? told.value : told.type;
    check(seen === (count ?? 'missing'), `${what}: the count is ${seen}, not ${count ?? 'missing'}`);
    const listed = [...(await this.listed())].sort().join();
    check(listed === [...names].sort().join(), `${what}: listed are [${listed}], not [${names.join()}]`);
  }
}

async function asValue<T>(answer: Promise<T>): Promise<T> {
  try {
    return await answer;
  } catch (error) {
    throw new Error(`a call rejects: failures of a cluster are values (${String(error)})`);
  }
}

function found<T>(answer: LookUp<T>, what: string): T {
  if (answer.type === 'found') return answer.value;
  throw new Error(`${what}: ${answer.type}${answer.type === 'failed' ? `, ${answer.reason}` : ''}`);
}

function checkType(result: CreationResult, wanted: CreationResult['type'], what: string): void {
  const reason = result.type === 'done' ? '' : `, ${result.reason}`;
  check(result.type === wanted, `${what} is ${result.type}${reason}, not ${wanted}`);
}

/** Of the topic `orders`. */
function partitions(...indices: readonly number[]): string[] {
  return indices.map((index) => `orders-partition-${index}`);
}

function starts(segments: readonly ListedSegment[]): string {
  const sorted = segments.map(({ start }) => start).sort((a, b) => a - b);
  return sorted.join();
}
