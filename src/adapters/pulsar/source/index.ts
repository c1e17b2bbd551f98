export { type PulsarSource, type PulsarSourceOptions, pulsarSource } from './source.js';
export { adminSubscriptions, type SourceSubscriptions } from './subscriptions.js';
