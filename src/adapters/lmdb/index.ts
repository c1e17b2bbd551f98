export type { AppendResult } from './append-result.js';
export { type LmdbStore, type LmdbTopicOptions, openStore } from './store.js';
export type { AppendOffer, LmdbTopic } from './topic.js';
