import type { AdaptiveReport } from '../buckets/adaptive.ts';
import type { Terms } from '../decide/ask.ts';
import type { Cost, Demand, Keys } from '../decide/demands.ts';
import type { HeldSlot } from '../decide/give-back.ts';
import type { BucketReport } from '../decide/peek.ts';
import type { Receipt, Verdict } from '../decide/verdict.ts';
import type { Configuration, ConfigurationChange } from '../limits/configuration.ts';
import type { GovernorConfig } from '../limits/governor-options.ts';
import type { Limits } from '../limits/limit.ts';
import type { Deferrals } from './deferrals.ts';
import type { Messages } from './messages.ts';

/** A request as a store takes it: which limits it meets is decided against the limits in force there. */
export interface Request {
  readonly cost: Cost;
  readonly keys: Keys | undefined;
  /** Whose the slots of concurrency limits are to be; '' if the request can't meet any. */
  readonly holder: string;
}

/** Decisions about requests, and what becomes of grants. */
interface Decisions {
  /** Takes tokens from all buckets of the request, or from none. */
  acquire(request: Request, terms: Terms): Promise<Verdict>;
  /** Takes as many whole tokens as there are, up to `most`; from each bucket of the request as many. */
  atMost(request: Request, most: number, priority: Terms['priority']): Promise<number>;
  /** Takes tokens from all buckets of the request whatever they hold; null only if that would leave the exact range. */
  force(request: Request): Promise<Receipt | null>;
  /** Takes back a grant that has not started; whether all of it was given back. */
  cancel(receipt: Receipt): Promise<boolean>;
  /** Corrects what a grant has cost. */
  settle(receipt: Receipt, actual: Cost): Promise<void>;
  /** Gives a slot back; whether it was still held. */
  release(slot: HeldSlot): Promise<boolean>;
  /** Keeps a slot for another lease's length, and tells how long that is now, in microseconds; 0: it was held no more. */
  renew(slot: HeldSlot): Promise<number>;
  /** Gives up a place in the queues for slots. */
  leave(request: Request): Promise<void>;
  /** Looks at the buckets of a request; takes nothing. */
  peek(
    request: Request,
    priority: Terms['priority'],
  ): Promise<readonly { readonly demand: Demand; readonly sight: BucketReport }[]>;
  /** Tells adaptive limits what calls came to. */
  report(request: Request, calls: AdaptiveReport): Promise<void>;
}

/** The limits in force and pauses: the same for all processes. */
interface Steering {
  /**
   * The version of the limits in force, asked of the store now. Only where others can change it unseen; where it is missing,
   * a message tells of every change at once.
   */
  confirm?(): Promise<number>;
  /** The limits in force. */
  limits(): Promise<Limits>;
  /** Sets an operator's limits, beside those that were set before: they win over code's of the same name until `reset`. */
  configure(change: { readonly limits: Limits }, who: string): Promise<Configuration>;
  /** Takes all of the operator's limits away: code's are in force again. */
  reset(who: string): Promise<Configuration>;
  /** Everything about the limits in force, and the last changes, newest first. */
  configuration(): Promise<Configuration & { readonly history: readonly ConfigurationChange[] }>;
  /** Pauses the buckets of these keys, or all of the governor, for so long; the longest pause wins. */
  pause(keys: Keys | undefined, forUs: number): Promise<void>;
  /** Ends a pause before its time. */
  resume(keys: Keys | undefined): Promise<void>;
}

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
