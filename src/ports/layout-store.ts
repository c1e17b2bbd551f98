/** Where the layout of one topic is kept: the cluster's own metadata store. */
import type { Layout } from '../layout/index.js';

/** How a commit ended. */
export type CommitResult =
  | { readonly type: 'committed' }
  /** The stored epoch is another: somebody else has committed first. */
  | { readonly type: 'conflict' }
  /** Not known to be committed. */
  | { readonly type: 'failed'; readonly reason: string };

/** A store that anybody may read. Rejections mean that the store cannot be reached, and are tried again. */
export interface LayoutReader {
  /** The layout as it is stored now. */
  load(): Promise<Layout>;
  /** The layout now, and again after every change, until the signal aborts; changes may be skipped over, never reordered. */
  watch(signal: AbortSignal): AsyncIterable<Layout>;
}

/** A store whose record this host writes whole. */
export interface LayoutStore extends LayoutReader {
  /** Replaces the record if its epoch is still `expectedEpoch`: a compare-and-set that one caller wins. */
  commit(expectedEpoch: number, layout: Layout): Promise<CommitResult>;
}
