export { MemoryTopic, type MemoryTopicOptions } from './topic.js';
