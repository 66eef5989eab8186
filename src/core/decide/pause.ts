import type { Moment } from '../buckets/moment.ts';
import { type Bucket, costUnits } from '../buckets/rate/debt.ts';
import { owedByPause } from '../buckets/share/share.ts';
import type { Buckets } from './buckets.ts';
import type { Demand } from './demands.ts';
import { type ShareView, save, type View, viewsOf } from './views.ts';

/**
 * Pauses of single keys: a time in the state of each bucket. What it makes of a bucket is for those that look at it (gcra.ts,
 * ramp.ts). lua/includes/decide/pause.lua is the same in Lua.
 */

/** Closes the buckets until then. A pause that already ends later stays as it is: the longest wins. */
export function pauseUntil(buckets: Buckets, demands: readonly Demand[], untilUs: number, at: Moment): void {
  for (const view of viewsAlone(buckets, demands, at)) {
    view.state.closedUs = Math.max(view.state.closedUs, untilUs);
    if (view.demand.kind === 'rate') (view.state as Bucket).overUs = 0;
    save(buckets, view);
  }
}

/** Opens the buckets again. Those of rates, and shares of them, are empty now. */
export function resume(buckets: Buckets, demands: readonly Demand[], at: Moment): void {
  for (const view of viewsAlone(buckets, demands, at)) {
    const { state, demand } = view;
    if (state.closedUs <= at.nowUs) continue;
    state.closedUs = at.nowUs;
    if (demand.kind === 'rate') {
      const bucket = state as Bucket;
      bucket.debt = Math.max(bucket.debt, costUnits(demand.limit, demand.limit.burst));
    } else if (demand.kind === 'share') {
      const { state, whole } = view as ShareView;
      state.debt = Math.max(state.debt, owedByPause(state, demand.limit, whole.state, demand.cost));
    }
    save(buckets, view);
  }
}

// One by one; a share is seen beside the limit that it is of.
function viewsAlone(buckets: Buckets, demands: readonly Demand[], at: Moment): View[] {
  return demands.map((demand) => {
    const whole: Demand[] =
      demand.kind === 'share' ? [{ ...demand, kind: 'rate', bucket: demand.limit.name, by: null }] : [];
    return viewsOf(buckets, [...whole, demand], { priority: 1, holder: '' }, at).at(-1)!;
  });
}
