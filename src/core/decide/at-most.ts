import type { Asker, View } from '../buckets/kind.ts';
import { type Buckets, kindOf } from '../buckets/kinds.ts';
import type { Moment } from '../buckets/moment.ts';
import { lineAheadUs } from './acquire.ts';
import type { Terms } from './ask.ts';
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
  const asker = { priority, holder: '' };
  const views = viewsOf(buckets, demands, asker, at);
  const tokens = Math.min(most, ...views.map((view) => availableOf(view, asker, at)));
  if (tokens < 1) return 0;
  for (const view of views) {
    charge(buckets, { ...view, demand: { ...view.demand, cost: tokens } }, asker, at.nowUs, false);
  }
  return tokens;
}

function availableOf(view: View, asker: Asker, at: Moment): number {
  if (view.pausedUs > 0 || lineAheadUs(view, asker, at) > 0) return 0;
  const kind = kindOf(view.demand);
  return Math.max(0, kind.available?.(view, asker) ?? kind.remaining(view));
}
