import type { WindowLimit } from '../../limits/window.ts';
import { cellUs, startOf, totalOf, type WindowState } from './state.ts';

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
export function waitUs(state: WindowState, limit: WindowLimit, cost: number): number {
  const excess = usedOf(state, limit) + cost - limit.max;
  if (excess <= 0) return 0;
  if (limit.mode === 'fixed') return state.start + limit.windowUs - state.atUs;
  if (limit.mode === 'sliding') return slidingWaitUs(state, limit, cost);
  const freeing = state.entries.find(({ total }) => total >= state.base + excess);
  return freeing === undefined ? limit.windowUs : freeing.us + limit.windowUs - state.atUs;
}

// Cell by cell: within one, only the share of the oldest falls; at its end the next oldest begins to.
function slidingWaitUs(state: WindowState, limit: WindowLimit, cost: number): number {
  const length = cellUs(limit);
  const offsetUs = state.atUs - state.start * length;
  let counted = totalOf(state) - state.counts[limit.cells]!;
  for (let later = 0; later <= limit.cells; later++) {
    const oldest = state.counts[limit.cells - later]!;
    const room = limit.max - counted - cost;
    if (room >= 0) {
      const enterUs = oldest === 0 ? 0 : Math.max(0, length - Math.floor((room * length) / oldest));
      return later * length + Math.max(enterUs, later === 0 ? offsetUs : 0) - offsetUs;
    }
    counted -= state.counts[limit.cells - later - 1] ?? 0;
  }
  return limit.windowUs + length - offsetUs;
}

/** Whether a grant may start then and be counted now: a fixed window and a cell count what starts within them. */
export function startsWithin(state: WindowState, limit: WindowLimit, startUs: number): boolean {
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
export function emptyAtUs(state: WindowState, limit: WindowLimit): number {
  if (totalOf(state) - state.base === 0) return state.atUs;
  if (limit.mode === 'fixed') return state.start + limit.windowUs;
  if (limit.mode === 'log') return state.entries.at(-1)!.us + limit.windowUs;
  return (state.start + limit.cells + 1) * cellUs(limit);
}
