import type { View } from '../buckets/kind.ts';
import { type Buckets, kindOf } from '../buckets/kinds.ts';
import type { Moment } from '../buckets/moment.ts';
import { lineAheadUs } from './acquire.ts';
import { type Ask, now, type Terms } from './ask.ts';
import { charge } from './charge.ts';
import type { Demand } from './demands.ts';
import { viewsOf } from './view.ts';

/**
 * Takes as many whole tokens as there are now, from 0 to `most`, from each bucket of a request as many. A fraction of a
 * token stays where it is.
 */
export function atMost(
  buckets: Buckets,
  demands: readonly Demand[],
  most: number,
  priority: Terms['priority'],
  at: Moment,
): number {
  const ask = now(priority);
  const views = viewsOf(buckets, demands, ask, at);
  const tokens = Math.min(most, ...views.map((view) => availableOf(view, ask, at)));
  if (tokens < 1) return 0;
  for (const view of views) {
    charge(buckets, { ...view, demand: { ...view.demand, cost: tokens } }, ask, at.nowUs, false);
  }
  return tokens;
}

function availableOf(view: View, ask: Ask, at: Moment): number {
  if (view.pausedUs > 0 || lineAheadUs(view, ask, at) > 0) return 0;
  const kind = kindOf(view.demand);
  return Math.max(0, kind.available?.(view, ask) ?? kind.remaining(view));
}
