import type { Asker } from '../buckets/kind.ts';

/** How a request may be answered other than at once. Times in whole microseconds. */
export interface Terms {
  /** A grant may start at most this much later (a reservation); 0: now or not at all. */
  readonly maxWaitUs: number;
  /** A refused request may be given a turn at most this far ahead; 0: none. */
  readonly maxTurnUs: number;
  /**
   * Which limits give turns: those with keys, or all (for a caller that cannot keep a refused request at the head of a queue). A
   * limit that all requests meet and that cannot reserve for this one gives a turn within `maxWaitUs` in any case.
   */
  readonly turns: 'keyed' | 'all';
  /** The request was given a turn before and comes back to it: the line does not hold it up. */
  readonly returning: boolean;
  /** A returning request that must wait no longer than this is told so and keeps its place; else it gets a new turn. */
  readonly patienceUs: number;
  /** 0 high, 1 normal, 2 low. */
  readonly priority: 0 | 1 | 2;
  /** A request that finds no free slot of a concurrency limit waits in its queue, and is woken when there is one. */
  readonly queue: boolean;
}

/** Who asks, and on what terms. What is asked for is in the demands. */
export interface Ask extends Terms, Asker {}
