/** The layout of a topic of a Pulsar cluster: read as it changes, and changed by the cluster's own operations. */
export { type PulsarHostOptions, pulsarHost, stopAutomaticMerges } from './host.js';
export { PulsarLayouts, type PulsarLayoutsOptions } from './layouts.js';
