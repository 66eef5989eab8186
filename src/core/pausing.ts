import { capacityAt } from './gcra.ts';
import type { Moment } from './moment.ts';
import type { Leg } from './request.ts';
import type { Buckets } from './states.ts';
import { type RateView, save, type View, viewsOf } from './views.ts';

/**
 * Pauses of single keys. A paused bucket is empty when its pause ends, so that work resumes at the rate and not as a
 * burst. lua/includes/pause.lua is the same in Lua.
 */

/** Closes the buckets until then. A pause that already ends later stays as it is: the longest wins. */
export function pauseUntil(buckets: Buckets, legs: readonly Leg[], untilUs: number, at: Moment): void {
  for (const view of viewsAlone(buckets, legs, at)) {
    const { state } = view;
    state.closedUs = Math.max(state.closedUs, untilUs);
    if (view.leg.kind === 'rate') fill(view as RateView, at);
    save(buckets, view);
  }
}

// The debt of a bucket that is empty then; its state must last until it has drained.
function fill({ state, leg }: RateView, at: Moment): void {
  state.debt = Math.max(
    state.debt,
    capacityAt(leg.limit, state.rate, Math.max(0, state.closedUs - at.nowUs)),
  );
}

/** Opens the buckets again. They are empty now; of one that has grants promised ahead, after those. */
export function resume(buckets: Buckets, legs: readonly Leg[], at: Moment): void {
  for (const view of viewsAlone(buckets, legs, at)) {
    const { state, leg } = view;
    const { closedUs } = state;
    if (closedUs <= at.nowUs) continue;
    state.closedUs = at.nowUs;
    if (leg.kind === 'rate') {
      // What was granted for after the pause stays as it is, and so do those who come after it.
      const bucket = (view as RateView).state;
      const untouched = bucket.debt <= capacityAt(leg.limit, bucket.rate, closedUs - at.nowUs);
      // The whole governor may be paused still.
      const leftUs = Math.max(0, at.closedUs - at.nowUs);
      if (untouched) bucket.debt = Math.min(bucket.debt, capacityAt(leg.limit, bucket.rate, leftUs));
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
