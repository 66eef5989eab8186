import type { WindowLimit } from '../../limits/window.ts';
import type { DemandOf, View } from '../kind.ts';
import type { BucketState } from '../moment.ts';

export type WindowDemand = DemandOf<'window', WindowLimit>;
export type WindowView = View<WindowDemand, WindowState>;

/**
 * Windows: so much per window, all of it at once if need be. What each mode lets through at its worst is in
 * docs/limits.md, and held by test/core/properties/window.property.test.ts. lua/includes/buckets/window/ is the same in Lua.
 *
 * fixed    one count, from `start` for a window's length; without a count none has begun.
 * sliding  a count for each cell, the newest first, and one cell more than fit: the oldest by its remaining share.
 * log      an entry for each grant, with the running total after it; what is before `base` has left the window.
 */
export interface WindowState extends BucketState {
  /** fixed: when the window began (µs); sliding: the number of the newest cell since 1970; log: 0. */
  start: number;
  /** fixed: one count; sliding: one for each cell; log: none. */
  counts: number[];
  /** log: when, and the total after it, oldest first. */
  entries: { readonly us: number; readonly total: number }[];
  base: number;
  /** What `counts` and `entries` were made under. */
  readonly mode: WindowLimit['mode'];
  readonly windowUs: number;
}

export const cellUs = (limit: WindowLimit): number => limit.windowUs / limit.cells;
export const cellsOf = (limit: WindowLimit): number => (limit.mode === 'sliding' ? limit.cells + 1 : 1);

export function emptyWindow(limit: WindowLimit, nowUs: number): WindowState {
  const { mode, windowUs } = limit;
  const start = mode === 'sliding' ? Math.floor(nowUs / cellUs(limit)) : 0;
  const counts = mode === 'log' ? [] : new Array<number>(cellsOf(limit)).fill(0);
  const state = { atUs: nowUs, lineUs: 0, granted: 0, refused: 0, pause: null, start, counts };
  return { ...state, entries: [], base: 0, mode, windowUs };
}

/** All that is counted, and in a log all that ever was. */
export const totalOf = (state: WindowState): number =>
  state.mode === 'log'
    ? (state.entries.at(-1)?.total ?? state.base)
    : state.counts.reduce((sum, count) => sum + count, 0);

/** When the window begins that a time falls into. */
export const startOf = (limit: WindowLimit, us: number): number =>
  limit.aligned ? Math.floor(us / limit.windowUs) * limit.windowUs : us;

// What began off the clock counts until the window by the clock ends in which it would have been forgotten.
export const carriedStartOf = (limit: WindowLimit, us: number): number =>
  limit.aligned ? Math.ceil(us / limit.windowUs) * limit.windowUs : us;
