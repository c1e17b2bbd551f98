export type { Members } from './members.js';
export { type PrepareStateOptions, prepareState, type StateAdmin, type StatePreparation } from './prepare.js';
export type { StoreName } from './records.js';
export { StateTopic, type StateTopicOptions } from './topic.js';
