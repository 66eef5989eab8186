import type { Arrival } from '../downstream/arrivals.ts';
import type { TimedCost } from './measure.ts';

/** Calls of one key or of all, with or without refused ones. */
export function timed(
  arrivals: readonly Arrival[],
  { key, accepted }: { key?: string; accepted?: boolean } = {},
): TimedCost[] {
  return arrivals
    .filter((arrival) => (key === undefined || arrival[3] === key) && !(accepted && arrival[6]))
    .map(([atUs, cost]) => ({ atUs, cost }));
}
