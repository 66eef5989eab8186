import type { WindowLimit } from '../../limits/window.ts';
import type { DemandOf, View } from '../kind.ts';
import type { BucketState, Moment } from '../moment.ts';

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
const cellsOf = (limit: WindowLimit): number => (limit.mode === 'sliding' ? limit.cells + 1 : 1);

/**
 * The window of a limit that has no state: empty, unless all windows are known to have been full at a time. A cold start was
 * asked for, or the store lost its data. That may lie ahead.
 */
export function blank(limit: WindowLimit, { nowUs, coldAtUs }: Moment): WindowState {
  const empty = emptyWindow(limit, nowUs);
  if (coldAtUs === 0 || coldAtUs + limit.windowUs <= nowUs) return empty;
  if (limit.mode === 'log') return { ...empty, entries: [{ us: coldAtUs, total: limit.max }] };
  const counts = empty.counts.with(0, limit.max);
  const start = limit.mode === 'fixed' ? startOf(limit, coldAtUs) : Math.floor(coldAtUs / cellUs(limit));
  return { ...empty, start, counts };
}

function emptyWindow(limit: WindowLimit, nowUs: number): WindowState {
  const { mode, windowUs } = limit;
  const start = mode === 'sliding' ? Math.floor(nowUs / cellUs(limit)) : 0;
  const counts = mode === 'log' ? [] : new Array<number>(cellsOf(limit)).fill(0);
  const state = { atUs: nowUs, lineUs: 0, granted: 0, refused: 0, pausedUntilUs: 0, start, counts };
  return { ...state, entries: [], base: 0, mode, windowUs };
}

/**
 * The window in the terms of the limit in force. Counts of another mode, length or number of cells are taken as if all of
 * them had been granted at the latest time seen. One that began off the clock, where windows now begin by it, keeps its count.
 */
export function converted(stored: WindowState, limit: WindowLimit): WindowState {
  const same = stored.mode === limit.mode && stored.windowUs === limit.windowUs;
  if (same && stored.counts.length === (limit.mode === 'log' ? 0 : cellsOf(limit))) {
    if (limit.mode !== 'fixed' || stored.counts[0] === 0) return stored;
    const start = carriedStartOf(limit, stored.start);
    return start === stored.start ? stored : { ...stored, start };
  }
  const used = totalOf(stored) - stored.base;
  const state = { ...emptyWindow(limit, stored.atUs), ...commonOf(stored) };
  if (used > 0) {
    if (limit.mode === 'log') state.entries = [{ us: stored.atUs, total: used }];
    else state.counts[0] = used;
    if (limit.mode === 'fixed') state.start = carriedStartOf(limit, stored.atUs);
  }
  return state;
}

const commonOf = ({ lineUs, granted, refused, pausedUntilUs }: WindowState) => ({
  lineUs,
  granted,
  refused,
  pausedUntilUs,
});

/** All that is counted, and in a log all that ever was. */
export const totalOf = (state: WindowState): number =>
  state.mode === 'log'
    ? (state.entries.at(-1)?.total ?? state.base)
    : state.counts.reduce((sum, count) => sum + count, 0);

/** When the window begins that a time falls into. */
export const startOf = (limit: WindowLimit, us: number): number =>
  limit.aligned ? Math.floor(us / limit.windowUs) * limit.windowUs : us;

// What began off the clock counts until the window by the clock ends in which it would have been forgotten.
const carriedStartOf = (limit: WindowLimit, us: number): number =>
  limit.aligned ? Math.ceil(us / limit.windowUs) * limit.windowUs : us;
