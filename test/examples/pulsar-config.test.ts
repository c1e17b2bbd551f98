/** The configuration of the Pulsar replicator: what is meant when little is said, and every fault named at once. */
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { ConfigError, loadConfig, parseConfig } from '../../examples/pulsar-replicator/config.js';

const a = { serviceUrls: ['pulsar://127.0.0.1:6650'], adminUrls: ['http://127.0.0.1:8080'] };
const b = { serviceUrls: ['pulsar+ssl://b.example:6651'], adminUrls: ['https://b.example'] };
const least = { clusters: { a, b }, topics: ['public/default/flights'] };

function faults(value: unknown): readonly string[] {
  try {
    parseConfig(value, '/etc/isthmus');
    return [];
  } catch (error) {
    if (error instanceof ConfigError) return error.faults;
    throw error;
  }
}

it('two clusters and a topic are enough: both directions, with limits that do no harm', () => {
  const config = parseConfig(least, '/etc/isthmus');
  expect(config).toMatchObject({
    directions: [
      ['a', 'b'],
      ['b', 'a'],
    ],
    stateNamespace: 'public/isthmus',
    subscriptionPrefix: 'isthmus',
    startAt: 'earliest',
    convergeLayouts: true,
    createTopics: false,
    budget: { bytesPerSecond: 16 * 1024 * 1024, slots: 4 },
    rate: {},
    http: { host: '127.0.0.1', port: 8085 },
  });
  expect(config.name).not.toBe('');
});

it('files are looked for beside the configuration; a topic may be written with its scheme', () => {
  const secured = { ...b, caFile: 'ca.pem', token: { file: 'data.token' }, layoutToken: { env: 'LAYOUT' } };
  const config = parseConfig(
    { clusters: { a, b: secured }, topics: ['topic://public/default/x'], http: null },
    '/etc/isthmus',
  );
  expect(config.clusters.get('b')).toEqual({
    ...b,
    caFile: '/etc/isthmus/ca.pem',
    token: { file: '/etc/isthmus/data.token' },
    layoutToken: { env: 'LAYOUT' },
  });
  expect(config.topics).toEqual(['public/default/x']);
  expect(config.http).toBeUndefined();
});

describe('a fault is named with its place, its value and the rule', () => {
  it.each([
    [
      'nothing at all',
      undefined,
      ['clusters: 0 named, and it takes two', 'topics, namespaces: nothing to replicate is named'],
    ],
    ['one cluster', { ...least, clusters: { a } }, ['clusters: 1 named, and it takes two']],
    [
      'a wrong URL',
      { ...least, clusters: { a: { ...a, serviceUrls: ['127.0.0.1:6650'] }, b } },
      ['clusters.a.serviceUrls[0]: "127.0.0.1:6650" is not pulsar://host:port or pulsar+ssl://host:port'],
    ],
    [
      'a URL with a name and a password in it',
      { ...least, clusters: { a: { ...a, adminUrls: ['http://me:secret@a'] }, b } },
      ['clusters.a.adminUrls[0]: "http://...@a" is not http://host:port or https://host:port'],
    ],
    [
      'no URL',
      { ...least, clusters: { a: { ...a, adminUrls: [] }, b } },
      ['clusters.a.adminUrls: [] is not a list with at least one element'],
    ],
    ['a setting that does not exist', { ...least, topic: 'x' }, ['topic: there is no such setting']],
    [
      'one that does not exist in a cluster',
      { ...least, clusters: { a: { ...a, tokn: 1 }, b } },
      ['clusters.a.tokn: there is no such setting'],
    ],
    [
      'a token in the open',
      { ...least, clusters: { a: { ...a, token: { file: 'x', env: 'y' } }, b } },
      [
        'clusters.a.token: {"file":"x","env":"y"} is not either { "file": ... } or { "env": ... }: a token is never written into the configuration',
      ],
    ],
    [
      'a topic without its namespace',
      { ...least, topics: ['flights'] },
      ['topics[0]: "flights" is not tenant/namespace/topic'],
    ],
    ['a direction to nowhere', { ...least, directions: [['a', 'c']] }, ['directions: c is not among the clusters']],
    ['a direction to itself', { ...least, directions: [['a', 'a']] }, ['directions: from a to itself']],
    [
      'half a direction',
      { ...least, directions: [['a']] },
      ['directions[0]: ["a"] is not two clusters, [from, to]', 'directions:  is not among the clusters'],
    ],
    [
      'a reserved name',
      { ...least, subscriptionPrefix: 'pulsar.repl.b' },
      ['subscriptionPrefix: "pulsar.repl.b" is not a name that does not begin with pulsar.repl'],
    ],
    [
      'no budget',
      { ...least, budget: { bytesPerSecond: 0 } },
      ['budget.bytesPerSecond: 0 is not a whole number from 1 to 9007199254740991'],
    ],
    [
      'a word for a number',
      { ...least, http: { port: 'http' } },
      ['http.port: "http" is not a whole number from 0 to 65535'],
    ],
    [
      'the cursors among the topics',
      { ...least, namespaces: ['public/isthmus'] },
      ['namespaces: public/isthmus is where the cursors are kept'],
    ],
  ])('%s', (_what, value, expected) => {
    expect(faults(value)).toEqual(expected);
  });

  it('all at once', () => {
    expect(faults({ clusters: { a: {}, b }, topics: [7], startAt: 'now' })).toEqual([
      'clusters.a.serviceUrls: undefined is not a list with at least one element',
      'clusters.a.adminUrls: undefined is not a list with at least one element',
      'topics[0]: 7 is not tenant/namespace/topic',
      'startAt: "now" is not one of earliest, latest',
    ]);
  });

  it('a file that is not there, or is no JSON', () => {
    expect(() => loadConfig('/nowhere/isthmus.json')).toThrow(/isthmus\.json: cannot be read/);
    expect(() => loadConfig(fileURLToPath(import.meta.url))).toThrow(/is not JSON/);
  });
});
