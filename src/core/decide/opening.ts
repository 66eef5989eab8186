import { MAX_CLOCK_STEP_US, MAX_COLD_AHEAD_US } from '../buckets/constants.ts';
import type { Moment } from '../buckets/moment.ts';
import { movedPause, type Pause } from '../buckets/pause.ts';

/** The times that a store keeps of all of its buckets, in microseconds of its clock; 0: there is none. */
export interface StoreTimes {
  /** When all buckets without state were empty. */
  readonly coldAtUs: number;
  /** When the limits came to their version. */
  readonly changedUs: number;
  /** The last pause of the whole governor; null: there was none. */
  readonly pause: Pause | null;
  /** When it was paused. */
  readonly pausedAtUs: number;
}

/**
 * The moment of a decision, as the store's times and its clock have it, and the times to be kept from now on: what a wrong clock
 * wrote is put right with the clock, so that nothing stands still until it gets there. lua/decide.lua is the same in Lua.
 */
export function opening(
  times: StoreTimes,
  version: number,
  nowUs: number,
): { readonly moment: Moment; readonly times: StoreTimes } {
  const { coldAtUs, changedUs, pause, pausedAtUs } = times;
  const aheadUs = pausedAtUs - nowUs;
  const isAhead = aheadUs > MAX_CLOCK_STEP_US;
  const right = {
    coldAtUs: coldAtUs - nowUs > MAX_COLD_AHEAD_US ? nowUs : coldAtUs,
    changedUs: changedUs - nowUs > MAX_CLOCK_STEP_US ? nowUs : changedUs,
    pause: isAhead ? movedPause(pause, aheadUs) : pause,
    pausedAtUs: isAhead ? nowUs : pausedAtUs,
  };
  const { pausedAtUs: _, ...known } = right;
  return { moment: { nowUs, version, ...known }, times: right };
}
