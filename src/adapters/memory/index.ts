export { MemoryPeers } from './peers.js';
export { MemoryTopic, type MemoryTopicOptions } from './topic.js';
