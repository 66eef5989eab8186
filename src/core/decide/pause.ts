import type { Moment } from '../buckets/moment.ts';
import { type Bucket, costUnits } from '../buckets/rate/debt.ts';
import { owedByPause } from '../buckets/share/share.ts';
import type { Buckets } from './buckets.ts';
import type { Leg } from './legs.ts';
import { type ShareView, save, type View, viewsOf } from './views.ts';

/**
 * Pauses of single keys: a time in the state of each bucket. What it makes of a bucket is for those that look at it (gcra.ts,
 * ramp.ts). lua/includes/decide/pause.lua is the same in Lua.
 */

/** Closes the buckets until then. A pause that already ends later stays as it is: the longest wins. */
export function pauseUntil(buckets: Buckets, legs: readonly Leg[], untilUs: number, at: Moment): void {
  for (const view of viewsAlone(buckets, legs, at)) {
    view.state.closedUs = Math.max(view.state.closedUs, untilUs);
    if (view.leg.kind === 'rate') (view.state as Bucket).overUs = 0;
    save(buckets, view);
  }
}

/** Opens the buckets again. Those of rates, and shares of them, are empty now. */
export function resume(buckets: Buckets, legs: readonly Leg[], at: Moment): void {
  for (const view of viewsAlone(buckets, legs, at)) {
    const { state, leg } = view;
    if (state.closedUs <= at.nowUs) continue;
    state.closedUs = at.nowUs;
    if (leg.kind === 'rate') {
      const bucket = state as Bucket;
      bucket.debt = Math.max(bucket.debt, costUnits(leg.limit, leg.limit.burst));
    } else if (leg.kind === 'share') {
      const { state, whole } = view as ShareView;
      state.debt = Math.max(state.debt, owedByPause(state, leg.limit, whole.state, leg.cost));
    }
    save(buckets, view);
  }
}

// One by one; a share is seen beside the limit that it is of.
function viewsAlone(buckets: Buckets, legs: readonly Leg[], at: Moment): View[] {
  return legs.map((leg) => {
    const whole: Leg[] =
      leg.kind === 'share' ? [{ ...leg, kind: 'rate', bucket: leg.limit.name, by: null }] : [];
    return viewsOf(buckets, [...whole, leg], { priority: 1, holder: '' }, at).at(-1)!;
  });
}
