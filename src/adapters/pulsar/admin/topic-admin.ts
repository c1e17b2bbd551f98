/**
 * The existence of topics on a Pulsar cluster behind the port `TopicAdmin`, over the admin REST, as 5.0.1 answers it.
 * Look-ups are requests of one kind, GET, to paths none of which makes anything; `missing` is only what a 404 says of
 * just the name that was asked for. Each creating call is one request that is sent once. All is asked with the token for
 * layouts: to see topics, a role that produces or consumes in the namespace is enough; to create, and to be told that a
 * namespace is missing, it takes a tenant admin.
 */
import { messageOf, show } from '../../../errors.js';
import { parseLayout } from '../../../layout/index.js';
import type {
  CreationResult,
  ListedSegment,
  TopicAdmin,
  TopicCreations,
  TopicLookUps,
  TopicName,
} from '../../../ports/index.js';
import { type LookUp, type LookUpFailure, MAX_INITIAL_SEGMENTS } from '../../../provisioning/index.js';
import { objectOf, texts } from './admin.js';
import { type AdminCall, AdminHttp, type AdminOptions, reasonOf, saidIn } from './http.js';
import { isPlainInPath, namespacePath, topicPath } from './paths.js';

/** The administration of one cluster. Throws `invalidArgument` for options; calls reject for names that can be none. */
export function pulsarTopicAdmin(options: AdminOptions): TopicAdmin {
  const http = new AdminHttp(options);
  return { lookUps: lookUpsOf(http), creations: creationsOf(http) };
}

function lookUpsOf(http: AdminHttp): TopicLookUps {
  return {
    namespace: (topic, signal) => askNamespace(http, topic, signal),
    partitions: (topic, signal) => {
      const isMissing = (said: string) => said === `Topic ${fullName('persistent', topic)} not found`;
      return ask(http, `${persistent(topic)}/partitions`, signal, isMissing, partitionsIn);
    },
    names: (topic, signal) => askNames(http, topic, signal),
    segments: (topic, signal) =>
      isPlainInPath(topic.name) ? askSegments(http, topic, signal) : askListed(http, topic, signal),
    segment: (topic, segment, signal) => {
      const path = `${scalable(topic)}/segments/${segment.segmentId}/stats`;
      const [begin, end] = [`Segment topic not found: ${fullName('segment', topic)}/`, `-${segment.segmentId}`];
      const isMissing = (said: string) => said.startsWith(begin) && said.endsWith(end);
      return ask(http, path, signal, isMissing, () => true);
    },
  };
}

/** Who is no admin may not read what a namespace is, but may list the topics of one that it has rights to. */
async function askNamespace(http: AdminHttp, topic: TopicName, signal: AbortSignal): Promise<LookUp<true>> {
  const isMissing = (said: string) => /^(Namespace|Tenant) (does not exist|not found)$/.test(said);
  const asked = await ask(http, `namespaces/${namespaceOf(topic)}`, signal, isMissing, (): true => true);
  if (asked.type !== 'failed' || asked.failure !== 'unauthorized') return asked;
  const listed = await askNames(http, topic, signal);
  return listed.type === 'found' ? { type: 'found', value: true } : asked;
}

function askNames(http: AdminHttp, topic: TopicName, signal: AbortSignal): Promise<LookUp<readonly string[]>> {
  const path = `namespaces/${namespaceOf(topic)}/topics?mode=ALL`;
  const isMissing = (said: string) => said === 'Namespace does not exist';
  const prefix = fullName('persistent', { ...topic, name: '' });
  return ask(http, path, signal, isMissing, (value) => namesIn(value, prefix));
}

function askSegments(
  http: AdminHttp,
  topic: TopicName,
  signal: AbortSignal,
): Promise<LookUp<readonly ListedSegment[]>> {
  const isMissing = (said: string) => said === `Scalable topic not found: ${fullName('topic', topic)}`;
  return ask(http, scalable(topic), signal, isMissing, segmentsIn);
}

/** For names that a look-up does not decode: whether the topic is listed can be told, its segments cannot. */
async function askListed(http: AdminHttp, topic: TopicName, signal: AbortSignal): Promise<LookUp<never>> {
  const listed = await ask(http, `scalable/${namespaceOf(topic)}`, signal, () => false, texts);
  if (listed.type !== 'found') return listed;
  if (!listed.value.includes(fullName('topic', topic))) return { type: 'missing' };
  return failed(
    'unsupported',
    `${show(topic.name)} is listed, and a broker does not find scalable topics of such names`,
  );
}

function creationsOf(http: AdminHttp): TopicCreations {
  return {
    createPlain: (topic, signal) => create(http, { method: 'PUT', path: persistent(topic) }, signal),
    createPartitioned: (topic, partitions, signal) =>
      create(http, { method: 'PUT', path: `${persistent(topic)}/partitions`, body: partitions }, signal),
    completePartitions: (topic, signal) =>
      create(http, { method: 'POST', path: `${persistent(topic)}/createMissedPartitions` }, signal),
    expandPartitions: (topic, partitions, signal) =>
      create(http, { method: 'POST', path: `${persistent(topic)}/partitions`, body: partitions }, signal),
    createScalable: async (topic, { starts, segments }, signal) => {
      // What is created and cannot be found again would be created for ever.
      if (!isPlainInPath(topic.name)) return { type: 'refused', reason: `${show(topic.name)} cannot be looked up` };
      const count = isEqualWidth(starts) ? starts.length : segments;
      return create(http, { method: 'PUT', path: `${scalable(topic)}?numInitialSegments=${count}`, body: {} }, signal);
    },
  };
}

/** Whether a broker makes just these segments when it is told their number, 1..1024: each floor(65536 / n) wide. */
function isEqualWidth(starts: readonly number[]): boolean {
  const width = Math.floor(0x1_0000 / starts.length);
  return starts.length <= MAX_INITIAL_SEGMENTS && starts.every((start, i) => start === i * width);
}

/** One look-up. `isMissing` is asked about the words of a 404, `read` about what was found; it throws if that is none. */
async function ask<T>(
  http: AdminHttp,
  path: string,
  signal: AbortSignal,
  isMissing: (said: string) => boolean,
  read: (value: unknown) => T,
): Promise<LookUp<T>> {
  const answer = await http.send({ method: 'GET', path, as: 'layout', signal });
  if (answer.type === 'unanswered') return failed(answer.isLate ? 'timedOut' : 'unavailable', answer.reason);
  const { status, text } = answer;
  if (status !== 200) {
    if (status === 404 && isMissing(saidIn(text))) return { type: 'missing' };
    return failed(failureOf(status), `${status} ${reasonOf(text)}`);
  }
  try {
    return { type: 'found', value: read(JSON.parse(text)) };
  } catch (error) {
    return failed('unclear', `the answer to ${path}: ${messageOf(error)}`);
  }
}

async function create(
  http: AdminHttp,
  call: Pick<AdminCall, 'method' | 'path' | 'body'>,
  signal: AbortSignal,
): Promise<CreationResult> {
  const answer = await http.send({ ...call, as: 'layout', isOnce: true, signal });
  if (answer.type === 'unanswered') return { type: 'failed', reason: answer.reason };
  const { status, text } = answer;
  if (status >= 200 && status < 300) return { type: 'done' };
  const reason = `${status} ${reasonOf(text)}`;
  if (status === 409) return { type: 'conflict', reason };
  return { type: isTransient(status) ? 'failed' : 'refused', reason };
}

function failureOf(status: number): LookUpFailure {
  if (status === 401 || status === 403) return 'unauthorized';
  return isTransient(status) ? 'unavailable' : 'refused';
}

function isTransient(status: number): boolean {
  return status >= 500 || status === 429 || status === 408;
}

function failed(failure: LookUpFailure, reason: string): Extract<LookUp<never>, { readonly type: 'failed' }> {
  return { type: 'failed', failure, reason };
}

function partitionsIn(value: unknown): number {
  const { partitions, deleted } = objectOf(value);
  if (deleted === true) throw new Error('the topic is being deleted');
  if (typeof partitions === 'number' && Number.isSafeInteger(partitions) && partitions >= 0) return partitions;
  throw new Error(`${show(partitions)} is no count of partitions`);
}

function segmentsIn(value: unknown): readonly ListedSegment[] {
  const { active, deleted } = parseLayout(value);
  if (deleted) throw new Error('the topic is being deleted');
  return active.map(({ segmentId, range }) => ({ segmentId, start: range.start }));
}

function namesIn(value: unknown, prefix: string): readonly string[] {
  return texts(value).flatMap((name) => (name.startsWith(prefix) ? [name.slice(prefix.length)] : []));
}

function fullName(domain: string, { tenant, namespace, name }: TopicName): string {
  return `${domain}://${tenant}/${namespace}/${name}`;
}

function namespaceOf({ tenant, namespace }: TopicName): string {
  return namespacePath(`${tenant}/${namespace}`);
}

function persistent({ tenant, namespace, name }: TopicName): string {
  return `persistent/${topicPath(`${tenant}/${namespace}/${name}`)}`;
}

function scalable({ tenant, namespace, name }: TopicName): string {
  return `scalable/${topicPath(`${tenant}/${namespace}/${name}`)}`;
}
