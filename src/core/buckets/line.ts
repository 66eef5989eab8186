import { LINE_GRACE_US, MAX_AHEAD_US } from './constants.ts';

/**
 * The line: deferred work comes back one by one and in order, never as a herd.
 *
 * Each bucket keeps the time at which all its deferred work will have been admitted. A request that is deferred gets the end of
 * the line as its turn and moves the end on by what it costs. A turn charges nothing: it is when to ask again. A request
 * that does not come back to its turn may not overtake the line. lua/includes/buckets/line.lua is the same in Lua.
 */

/** The line as it still counts: 0 if the work in it is due, or is not coming, since the bucket has been full since `fullUs`. */
export function openLine(lineUs: number, nowUs: number, full: boolean, fullUs: number): number {
  return lineUs <= nowUs || (full && nowUs - fullUs >= LINE_GRACE_US) ? 0 : lineUs;
}

/** Where the line ends, which is to be at `us`: no further ahead than any time reaches. */
export function lineAfter(us: number, nowUs: number): number {
  return Math.min(us, nowUs + MAX_AHEAD_US);
}
