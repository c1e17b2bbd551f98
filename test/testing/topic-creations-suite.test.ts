/** The suite of `TopicAdmin` fails on creating calls that are broken, each for its rule. */
import { expect, it } from 'vitest';
import type { CreationResult, TopicAdmin, TopicCreations } from '../../src/ports/index.js';
import { type Change, DONE, isNone, verdict } from './topic-admins.js';

const creating = (creations: (good: TopicCreations, admin: TopicAdmin) => Partial<TopicCreations>): Change => {
  return (admin) => ({ creations: creations(admin.creations, admin) });
};
/** Creates in another way, whatever the first call answered. */
const also = async (result: Promise<CreationResult>, more: () => void) => {
  const told = await result;
  more();
  return told;
};
const never = new AbortController().signal;

it.each<[string, Change, RegExp]>([
  [
    'that says yes to a topic of no namespace',
    creating(({ createPlain }) => ({
      createPlain: async (topic, signal) => (isNone(topic) ? DONE : createPlain(topic, signal)),
    })),
    /a topic is created where there is no namespace/,
  ],
  [
    'that makes namespaces',
    (admin, admins) => ({
      creations: {
        createPartitioned: (topic, count, signal) =>
          also(admin.creations.createPartitioned(topic, count, signal), () => admins.addNamespace('b', topic)),
      },
    }),
    /the creation of a topic has made its namespace/,
  ],
  [
    'that creates nothing',
    creating(({ createPlain }) => ({
      createPlain: async (topic, signal) => (isNone(topic) ? createPlain(topic, signal) : DONE),
    })),
    /a plain topic: the count is missing, not 0/,
  ],
  [
    'that says yes to what is there',
    creating(({ createPlain }) => ({
      createPlain: async (...call) => {
        const told = await createPlain(...call);
        return told.type === 'conflict' ? DONE : told;
      },
    })),
    /creating a plain topic that is there is done, not conflict/,
  ],
  [
    'that gives a plain topic partitions',
    (admin, admins) => ({
      creations: {
        createPartitioned: (topic, count, signal) =>
          also(admin.creations.createPartitioned(topic, count, signal), () =>
            admins.place('b', topic, { record: count }),
          ),
      },
    }),
    /a plain topic after refusals: the count is 2, not 0/,
  ],
  [
    'that makes a record alone',
    (admin, admins) => ({
      creations: {
        createPartitioned: async (topic, record, signal) => {
          if (isNone(topic)) return admin.creations.createPartitioned(topic, record, signal);
          admins.place('b', topic, { record });
          return DONE;
        },
      },
    }),
    /giving partitions to a plain topic is done/,
  ],
  [
    'that loses the last partition',
    (admin, admins) => ({
      creations: {
        createPartitioned: (topic, count, signal) =>
          also(admin.creations.createPartitioned(topic, count, signal), () =>
            admins.remove('b', topic, { partitions: [count - 1] }),
          ),
      },
    }),
    /a partitioned topic: listed are \[orders-partition-0,orders-partition-1\], not/,
  ],
  [
    'that does not take in what is there',
    creating(({ createPartitioned }, { lookUps }) => ({
      createPartitioned: async (topic, count, signal) => {
        const names = await lookUps.names(topic, signal);
        const isThere = names.type === 'found' && names.value.some((name) => name.startsWith(`${topic.name}-`));
        return isThere ? { type: 'conflict', reason: 'it exists' } : createPartitioned(topic, count, signal);
      },
    })),
    /creating a record over partition topics is conflict, it exists, not done/,
  ],
  [
    'that completes nothing, and says so of everything',
    creating(() => ({ completePartitions: async () => DONE })),
    /there is nothing, and it is completed/,
  ],
  [
    'that completes nothing',
    creating((_, { lookUps }) => ({
      completePartitions: async (topic, signal) =>
        (await lookUps.partitions(topic, signal)).type === 'found' ? DONE : { type: 'refused', reason: 'no record' },
    })),
    /a completed topic: listed are \[orders-partition-0,orders-partition-2\]/,
  ],
  [
    'that completes once',
    creating(({ completePartitions }, { lookUps }) => ({
      completePartitions: async (topic, signal) => {
        const names = await lookUps.names(topic, signal);
        const isWhole = names.type === 'found' && names.value.length === 3;
        return isWhole ? { type: 'conflict', reason: 'all are there' } : completePartitions(topic, signal);
      },
    })),
    /completing a partitioned topic is conflict/,
  ],
  [
    'that creates what it is to expand',
    creating(({ expandPartitions, createPartitioned }) => ({
      expandPartitions: async (topic, count, signal) => {
        const told = await expandPartitions(topic, count, signal);
        if (told.type === 'conflict') await createPartitioned(topic, count, signal);
        return told;
      },
    })),
    /expanding nothing: the count is 2, not missing/,
  ],
  [
    'that raises the count alone',
    (admin, admins) => ({
      creations: {
        expandPartitions: (topic, count, signal) =>
          also(admin.creations.expandPartitions(topic, count, signal), () =>
            admins.remove('b', topic, { partitions: [count - 1] }),
          ),
      },
    }),
    /an expanded topic: listed are/,
  ],
  [
    'that lowers counts',
    (admin, admins) => ({
      creations: {
        expandPartitions: async (topic, record, signal) => {
          const told = await admin.creations.expandPartitions(topic, record, signal);
          if (told.type === 'refused') admins.place('b', topic, { record });
          return told;
        },
      },
    }),
    /a topic that was to be made smaller: the count is 3, not 4/,
  ],
  [
    'that makes one segment whatever is wanted',
    creating(({ createScalable }) => ({
      createScalable: (topic, _, signal) => createScalable(topic, { starts: [0], segments: 1 }, signal),
    })),
    /the segments are not those that were wanted/,
  ],
  [
    'that makes a classic topic beside a scalable one',
    creating(({ createScalable, createPlain }) => ({
      createScalable: async (topic, wanted, signal) => {
        await createPlain(topic, signal);
        return createScalable(topic, wanted, signal);
      },
    })),
    /asked for as a classic one: the count is 0/,
  ],
  [
    'that creates segments anew',
    (admin, admins) => ({
      creations: {
        createScalable: async (topic, wanted, signal) => {
          const told = await admin.creations.createScalable(topic, wanted, signal);
          if (told.type === 'conflict') {
            admins.remove('b', topic);
            await admin.creations.createScalable(topic, wanted, signal);
          }
          return told;
        },
      },
    }),
    /a creation that was refused has changed the segments/,
  ],
  [
    'that makes other segments than those wanted',
    creating(({ createScalable }) => ({
      createScalable: (topic, wanted, signal) =>
        createScalable(topic, wanted.segments === 4 ? { starts: [0], segments: 1 } : wanted, signal),
    })),
    /the segments are neither those wanted nor equal ones/,
  ],
  [
    'that believes what nobody answered',
    creating(({ createPartitioned }) => ({
      createPartitioned: async (...call) => {
        const told = await createPartitioned(...call);
        return told.type === 'failed' ? DONE : told;
      },
    })),
    /a creation that nobody answers is done/,
  ],
  [
    'that sends what was lost once more',
    (admin) => {
      const lost: (() => Promise<CreationResult>)[] = [];
      return {
        creations: {
          createPartitioned: async (topic, count, signal) => {
            const told = await admin.creations.createPartitioned(topic, count, signal);
            const other = { ...topic, name: `${topic.name}-late` };
            if (told.type === 'failed') lost.push(() => admin.creations.createPlain(other, never));
            return told;
          },
        },
        lookUps: {
          names: async (topic, signal) => {
            for (const again of lost) await again();
            return admin.lookUps.names(topic, signal);
          },
        },
      };
    },
    /a cluster that answers again: listed are/,
  ],
  [
    'that says yes to partitions beside what is there',
    creating(({ createPartitioned }) => ({
      createPartitioned: async (...call) => {
        const told = await createPartitioned(...call);
        return told.type === 'conflict' && call[1] === 5 ? DONE : told;
      },
    })),
    /creating a partitioned topic that is there is done, not conflict/,
  ],
  [
    'that says yes to a plain topic beside a record',
    creating(({ createPlain }, { lookUps }) => ({
      createPlain: async (topic, signal) => {
        const told = await lookUps.partitions(topic, signal);
        return told.type === 'found' && told.value > 0 ? DONE : createPlain(topic, signal);
      },
    })),
    /creating a plain topic beside a record is done, not conflict/,
  ],
  [
    'that says yes to the expansion of nothing',
    creating(({ expandPartitions }) => ({
      expandPartitions: async (...call) => {
        const told = await expandPartitions(...call);
        return told.type === 'conflict' ? DONE : told;
      },
    })),
    /there is nothing, and it is expanded/,
  ],
  [
    'that says yes to fewer partitions',
    creating(({ expandPartitions }) => ({
      expandPartitions: async (...call) => {
        const told = await expandPartitions(...call);
        return told.type === 'refused' ? DONE : told;
      },
    })),
    /a count is lowered/,
  ],
])('it refuses an administration %s', async (_, change, rule) => {
  expect(await verdict(change)).toMatch(rule);
});
