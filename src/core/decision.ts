import type { RefusalReason } from './decide.ts';

/** "Not now" as a value: nothing was taken, and `retryAfterMs` says when to come back. */
export interface Refusal {
  readonly allowed: false;
  /** Name of the limit that refused. */
  readonly limit: string;
  /** Whether that limit has keys (`by`): another key may have room. */
  readonly keyed: boolean;
  /**
   * `'rate'`: too few tokens. `'line'`: work that was deferred earlier comes first. `'horizon'`: the start would lie
   * too far ahead to be exact.
   */
  readonly reason: RefusalReason;
  /**
   * Milliseconds, rounded up: a request made then passes if nobody else takes the tokens. At 10/s with a burst of 1,
   * right after a grant: 100.
   */
  readonly retryAfterMs: number;
  /** Whether `retryAfterMs` is a place in the line, kept for the caller; it comes back with `returning: true`. */
  readonly slotted: boolean;
}

/** The answer of `allow`: taken, or not now. */
export type Decision = { readonly allowed: true } | Refusal;

/** Tokens that are taken and may be used from `startsInMs` on. */
export interface Reservation {
  readonly allowed: true;
  /** Milliseconds from the reply until the work may start; 0: now. */
  readonly startsInMs: number;
  /**
   * When it may start, on the governor's own monotonic clock (`Clock.monoMs`): the same moment, but not shifted by how
   * late this process came to read the reply. For adapters.
   */
  readonly startsAtMonoMs: number;
  /**
   * Gives the tokens back if the start has not come and nothing was granted from the same buckets since; otherwise
   * they are lost, never granted twice. Cancel a batch newest first to have all of it back.
   *
   * @returns whether all tokens were given back.
   */
  cancel(): Promise<boolean>;
}

/** What `wait` resolves to: the work may start now. */
export interface Grant {
  /** Milliseconds between the call and the grant, on this process's clock. 0 if the tokens were there. */
  readonly waitedMs: number;
}

/** What one limit holds for a request, as `peek` sees it. */
export interface LimitState {
  readonly limit: string;
  /** Value of the limit's attribute; null for a governor-wide limit. */
  readonly key: string | null;
  /** Whole tokens that could be taken at this moment. */
  readonly remaining: number;
  readonly burst: number;
  /** Milliseconds, rounded up, until the cost asked about fits; 0: now. */
  readonly waitMs: number;
  /** Milliseconds, rounded up, until all deferred work will have been admitted; 0: none is deferred. */
  readonly lineMs: number;
  /** Totals since the bucket was last full for more than a second. */
  readonly granted: number;
  readonly refused: number;
}
