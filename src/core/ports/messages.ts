import type { Keys } from '../decide/demands.ts';
import type { ConfiguredEvent } from './events.ts';

/**
 * What a store tells those who subscribe to it. Messages are a matter of time, never of right: one that is lost is made up
 * for by the next decision.
 */
export type StoreMessage =
  /** The configuration in force is another one; decisions are made under it from now on. */
  | ({ readonly kind: 'configured' } & ConfiguredEvent)
  /** These keys, or all of the governor, were paused for so long. */
  | { readonly kind: 'paused'; readonly keys: Keys | undefined; readonly forUs: number }
  /** They are no longer. With a version: that of the limits from now on, where `confirm` is missing. */
  | { readonly kind: 'resumed'; readonly keys: Keys | undefined; readonly version?: number }
  /** There is room now for a holder that waits in this process. */
  | { readonly kind: 'wake'; readonly holder: string }
  /** Messages may have been lost: calls that wait for one look. */
  | { readonly kind: 'missed' };

/** What is heard of what others do. */
export interface Messages {
  /**
   * Tells `listener` what happens elsewhere, from now until the function that is returned is called or the store is closed.
   * Never throws: a store that cannot listen tells nothing.
   */
  subscribe(listener: (message: StoreMessage) => void): () => void;
}
