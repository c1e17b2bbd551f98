/** What an append answers. It stands alone, as users see its type and no others of the store's inside. */
import type { SourcePosition } from '../../entry/index.js';

/** How an append ended. In all cases but the first nothing was stored. */
export type AppendResult =
  /** Stored, at this position. */
  | { readonly type: 'stored'; readonly at: SourcePosition }
  /** It was stored already. */
  | { readonly type: 'duplicate' }
  /** The send named as the previous one is missing. */
  | { readonly type: 'gap' }
  /** The messages with a bucket hash of at most `partial` are stored already. */
  | { readonly type: 'partial'; readonly partial: number }
  /** The segment takes no more writes. */
  | { readonly type: 'sealed' };
