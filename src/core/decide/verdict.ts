import type { Limit } from '../limits/limit.ts';
import type { Demand } from './demands.ts';

/** How a request may be answered other than at once. Times in whole microseconds. */
export interface Terms {
  /** A grant may start at most this much later (a reservation); 0: now or not at all. */
  readonly maxWaitUs: number;
  /** A refused request may be given a slot at most this far ahead; 0: none. */
  readonly maxTurnUs: number;
  /**
   * Which limits give turns: those with keys, or all (for who cannot keep a refused request at the head of a queue). A limit
   * that all requests meet and that cannot reserve for this one gives a slot within `maxWaitUs` in any case.
   */
  readonly turns: 'keyed' | 'all';
  /** The request was given a slot before and comes back from it: the line does not hold it up. */
  readonly returning: boolean;
  /** A returning request that must wait no longer than this is told so and keeps its place; else it gets a new slot. */
  readonly patienceUs: number;
  /** 0 high, 1 normal, 2 low. */
  readonly priority: 0 | 1 | 2;
  /** A request that finds no free slot of a concurrency limit waits in its queue, and is woken when there is one. */
  readonly queue: boolean;
}

/**
 * Why a request was refused: too few tokens, work deferred before it, a start too far ahead to be exact, a full window, no
 * free slot, more than its share of a fair limit, or a pause.
 */
export type RefusalReason = 'rate' | 'line' | 'horizon' | 'window' | 'concurrency' | 'share' | 'paused';

/** What is needed to take a grant back or to correct it: per bucket what `granted` was after it, and how far it was moved forward. */
export interface Receipt {
  readonly startUs: number;
  /** Whether it was made ahead. A grant that starts at once cannot be cancelled. */
  readonly ahead: boolean;
  /** Version of the limits it was made under. */
  readonly version: number;
  readonly holder: string;
  readonly demands: readonly Charge[];
}

export interface Charge {
  readonly demand: Demand;
  /** Only of a rate, and if it was made ahead; else 0. */
  readonly grantedAfter: number;
  readonly pushedUnits: number;
  /** Of a concurrency limit; else 0. */
  readonly fence: number;
}

export type Verdict =
  | { readonly granted: true; readonly waitUs: number; readonly receipt: Receipt }
  | {
      readonly granted: false;
      /** The limit that refused. */
      readonly limit: Limit;
      /** The attribute whose value made it refuse; null: it refuses all. */
      readonly by: string | null;
      readonly reason: RefusalReason;
      /** From now until the request may be made again with success, or until its slot. */
      readonly waitUs: number;
      readonly hasTurn: boolean;
    };

/** Told of waiters for whom there is room now. */
export type Wake = (holder: string) => void;
