/** What a local policy decides on: the load of segments and the number of consumers. */
import type { SegmentLoad } from '../convergence/index.js';

export interface LoadSource {
  /** Loads by segment id, and the most consumers over the topic's subscriptions. */
  read(): Promise<{ readonly loads: ReadonlyMap<number, SegmentLoad>; readonly consumers: number }>;
}
