import type { Receipt, Sight, Terms, Verdict } from './decide.ts';
import type { Limits } from './limit.ts';
import type { Cost, Keys, Leg } from './request.ts';

/** A request as a store takes it: which limits it meets is decided against the limits in force there. */
export interface Request {
  readonly cost: Cost;
  readonly keys: Keys | undefined;
}

/**
 * Where the buckets of one governor live. One clock for all: the store's, since processes whose clocks disagree must
 * still agree on the rate. Each call is decided atomically and in the order in which the calls were made.
 *
 * Every method may reject with an InvalidOptionError or a CostExceedsBurstError (the request is wrong), with a
 * StoreUnavailableError (no answer), or with a GovernorClosedError (after `close`).
 * test/store/contract.ts is the suite that every store passes.
 */
export interface Store {
  /** Takes tokens from all buckets of the request, or from none. */
  acquire(request: Request, terms: Terms): Promise<Verdict>;
  /** Takes tokens from all buckets of the request whatever they hold; false only if that would leave the exact range. */
  force(request: Request): Promise<boolean>;
  /** Takes back a grant that has not started; whether all of it was given back. */
  cancel(receipt: Receipt): Promise<boolean>;
  /** Looks at the buckets of a request; takes nothing. */
  peek(request: Request): Promise<readonly { readonly leg: Leg; readonly sight: Sight }[]>;
  /** The limits in force. */
  limits(): Promise<Limits>;
  /** Ends the store's own connections and timers. Idempotent. */
  close(): Promise<void>;
}
