import { type Buckets, kindOf } from '../buckets/kinds.ts';
import type { Moment } from '../buckets/moment.ts';
import { longer } from '../buckets/pause.ts';
import type { Demand } from './demands.ts';
import { nobody, save, viewOf } from './view.ts';

/**
 * Pauses of single keys: a time in the state of each bucket. What it makes of a bucket is its kind's. lua/includes/decide/pause.lua
 * is the same in Lua.
 */

/** Pauses the buckets until then. A pause that already ends later stays as it is: the longest wins. */
export function pauseUntil(buckets: Buckets, demands: readonly Demand[], untilUs: number, at: Moment): void {
  for (const demand of demands) {
    const view = viewOf(buckets, demand, nobody(), at);
    view.state.pause = longer(view.state.pause, at.nowUs, untilUs);
    kindOf(demand).paused?.(view);
    save(buckets, view);
  }
}

/** Ends a pause of the buckets. Those of rates, and shares of them, are empty now. */
export function resume(buckets: Buckets, demands: readonly Demand[], at: Moment): void {
  for (const demand of demands) {
    const view = viewOf(buckets, demand, nobody(), at);
    const { state } = view;
    if (state.pause === null || state.pause.untilUs <= at.nowUs) continue;
    state.pause = { ...state.pause, untilUs: Math.max(at.nowUs, state.atUs) };
    kindOf(demand).resumed?.(view, at);
    save(buckets, view);
  }
}
