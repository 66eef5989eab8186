import type { WindowLimit } from '../../limits/window.ts';
import { MAX_CLOCK_STEP_US, movedBy } from '../moment.ts';

/**
 * Windows: so much per window, all of it at once if need be. What each mode lets through at its worst is in
 * docs/limits.md, and held by test/core/properties/window.property.test.ts. lua/includes/window*.lua are the same in Lua.
 *
 * fixed    one count, from `start` for a window's length; without a count none has begun.
 * sliding  a count for each cell, the newest first, and one cell more than fit: the oldest by its remaining share.
 * log      an entry for each grant, with the running total after it; what is before `base` has left the window.
 */
export interface WindowState {
  /** The latest time seen: a clock that steps back must not open a window again. */
  atUs: number;
  lineUs: number;
  granted: number;
  refused: number;
  closedUs: number;
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

const cellUs = (limit: WindowLimit): number => limit.windowUs / limit.cells;
const cellsOf = (limit: WindowLimit): number => (limit.mode === 'sliding' ? limit.cells + 1 : 1);

/**
 * @param coldAtUs - When all windows without state were full: the store lost its data, or a cold start was asked for; may lie
 *   ahead. 0: they are empty.
 */
export function blankWindow(limit: WindowLimit, nowUs: number, coldAtUs = 0): WindowState {
  const blank = emptyWindow(limit, nowUs);
  if (coldAtUs === 0 || coldAtUs + limit.windowUs <= nowUs) return blank;
  if (limit.mode === 'log') return { ...blank, entries: [{ us: coldAtUs, total: limit.max }] };
  const counts = blank.counts.with(0, limit.max);
  const start = limit.mode === 'fixed' ? startOf(limit, coldAtUs) : Math.floor(coldAtUs / cellUs(limit));
  return { ...blank, start, counts };
}

function emptyWindow(limit: WindowLimit, nowUs: number): WindowState {
  const { mode, windowUs } = limit;
  const start = mode === 'sliding' ? Math.floor(nowUs / cellUs(limit)) : 0;
  const counts = mode === 'log' ? [] : new Array<number>(cellsOf(limit)).fill(0);
  const state = { atUs: nowUs, lineUs: 0, granted: 0, refused: 0, closedUs: 0, start, counts };
  return { ...state, entries: [], base: 0, mode, windowUs };
}

/** A window that is in the terms of the limit in force, as it stands now. */
export function moved(stored: WindowState, limit: WindowLimit, storeNowUs: number): WindowState {
  const state = { ...stored, counts: [...stored.counts] };
  const stepUs = state.atUs - storeNowUs;
  if (stepUs > MAX_CLOCK_STEP_US) step(state, limit, storeNowUs, stepUs);
  const nowUs = Math.max(storeNowUs, state.atUs);
  state.atUs = nowUs;
  if (limit.mode === 'fixed') {
    if (state.counts[0]! > 0 && nowUs >= state.start + limit.windowUs) state.counts = [0];
  } else if (limit.mode === 'sliding') {
    const cell = Math.floor(nowUs / cellUs(limit));
    const passed = Math.min(cell - state.start, limit.cells + 1);
    if (passed > 0) {
      state.counts = [...new Array<number>(passed).fill(0), ...state.counts].slice(0, limit.cells + 1);
      state.start = cell;
    }
  } else {
    const left = state.entries.findIndex(({ us }) => us > nowUs - limit.windowUs);
    const gone = left < 0 ? state.entries.length : left;
    if (gone > 0) state.base = state.entries[gone - 1]!.total;
    state.entries = state.entries.slice(gone);
  }
  return state;
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

const commonOf = ({ lineUs, granted, refused, closedUs }: WindowState) => ({
  lineUs,
  granted,
  refused,
  closedUs,
});

const totalOf = (state: WindowState): number =>
  state.mode === 'log'
    ? (state.entries.at(-1)?.total ?? state.base)
    : state.counts.reduce((sum, count) => sum + count, 0);

// A clock that was far ahead has been put right: what it wrote is taken for what it would have written now.
function step(state: WindowState, limit: WindowLimit, nowUs: number, stepUs: number): void {
  state.atUs = nowUs;
  state.lineUs = movedBy(state.lineUs, stepUs);
  state.closedUs = movedBy(state.closedUs, stepUs);
  if (limit.mode === 'fixed') state.start = startOf(limit, movedBy(state.start, stepUs));
  if (limit.mode === 'sliding') state.start = Math.floor(nowUs / cellUs(limit));
  state.entries = state.entries.map(({ us, total }) => ({ us: Math.max(0, us - stepUs), total }));
}

const startOf = (limit: WindowLimit, us: number): number =>
  limit.aligned ? Math.floor(us / limit.windowUs) * limit.windowUs : us;

// What began off the clock counts until the window by the clock ends in which it would have been forgotten.
const carriedStartOf = (limit: WindowLimit, us: number): number =>
  limit.aligned ? Math.ceil(us / limit.windowUs) * limit.windowUs : us;

/** Tokens that count against the window now. For `sliding` rounded up. */
export function usedOf(state: WindowState, limit: WindowLimit): number {
  if (limit.mode !== 'sliding') return totalOf(state) - state.base;
  const oldest = state.counts[limit.cells]!;
  const share = Math.ceil((oldest * leftOfCellUs(state, limit)) / cellUs(limit));
  return totalOf(state) - oldest + share;
}

const leftOfCellUs = (state: WindowState, limit: WindowLimit): number =>
  cellUs(limit) - (state.atUs - state.start * cellUs(limit));

/** Microseconds from the window's own time until `cost` tokens fit; 0 if they fit now. */
export function windowWaitUs(state: WindowState, limit: WindowLimit, cost: number): number {
  const over = usedOf(state, limit) + cost - limit.max;
  if (over <= 0) return 0;
  if (limit.mode === 'fixed') return state.start + limit.windowUs - state.atUs;
  if (limit.mode === 'sliding') return slidingWaitUs(state, limit, cost);
  const freeing = state.entries.find(({ total }) => total >= state.base + over);
  return freeing === undefined ? limit.windowUs : freeing.us + limit.windowUs - state.atUs;
}

// Cell by cell: within one, only the share of the oldest falls; at its end the next oldest begins to.
function slidingWaitUs(state: WindowState, limit: WindowLimit, cost: number): number {
  const length = cellUs(limit);
  const offsetUs = state.atUs - state.start * length;
  let whole = totalOf(state) - state.counts[limit.cells]!;
  for (let later = 0; later <= limit.cells; later++) {
    const oldest = state.counts[limit.cells - later]!;
    const room = limit.max - whole - cost;
    if (room >= 0) {
      const enterUs = oldest === 0 ? 0 : Math.max(0, length - Math.floor((room * length) / oldest));
      return later * length + Math.max(enterUs, later === 0 ? offsetUs : 0) - offsetUs;
    }
    whole -= state.counts[limit.cells - later - 1] ?? 0;
  }
  return limit.windowUs + length - offsetUs;
}

/** Whether a grant may start then and be counted now: a fixed window and a cell count what starts within them. */
export function windowStartable(state: WindowState, limit: WindowLimit, startUs: number): boolean {
  if (startUs <= state.atUs || limit.mode === 'log') return true;
  if (limit.mode === 'sliding') return Math.floor(startUs / cellUs(limit)) === state.start;
  if (state.counts[0]! > 0) return startUs < state.start + limit.windowUs;
  return !limit.aligned || startOf(limit, startUs) === startOf(limit, state.atUs);
}

export function countIn(state: WindowState, limit: WindowLimit, startUs: number, cost: number): void {
  state.granted += cost;
  if (limit.mode === 'log') {
    const last = state.entries.at(-1);
    // Entries stay in order: one that is later than its start leaves later, and lets nothing through before.
    const us = Math.max(startUs, state.atUs, last?.us ?? 0);
    state.entries = [...state.entries, { us, total: totalOf(state) + cost }];
    return;
  }
  if (limit.mode === 'fixed' && state.counts[0] === 0)
    state.start = startOf(limit, Math.max(startUs, state.atUs));
  state.counts[0] = state.counts[0]! + cost;
}

/**
 * Takes tokens out of the count again that were never used, or adds those that were used besides.
 * @returns whether all of it was done; a log keeps its entries, and a window that has passed has nothing to take from.
 */
export function correct(state: WindowState, limit: WindowLimit, startUs: number, by: number): boolean {
  if (by >= 0) {
    if (by > 0) countIn(state, limit, state.atUs, by);
    return true;
  }
  if (limit.mode === 'log') return false;
  const cell = limit.mode === 'fixed' ? 0 : state.start - Math.floor(startUs / cellUs(limit));
  const there = limit.mode === 'fixed' ? startUs >= state.start : cell >= 0 && cell <= limit.cells;
  if (!there) return false;
  const given = Math.min(state.counts[cell]!, -by);
  state.counts[cell] = state.counts[cell]! - given;
  return given === -by;
}

/** The microsecond at which the window will hold nothing any more. */
export function windowEmptyUs(state: WindowState, limit: WindowLimit): number {
  if (totalOf(state) - state.base === 0) return state.atUs;
  if (limit.mode === 'fixed') return state.start + limit.windowUs;
  if (limit.mode === 'log') return state.entries.at(-1)!.us + limit.windowUs;
  return (state.start + limit.cells + 1) * cellUs(limit);
}

/** By how much a place in the line moves it on: what the window grants in the mean. */
export const windowIntervalUs = (limit: WindowLimit, cost: number): number =>
  Math.ceil((cost * limit.windowUs) / limit.max);
