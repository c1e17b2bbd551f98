/** A topic of a Pulsar cluster as the destination of replication: what is sent to it is stored once, found by reading back. */
export type { PinEnsured } from './pin.js';
export type { ReadBackWait } from './read-back.js';
export { type PulsarRemote, type PulsarRemoteOptions, pulsarRemote } from './remote.js';
