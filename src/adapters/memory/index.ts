export { MemoryPeers } from './peers.js';
export type { MemoryRemoteOptions } from './remote.js';
export { BARRIER_MARKER_TYPE } from './segment-log.js';
export { MemoryTopic, type MemoryTopicOptions } from './topic.js';
export {
  type AdminCall,
  type AdminFault,
  MemoryTopicAdmins,
  type MemoryTopicAdminsOptions,
} from './topic-admin.js';
