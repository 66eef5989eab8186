import type { AdaptiveReport } from '../buckets/adaptive.ts';
import type { Terms } from '../decide/ask.ts';
import type { Cost, Demand, Keys } from '../decide/demands.ts';
import type { HeldSlot } from '../decide/give-back.ts';
import type { BucketReport } from '../decide/peek.ts';
import type { Receipt, Verdict } from '../decide/verdict.ts';

/** A request as a store takes it: which limits it meets is decided against the limits in force there. */
export interface Request {
  readonly cost: Cost;
  readonly keys: Keys | undefined;
  /** Whose the slots of concurrency limits are to be; '' if the request can't meet any. */
  readonly holder: string;
}

/** Decisions about requests, and what becomes of grants. */
export interface Decisions {
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
