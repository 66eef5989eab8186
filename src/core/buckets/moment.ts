/** What a decision knows besides the buckets: when it is made, and what the store says of all of them. */
export interface Moment {
  /** The store's clock, in microseconds. */
  readonly nowUs: number;
  /** When all buckets without state were empty; may lie ahead. 0: they are full. */
  readonly coldAtUs: number;
  /** Until when the whole governor is paused; buckets are empty then. 0: it never was. */
  readonly closedUs: number;
  /** Version of the limits in force. Grants made ahead under another one are recalled. */
  readonly version: number;
  /** When the limits came to that version. 0: not known; then they are taken to have done so now. */
  readonly changedUs: number;
}

/**
 * After the limits have changed, grants that were made ahead count for this much longer; whoever holds a later one has
 * heard of the change by then, or gives it up.
 */
export const RECALL_US = 1_000_000;

/** No time reaches further ahead than this (ten years), so that it stays an exact number. */
export const MAX_AHEAD_US = 315_360_000_000_000;

/** How far a clock may be behind a stamp before it counts as corrected rather than as late. */
export const MAX_CLOCK_STEP_US = 1_000_000;

/** A stamp that a clock wrote which has been put right since: moved with it. 0 stays "none". */
export function movedBy(us: number, stepUs: number): number {
  return us === 0 ? 0 : Math.max(0, us - stepUs);
}
