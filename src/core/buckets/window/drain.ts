import type { WindowLimit } from '../../limits/window.ts';
import { MAX_CLOCK_STEP_US } from '../constants.ts';
import { type Moment, movedBy } from '../moment.ts';
import { movedPause } from '../pause.ts';
import { carriedStartOf, cellsOf, cellUs, emptyWindow, startOf, totalOf, type WindowState } from './state.ts';

/** What time and changes of the limits make of a window. lua/includes/buckets/window/drain.lua is the same in Lua. */

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

const commonOf = ({ lineUs, granted, refused, pause }: WindowState) => ({
  lineUs,
  granted,
  refused,
  pause,
});

/** A window that is in the terms of the limit in force, as it stands now. */
export function drained(stored: WindowState, limit: WindowLimit, storeNowUs: number): WindowState {
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

// A clock that was far ahead has been put right: what it wrote is taken for what it would have written now.
function step(state: WindowState, limit: WindowLimit, nowUs: number, stepUs: number): void {
  state.atUs = nowUs;
  state.lineUs = movedBy(state.lineUs, stepUs);
  state.pause = movedPause(state.pause, stepUs);
  if (limit.mode === 'fixed') state.start = startOf(limit, movedBy(state.start, stepUs));
  if (limit.mode === 'sliding') state.start = Math.floor(nowUs / cellUs(limit));
  state.entries = state.entries.map(({ us, total }) => ({ us: Math.max(0, us - stepUs), total }));
}
