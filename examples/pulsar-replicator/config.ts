/**
 * The configuration of the replicator: one JSON file, read strictly, so that a wrong word is found before anything is
 * touched. Every fault is reported at once, each with its place and the rule.
 */
import { readFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { dirname, resolve } from 'node:path';

/** Where a token comes from; it is read anew whenever a broker asks. */
export type TokenSource = { readonly file: string } | { readonly env: string };

export interface ClusterConfig {
  /** `pulsar://host:port` or `pulsar+ssl://host:port`, one or more. */
  readonly serviceUrls: readonly string[];
  /** `http://host:port` or `https://host:port`, one or more. */
  readonly adminUrls: readonly string[];
  /** Certificates of authorities in PEM. */
  readonly caFile?: string;
  /** A role that may produce and consume. */
  readonly token?: TokenSource;
  /** A role of a tenant admin, for layout changes; without one layouts stay as they are. */
  readonly layoutToken?: TokenSource;
}

export interface Config {
  /** Names this process among those that share the work. */
  readonly name: string;
  readonly clusters: ReadonlyMap<string, ClusterConfig>;
  /** From, to. */
  readonly directions: readonly (readonly [from: string, to: string])[];
  /** `tenant/namespace/topic`. */
  readonly topics: readonly string[];
  /** `tenant/namespace`: all scalable topics in them that exist on every cluster, also those to come. */
  readonly namespaces: readonly string[];
  /** Creates topics on the clusters that they are replicated to, where they are missing; else they are waited for. */
  readonly createTopics: boolean;
  /** Where cursors and locks are kept on each cluster: a namespace of their own. */
  readonly stateNamespace: string;
  /** Names of subscriptions begin with this. */
  readonly subscriptionPrefix: string;
  readonly startAt: 'earliest' | 'latest';
  /** Layouts are brought together; else they stay, and what does not fit is re-batched for good. */
  readonly convergeLayouts: boolean;
  readonly budget: { readonly bytesPerSecond: number; readonly slots: number };
  /** Towards each cluster; absent: unlimited. */
  readonly rate: { readonly bytesPerSecond?: number; readonly messagesPerSecond?: number };
  /** The status page; undefined: none. */
  readonly http: { readonly host: string; readonly port: number } | undefined;
}

/** A configuration that cannot be used: everything that is wrong with it. */
export class ConfigError extends Error {
  constructor(readonly faults: readonly string[]) {
    super(faults.join('\n'));
  }
}

export function loadConfig(file: string): Config {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    throw new ConfigError([`${file}: cannot be read: ${(error as Error).message}`]);
  }
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new ConfigError([`${file}: is not JSON: ${(error as Error).message}`]);
  }
  return parseConfig(value, dirname(resolve(file)));
}

/** Throws `ConfigError`. File names in it are relative to `folder`. */
export function parseConfig(value: unknown, folder: string): Config {
  const faults: string[] = [];
  const config = readConfig(new Reader(value, 'configuration', faults), folder);
  checkMeaning(config, faults);
  if (faults.length > 0) throw new ConfigError(faults);
  return config;
}

const SERVICE_URL = /^pulsar(\+ssl)?:\/\/(\[[0-9a-fA-F:.]+\]|[^\s/:@[\]]+)(:\d{1,5})?$/;
const ADMIN_URL = /^https?:\/\/(\[[0-9a-fA-F:.]+\]|[^\s/:@[\]]+)(:\d{1,5})?$/;
const CLUSTER = /^[\w.-]+$/;
const NAMESPACE = /^[\w=:.-]+\/[\w=:.-]+$/;
const TOPIC = /^(topic:\/\/)?[\w=:.-]+\/[\w=:.-]+\/[^\s/]+$/;
const PREFIX = /^(?!pulsar\.repl)[\w.-]+$/;

function readConfig(root: Reader, folder: string): Config {
  const clusters = root.table('clusters', (reader) => readCluster(reader, folder));
  for (const name of clusters.keys()) if (!CLUSTER.test(name)) root.fault(`clusters.${name}`, 'the name of a cluster');
  const everyPair = [...clusters.keys()].flatMap((from) =>
    [...clusters.keys()].filter((to) => to !== from).map((to) => [from, to] as const),
  );
  const budget = root.object('budget');
  const rate = root.object('rate');
  const http = root.has('http', null) ? undefined : root.object('http');
  const config: Config = {
    name: root.text('name', /^[\w.-]{1,100}$/, 'letters, digits, dots and dashes', `${hostname()}-${process.pid}`),
    clusters,
    directions: root.list('directions', readDirection, everyPair),
    topics: root.list(
      'topics',
      (reader) => reader.value(TOPIC, 'tenant/namespace/topic').replace(/^topic:\/\//, ''),
      [],
    ),
    namespaces: root.list('namespaces', (reader) => reader.value(NAMESPACE, 'tenant/namespace'), []),
    stateNamespace: root.text('stateNamespace', NAMESPACE, 'tenant/namespace', 'public/isthmus'),
    subscriptionPrefix: root.text(
      'subscriptionPrefix',
      PREFIX,
      'a name that does not begin with pulsar.repl',
      'isthmus',
    ),
    startAt: root.choice('startAt', ['earliest', 'latest']),
    convergeLayouts: root.flag('convergeLayouts', true),
    createTopics: root.flag('createTopics', false),
    budget: {
      bytesPerSecond: budget.count('bytesPerSecond', 16 * 1024 * 1024),
      slots: budget.count('slots', 4),
    },
    rate: {
      ...rate.optionalCount('bytesPerSecond'),
      ...rate.optionalCount('messagesPerSecond'),
    },
    http:
      http === undefined
        ? undefined
        : { host: http.text('host', /^\S+$/, 'a host name', '127.0.0.1'), port: http.port('port', 8085) },
  };
  for (const reader of [budget, rate, http]) reader?.end();
  root.end();
  return config;
}

function readCluster(reader: Reader, folder: string): ClusterConfig {
  const url = (what: string, pattern: RegExp, form: string) =>
    reader.list(what, (one) => one.value(pattern, form), undefined);
  const caFile = reader.optionalText('caFile');
  const token = readToken(reader, 'token', folder);
  const layoutToken = readToken(reader, 'layoutToken', folder);
  const cluster: ClusterConfig = {
    serviceUrls: url('serviceUrls', SERVICE_URL, 'pulsar://host:port or pulsar+ssl://host:port'),
    adminUrls: url('adminUrls', ADMIN_URL, 'http://host:port or https://host:port'),
    ...(caFile === undefined ? {} : { caFile: resolve(folder, caFile) }),
    ...(token === undefined ? {} : { token }),
    ...(layoutToken === undefined ? {} : { layoutToken }),
  };
  reader.end();
  return cluster;
}

function readToken(reader: Reader, key: string, folder: string): TokenSource | undefined {
  if (!reader.has(key)) return undefined;
  const token = reader.object(key);
  const [file, env] = [token.optionalText('file'), token.optionalText('env')];
  token.end();
  if (file !== undefined && env === undefined) return { file: resolve(folder, file) };
  if (env !== undefined && file === undefined) return { env };
  reader.fault(key, 'either { "file": ... } or { "env": ... }: a token is never written into the configuration');
  return undefined;
}

function readDirection(reader: Reader): readonly [string, string] {
  const names = reader.items((one) => one.value(CLUSTER, 'the name of a cluster'));
  const [from = '', to = ''] = names;
  if (names.length !== 2) reader.fault('', 'two clusters, [from, to]');
  return [from, to];
}

function checkMeaning({ clusters, directions, topics, namespaces, stateNamespace }: Config, faults: string[]): void {
  if (clusters.size !== 2) faults.push(`clusters: ${clusters.size} named, and it takes two`);
  for (const [from, to] of directions) {
    for (const name of [from, to]) {
      if (!clusters.has(name)) faults.push(`directions: ${name} is not among the clusters`);
    }
    if (from === to) faults.push(`directions: from ${from} to itself`);
  }
  if (topics.length === 0 && namespaces.length === 0) faults.push('topics, namespaces: nothing to replicate is named');
  if (namespaces.includes(stateNamespace)) faults.push(`namespaces: ${stateNamespace} is where the cursors are kept`);
}

/** A value as it was written, without the credentials of a URL. */
function shown(value: unknown): string {
  return String(JSON.stringify(value)).replace(/\/\/[^/@"]*@/g, '//...@');
}

/** One place of the file, and what is still to be read of it. */
class Reader {
  private readonly unread: Set<string>;

  constructor(
    private readonly given: unknown,
    private readonly place: string,
    private readonly faults: string[],
  ) {
    const isObject = typeof given === 'object' && given !== null && !Array.isArray(given);
    this.unread = new Set(isObject ? Object.keys(given) : []);
  }

  fault(key: string, rule: string): void {
    const place = key === '' ? this.place : `${this.place}.${key}`;
    const found = key === '' ? this.given : this.get(key);
    this.faults.push(`${place.replace(/^configuration\./, '')}: ${shown(found)} is not ${rule}`);
  }

  /** Every key must have been asked for. */
  end(): void {
    for (const key of this.unread) {
      this.faults.push(`${`${this.place}.${key}`.replace(/^configuration\./, '')}: there is no such setting`);
    }
  }

  private get(key: string): unknown {
    this.unread.delete(key);
    return (this.given as Record<string, unknown> | null | undefined)?.[key];
  }

  has(key: string, value?: unknown): boolean {
    const found = (this.given as Record<string, unknown> | null | undefined)?.[key];
    if (value === undefined) return found !== undefined;
    if (found === value) this.unread.delete(key);
    return found === value;
  }

  object(key: string): Reader {
    const value = this.get(key);
    const isObject = typeof value === 'object' && value !== null && !Array.isArray(value);
    if (value !== undefined && !isObject) this.fault(key, 'an object');
    return new Reader(isObject ? value : {}, `${this.place}.${key}`, this.faults);
  }

  table<T>(key: string, read: (reader: Reader) => T): Map<string, T> {
    const table = this.object(key);
    const names = [...table.unread];
    return new Map(names.map((name) => [name, read(table.object(name))]));
  }

  list<T>(key: string, read: (reader: Reader) => T, absent: readonly T[] | undefined): readonly T[] {
    const value = this.get(key);
    if (value === undefined && absent !== undefined) return absent;
    if (Array.isArray(value) && (value.length > 0 || absent !== undefined)) {
      return new Reader(value, `${this.place}.${key}`, this.faults).items(read);
    }
    this.fault(key, 'a list with at least one element');
    return [];
  }

  items<T>(read: (reader: Reader) => T): readonly T[] {
    if (!Array.isArray(this.given)) {
      this.fault('', 'a list');
      return [];
    }
    return this.given.map((item, i) => read(new Reader(item, `${this.place}[${i}]`, this.faults)));
  }

  /** The value at this place itself, as text of a form. */
  value(pattern: RegExp, rule: string): string {
    if (typeof this.given === 'string' && pattern.test(this.given)) return this.given;
    this.fault('', rule);
    return '';
  }

  text(key: string, pattern: RegExp, rule: string, absent: string): string {
    const value = this.get(key);
    if (value === undefined) return absent;
    if (typeof value === 'string' && pattern.test(value)) return value;
    this.fault(key, rule);
    return absent;
  }

  optionalText(key: string): string | undefined {
    const value = this.get(key);
    if (value === undefined) return undefined;
    if (typeof value === 'string' && value !== '') return value;
    this.fault(key, 'a text');
    return undefined;
  }

  choice<const T extends string>(key: string, choices: readonly [T, ...T[]]): T {
    const value = this.get(key);
    if (value === undefined) return choices[0];
    const found = choices.find((one) => one === value);
    if (found === undefined) this.fault(key, `one of ${choices.join(', ')}`);
    return found ?? choices[0];
  }

  flag(key: string, absent: boolean): boolean {
    const value = this.get(key);
    if (value === undefined || typeof value === 'boolean') return value ?? absent;
    this.fault(key, 'true or false');
    return absent;
  }

  count(key: string, absent: number): number {
    return this.number(key, 1, Number.MAX_SAFE_INTEGER) ?? absent;
  }

  port(key: string, absent: number): number {
    return this.number(key, 0, 65_535) ?? absent;
  }

  optionalCount<K extends string>(key: K): { readonly [key in K]?: number } {
    const value = this.number(key, 1, Number.MAX_SAFE_INTEGER);
    return value === undefined ? {} : ({ [key]: value } as { readonly [key in K]?: number });
  }

  private number(key: string, least: number, most: number): number | undefined {
    const value = this.get(key);
    if (value === undefined) return undefined;
    if (Number.isSafeInteger(value) && (value as number) >= least && (value as number) <= most) return value as number;
    this.fault(key, `a whole number from ${least} to ${most}`);
    return undefined;
  }
}
