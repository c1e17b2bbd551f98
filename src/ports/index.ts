export type { Clock } from './clock.js';
export type { EntryRead, EntrySource, StoredEntry } from './entry-source.js';
export type { RemoteTopic, Send, SendResult } from './remote-topic.js';
