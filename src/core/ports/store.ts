import type { GovernorConfig } from '../limits/governor-options.ts';
import type { Decisions } from './decisions.ts';
import type { Deferrals } from './deferrals.ts';
import type { Messages } from './messages.ts';
import type { Steering } from './steering.ts';

export type { Request } from './decisions.ts';

/** What a store is made for: the governor, and what this process brings to it. */
export interface StoreConfig extends Pick<GovernorConfig, 'name' | 'limits' | 'coldStart'> {
  /** Of the limits. Default 0: none. */
  readonly revision?: number;
  /** Who this process is, in the history of the configuration. */
  readonly instance?: string;
}

/**
 * Where the buckets of one governor live. One clock for all: the store's, since processes whose clocks disagree must
 * still agree on the rate. Each call is decided atomically and in the order in which the calls were made.
 *
 * Every method may reject with an InvalidOptionError or a CostExceedsBurstError (the request is wrong), with a
 * StoreUnavailableError (no answer), or with a GovernorClosedError (after `close`).
 * test/store/contract/index.ts is the suite that every store passes.
 */
export interface Store extends Decisions, Steering, Messages {
  /** The jobs that are deferred now. */
  readonly deferrals: Deferrals;
  /** Ends the store's own connections and timers. Idempotent. */
  close(): Promise<void>;
}
