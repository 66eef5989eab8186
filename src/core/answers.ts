import type { Cost } from './decide/demands.ts';
import type { RefusalReason } from './decide/verdict.ts';

/** "Not now" as a value: nothing was taken, and `retryAfterMs` says when to come back. */
export interface Refusal {
  readonly allowed: false;
  /** Name of the limit that refused. */
  readonly limit: string;
  /** Whether that limit has keys (`by`): another key may have room. */
  readonly keyed: boolean;
  /**
   * `'rate'`: too few tokens. `'line'`: work that was deferred earlier comes first. `'horizon'`: the start would lie
   * too far ahead to be exact. `'window'`: its window is full. `'concurrency'`: no slot is free. `'share'`: it has had its
   * share of a fair limit. `'paused'`: the governor or the key is paused.
   */
  readonly reason: RefusalReason;
  /**
   * Milliseconds, rounded up: a request made then passes if nobody else takes the tokens. At 10/s with a burst of 1,
   * right after a grant: 100. For `'concurrency'` when to look again at the latest: nobody knows when a slot is given back.
   */
  readonly retryAfterMs: number;
  /** Whether `retryAfterMs` is a turn in the line, kept for a governed worker's job. */
  readonly hasTurn: boolean;
}

/** Tokens and slots that were taken, and what may be done with them afterwards. */
export interface Grant {
  /** Milliseconds between the call and the grant, on this process's clock. 0 if the tokens were there. */
  readonly waitedMs: number;
  /**
   * Fencing number of its slot: grows with each grant of the concurrency limit, so that the protected thing can refuse a
   * holder that has lost its slot to a later one. Null without a concurrency limit; with several, that of the first.
   */
  readonly fence: number | null;
  /** Aborts when a slot was lost: it was not renewed in time, since the process was frozen or the store away. */
  readonly signal: AbortSignal;
  /**
   * Corrects what the work has cost, once that is known. More than was taken becomes debt, for which the next
   * requests wait. Of what was not used, a rate gives back what has not drained since the start, if nothing is promised ahead; a
   * window gives back what still counts; the rest is lost, never granted twice.
   *
   * @param actual - As a cost, but 0 is possible; limits that it does not name stay as they are, and so do slots.
   * @throws {@link InvalidOptionError} `FLYBALL_INVALID_OPTION`, {@link StoreUnavailableError} `FLYBALL_STORE_UNAVAILABLE`.
   */
  settle(actual: Cost): Promise<void>;
  /**
   * Gives the slots of concurrency limits back. Idempotent. Until then they are renewed, for as long as this process lives and
   * the governor is open. Never rejects because of the store: a slot that cannot be given back lapses after `leaseMs`.
   *
   * @returns whether all of them were still held.
   */
  release(): Promise<boolean>;
}

/** The answer of `allow`: taken, or not now. */
export type Decision = ({ readonly allowed: true } & Grant) | Refusal;

/** Tokens that are taken and may be used from `startsInMs` on. */
export interface Reservation extends Grant {
  readonly allowed: true;
  /** Milliseconds from the reply until the work may start; 0: now. */
  readonly startsInMs: number;
  /**
   * When it may start, on the governor's own monotonic clock (`Clock.monoMs`): the same moment, but not shifted by how
   * late this process came to read the reply. For adapters.
   */
  readonly startsAtMonoMs: number;
  /**
   * Whether it still stands when its start has come. It does not if it was recalled, since the limits have changed or a pause of
   * the governor was ended (one that starts within a second of its decision is not), nor in a pause that this process knows of.
   */
  stands(): boolean;
  /**
   * Gives the tokens back if the start has not come and nothing was granted from the same buckets since; otherwise
   * they are lost, never granted twice. Cancel a batch newest first to have all of it back. Gives slots back in any case.
   *
   * @returns whether all tokens were given back.
   */
  cancel(): Promise<boolean>;
}

/** What one limit holds for a request, as `peek` sees it. */
export interface LimitState {
  readonly limit: string;
  readonly kind: 'rate' | 'window' | 'concurrency' | 'share';
  /** Value of the limit's attribute; null for a governor-wide limit. */
  readonly key: string | null;
  /** Whole tokens (or slots) that could be taken at this moment. Of a share: what its limit holds. */
  readonly remaining: number;
  /** The most that may pass at one instant: the burst, the window's maximum, the slots. */
  readonly burst: number;
  /**
   * The limit as it is now, which an adaptive limit, a penalty or a fair share make another than the one that was written:
   * tokens per period, tokens per window, or slots.
   */
  readonly effective: number;
  /** Milliseconds, rounded up, until the cost asked about fits; 0: now. */
  readonly waitMs: number;
  /** Milliseconds, rounded up, until all deferred work will have been admitted; 0: none is deferred. */
  readonly lineMs: number;
  /** Milliseconds, rounded up, until its pause ends; 0: it is not paused. */
  readonly pausedMs: number;
  /** Totals since the bucket was last full for more than a second. */
  readonly granted: number;
  readonly refused: number;
}
