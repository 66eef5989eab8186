import { type Bucket, ceilDiv, costUnits, fullAtUs } from './gcra.ts';
import type { RateLimit } from './limit.ts';

/**
 * The line: deferred work comes back one by one and in order, never as a herd.
 *
 * Each bucket keeps the time at which all its deferred work will have been admitted. Who is deferred gets the end of
 * the line as its slot and moves the end on by what it costs. A slot charges nothing: it is when to ask again. Who is
 * not returning from a slot may not overtake the line. lua/includes/line.lua is the same in Lua.
 */

/**
 * How long a bucket may be full while its line lies ahead. After that the deferred work is not coming (it was removed,
 * or its queue is paused), and the line is forgotten. Not at once: BullMQ resumes a deferred job 50-90 ms late, and a
 * bucket of one token is full for just that time. Equals the slack of the state's expiry, so that a bucket whose state
 * has expired and one whose line was forgotten are the same.
 */
export const LINE_GRACE_US = 1_000_000;

/** No line reaches further ahead than this (ten years), so that its end stays an exact number. */
const MAX_LINE_AHEAD_US = 315_360_000_000_000;

/** Forgets the line of `before` in its drained form `bucket`, if the work in it is not coming or is due. */
export function forgetLine(before: Bucket, bucket: Bucket): void {
  if (bucket.lineUs <= bucket.atUs || bucket.atUs - fullAtUs(before) >= LINE_GRACE_US) bucket.lineUs = 0;
}

/** Where the line ends after `cost` tokens that have their place at `slotUs`. */
export function lineAfter(bucket: Bucket, limit: RateLimit, slotUs: number, cost: number): number {
  return Math.min(slotUs + ceilDiv(costUnits(limit, cost), limit.rate), bucket.atUs + MAX_LINE_AHEAD_US);
}
