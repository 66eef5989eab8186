/** What a governed worker does at this moment, and has done since it was made. */
export interface GoverningState {
  /** Jobs whose processor runs. */
  readonly running: number;
  /** Jobs that ask the governor or wait in process for their tokens. */
  readonly held: number;
  /** Jobs that wait in process for a slot of their key. */
  readonly aside: number;
  /** The number of held jobs the feed aims at; below 1 it fetches none. */
  readonly target: number;
  /** Whether the worker fetches jobs. */
  readonly gate: 'open' | 'closed';
  readonly granted: number;
  /** Grants that had to be waited for in process. */
  readonly holds: number;
  /** Jobs put aside until a slot, or to the tail. */
  readonly deferrals: number;
  /** Jobs put back to the head of their queue. */
  readonly returned: number;
  readonly dropped: number;
  readonly failed: number;
  readonly bypassed: number;
  /** Jobs that met `maxDeferrals` or `maxDeferredMs`, whatever became of them then. */
  readonly deferralLimited: number;
  /** Jobs that ran and threw `Throttled`. */
  readonly throttled: number;
}

/** The jobs of a queue that are put aside at this moment, by all workers of it. */
export interface Deferred {
  readonly count: number;
  /** Milliseconds since the one that has been put aside for longest first was; 0: none is. */
  readonly oldestMs: number;
}

/** What is counted since the worker was made. */
export type Counters = Record<
  | 'granted'
  | 'holds'
  | 'deferrals'
  | 'returned'
  | 'dropped'
  | 'failed'
  | 'bypassed'
  | 'deferralLimited'
  | 'throttled',
  number
>;

export const newCounters = (): Counters => ({
  granted: 0,
  holds: 0,
  deferrals: 0,
  returned: 0,
  dropped: 0,
  failed: 0,
  bypassed: 0,
  deferralLimited: 0,
  throttled: 0,
});
