/** Administrations in memory for the suite of `TopicAdmin`: as they should be, and with something of them changed. */
import { type AdminFault, MemoryTopicAdmins } from 'isthmus/adapters/memory';
import { type TopicAdminSetup, testTopicAdmin } from 'isthmus/testing';
import type { CreationResult, TopicAdmin, TopicCreations, TopicLookUps, TopicName } from '../../src/ports/index.js';
import { verdictOf } from '../support/verdict.js';

const DOWN: AdminFault = { type: 'failed', failure: 'unavailable', reason: 'the cluster is down' };
export const DONE: CreationResult = { type: 'done' };

export type Change = (
  admin: TopicAdmin,
  admins: MemoryTopicAdmins,
) => { lookUps?: Partial<TopicLookUps>; creations?: Partial<TopicCreations> };

export function inMemory(change: Change = () => ({})): TopicAdminSetup {
  let isDown = false;
  const admins = new MemoryTopicAdmins({ before: async () => (isDown ? DOWN : undefined) });
  const namespace = { tenant: 'public', namespace: 'default' };
  admins.addNamespace('b', namespace);
  const admin = admins.admin('b', 'suite');
  const { lookUps, creations } = change(admin, admins);
  return {
    admin: { lookUps: { ...admin.lookUps, ...lookUps }, creations: { ...admin.creations, ...creations } },
    namespace,
    makeOrphans(topic) {
      admins.place('b', topic, { partitions: [1, 2] });
      return [1, 2];
    },
    deletePartition: (topic, index) => admins.remove('b', topic, { partitions: [index] }),
    deleteSegment: (topic, { segmentId }) => admins.remove('b', topic, { segments: [segmentId] }),
    setReachable(isReachable) {
      isDown = !isReachable;
    },
  };
}

/** What the suite says of an administration that is changed so. */
export const verdict = (change?: Change) => verdictOf((test) => testTopicAdmin(() => inMemory(change), test));

export const isNone = ({ namespace }: TopicName) => namespace.endsWith('-none');
