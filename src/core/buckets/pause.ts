import { RAMP_US } from './constants.ts';
import type { BucketState, Moment } from './moment.ts';

/** The last pause of a bucket, its own or its governor's, whichever ends later. */
export interface Pause {
  /** When it ends or ended; 0: there was none. */
  readonly endUs: number;
  /** The same if a ramp follows it; 0: none does. */
  readonly rampEndUs: number;
}

/** @param ramps - Whether work comes back in a ramp after a pause. An adaptive limit comes back by itself. */
export function pauseOf(
  { pausedUntilUs }: Pick<BucketState, 'pausedUntilUs'>,
  ramps: boolean,
  at?: Moment,
): Pause {
  const endUs = Math.max(pausedUntilUs, at?.pausedUntilUs ?? 0);
  return { endUs, rampEndUs: ramps ? endUs : 0 };
}

/** From the store's now until the pause ends; 0: it is over. */
export const pausedForUs = ({ endUs }: Pause, { nowUs }: Moment): number => Math.max(0, endUs - nowUs);

/**
 * After a pause work comes back in a ramp: the rate climbs from nothing to the whole of it in a straight line, and the slots of
 * a concurrency limit one after the other. A downstream that asked for a pause must not meet everything at once.
 *
 * A rate in its ramp is the whole rate on a clock that goes more slowly. So whatever it lets through, it lets through no
 * sooner than the rate itself would, and the bound holds. lua/includes/buckets/pause.lua is the same in Lua.
 */

/** Whether it is paused, or in its ramp. `endUs` is when its pause ends or ended; 0: there was none. */
export const isRamping = (us: number, endUs: number): boolean => endUs > 0 && us < endUs + RAMP_US;

/** A time on the slower clock, but for a constant. */
function slowed(us: number, endUs: number): number {
  const sinceUs = us - endUs;
  if (sinceUs <= 0 || endUs === 0) return us;
  if (sinceUs >= RAMP_US) return us - RAMP_US / 2;
  return endUs + Math.floor((sinceUs * sinceUs) / (2 * RAMP_US));
}

/** Microseconds of the whole rate that the time between is worth. */
export const worthUs = (fromUs: number, toUs: number, endUs: number): number =>
  slowed(toUs, endUs) - slowed(fromUs, endUs);

/** The first microsecond by which the time from `fromUs` on is worth `us` of the whole rate. */
export function whenWorth(us: number, fromUs: number, endUs: number): number {
  if (us <= 0) return fromUs;
  if (endUs === 0) return fromUs + us;
  const sinceUs = slowed(fromUs, endUs) + us - endUs;
  if (sinceUs <= 0) return endUs + sinceUs;
  if (sinceUs >= RAMP_US / 2) return endUs + sinceUs + RAMP_US / 2;
  return endUs + ceilSqrt(2 * RAMP_US * sinceUs);
}

/** How many of `slots` there are. */
export function slotsInRamp(slots: number, us: number, endUs: number): number {
  if (!isRamping(us, endUs)) return slots;
  return us < endUs ? 0 : Math.max(1, Math.floor((slots * (us - endUs)) / RAMP_US));
}

/** The first microsecond at which there are `needed` of `slots`, as far as the ramp is concerned. */
export const whenSlots = (needed: number, slots: number, endUs: number): number =>
  endUs + Math.ceil((needed * RAMP_US) / slots);

// The root of a number below 2^53 is rounded to a double, which may be one off a whole number.
function ceilSqrt(square: number): number {
  let root = Math.ceil(Math.sqrt(square));
  while ((root - 1) * (root - 1) >= square) root -= 1;
  while (root * root < square) root += 1;
  return root;
}
