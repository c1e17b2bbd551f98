/** The suite of `TopicAdmin` passes in memory, and fails on look-ups that are broken, each for its rule. */
import type { MemoryTopicAdmins } from 'isthmus/adapters/memory';
import { testTopicAdmin } from 'isthmus/testing';
import { describe, expect, it } from 'vitest';
import type { TopicLookUps } from '../../src/ports/index.js';
import { type Change, inMemory, isNone, verdict } from './topic-admins.js';

describe('in memory', () => testTopicAdmin(inMemory, it));

it('it takes an administration as it should be', async () => {
  expect(await verdict()).toBe('accepted');
});

const looking = (lookUps: (good: TopicLookUps, admins: MemoryTopicAdmins) => Partial<TopicLookUps>): Change => {
  return (admin, admins) => ({ lookUps: lookUps(admin.lookUps, admins) });
};

it.each<[string, Change, RegExp]>([
  [
    'that does not see its namespace',
    looking(() => ({ namespace: async () => ({ type: 'missing' }) })),
    /a namespace that is there is not found/,
  ],
  [
    'that takes a count of none for a plain topic',
    looking(({ partitions }) => ({
      partitions: async (...call) => {
        const told = await partitions(...call);
        return told.type === 'missing' ? { type: 'found', value: 0 } : told;
      },
    })),
    /a topic that is not there is not missing/,
  ],
  [
    'that takes no scalable topic for one without segments',
    looking(({ segments }) => ({
      segments: async (...call) => {
        const told = await segments(...call);
        return told.type === 'missing' ? { type: 'found', value: [] } : told;
      },
    })),
    /a scalable topic that is not there is not missing/,
  ],
  [
    'whose look-up creates',
    looking(({ partitions }, admins) => ({
      partitions: async (topic, signal) => {
        const told = await partitions(topic, signal);
        if (told.type === 'missing') admins.place('b', topic, { plain: true });
        return told;
      },
    })),
    /a look-up has made a topic/,
  ],
  [
    'that sees every namespace',
    looking(() => ({ namespace: async () => ({ type: 'found', value: true }) })),
    /a namespace that is not there is not missing/,
  ],
  [
    'that finds topics of no namespace',
    looking(({ partitions }) => ({
      partitions: async (topic, signal) => (isNone(topic) ? { type: 'found', value: 0 } : partitions(topic, signal)),
    })),
    /a topic of a namespace that is not there is found/,
  ],
  [
    'whose look-up makes a namespace',
    looking(({ segments }, admins) => ({
      segments: async (topic, signal) => {
        admins.addNamespace('b', topic);
        return segments(topic, signal);
      },
    })),
    /a look-up of a topic has made its namespace/,
  ],
  [
    'that hides what is not loaded',
    looking(() => ({ names: async () => ({ type: 'found', value: [] }) })),
    /a plain topic: listed are \[\], not \[orders\]/,
  ],
  [
    'that tells full names',
    looking(({ names }) => ({
      names: async (topic, signal) => {
        const told = await names(topic, signal);
        if (told.type !== 'found') return told;
        return { type: 'found', value: told.value.map((name) => `persistent://public/default/${name}`) };
      },
    })),
    /a plain topic: listed are \[persistent:/,
  ],
  [
    'that does not mind the case',
    looking(({ partitions }) => ({
      partitions: (topic, signal) => partitions({ ...topic, name: topic.name.toLowerCase() }, signal),
    })),
    /a topic is taken for another of nearly its name/,
  ],
  [
    'that does not know partition topics',
    looking(({ partitions }) => ({
      partitions: async (topic, signal) =>
        topic.name.includes('-partition-') ? { type: 'missing' } : partitions(topic, signal),
    })),
    /a partition topic is not found as the plain topic that it is/,
  ],
  [
    'that knows every partition topic of a record',
    looking(({ partitions }) => ({
      partitions: async (topic, signal) => {
        const [base = '', index] = topic.name.split('-partition-');
        const told = await partitions({ ...topic, name: base }, signal);
        return index === undefined || told.type === 'missing'
          ? told
          : partitions({ ...topic, name: base }, signal).then((found) =>
              found.type === 'found' && found.value > 0 ? { type: 'found', value: 0 } : { type: 'missing' },
            );
      },
    })),
    /a partition topic that is not there is not missing/,
  ],
  [
    'that takes orphans for a topic',
    looking(({ partitions, names }) => ({
      partitions: async (topic, signal) => {
        const [told, listed] = [await partitions(topic, signal), await names(topic, signal)];
        const own = listed.type === 'found' ? listed.value.filter((name) => name.startsWith(`${topic.name}-p`)) : [];
        return told.type === 'missing' && own.length > 0 ? { type: 'found', value: own.length } : told;
      },
    })),
    /what is there without a record: the count is 2, not missing/,
  ],
  [
    'that does not find segments',
    looking(() => ({ segment: async () => ({ type: 'missing' }) })),
    /a segment that was created is not found/,
  ],
  [
    'that believes the layout',
    looking(({ segments }) => ({
      segment: async (topic, { segmentId }, signal) => {
        const told = await segments(topic, signal);
        if (told.type !== 'found') return told;
        const isListed = told.value.some((segment) => segment.segmentId === segmentId);
        return isListed ? { type: 'found', value: true } : { type: 'missing' };
      },
    })),
    /a segment whose topic was deleted is not missing/,
  ],
  [
    'that looks at all segments for one',
    looking(({ segments, segment }) => ({
      segment: async (topic, _, signal) => {
        const told = await segments(topic, signal);
        if (told.type !== 'found') return told;
        const all = await Promise.all(told.value.map((one) => segment(topic, one, signal)));
        return all.find(({ type }) => type === 'missing') ?? { type: 'found', value: true };
      },
    })),
    /a segment is missing because another is/,
  ],
  [
    'that leaves absent segments out',
    looking(({ segments, segment }) => ({
      segments: async (topic, signal) => {
        const told = await segments(topic, signal);
        if (told.type !== 'found') return told;
        const there = await Promise.all(told.value.map((one) => segment(topic, one, signal)));
        return { type: 'found', value: told.value.filter((_, i) => there[i]?.type === 'found') };
      },
    })),
    /a segment without its topic is not in the layout any more/,
  ],
  [
    'that takes silence for nothing',
    looking(({ partitions }) => ({
      partitions: async (...call) => {
        const told = await partitions(...call);
        return told.type === 'failed' ? { type: 'missing' } : told;
      },
    })),
    /a cluster that does not answer says missing/,
  ],
  [
    'that throws where it cannot reach',
    looking(({ names }) => ({
      names: async (...call) => {
        const told = await names(...call);
        if (told.type === 'failed') throw new Error(told.reason);
        return told;
      },
    })),
    /a call rejects: failures of a cluster are values/,
  ],
])('it refuses an administration %s', async (_, change, rule) => {
  expect(await verdict(change)).toMatch(rule);
});
