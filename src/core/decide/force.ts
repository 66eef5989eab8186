import { type Buckets, kindOf } from '../buckets/kinds.ts';
import type { Moment } from '../buckets/moment.ts';
import { charge } from './charge.ts';
import type { Demand } from './demands.ts';
import type { Receipt } from './verdict.ts';
import { viewsOf } from './view.ts';

/**
 * Charges a request whatever the buckets hold, now; what comes after it waits until that has drained.
 * @returns null if the numbers would not stay exact; then nothing is charged.
 */
export function force(
  buckets: Buckets,
  demands: readonly Demand[],
  holder: string,
  at: Moment,
): Receipt | null {
  const asker = { priority: 0, holder } as const;
  const views = viewsOf(buckets, demands, asker, at);
  if (!views.every((view) => kindOf(view.demand).staysExact?.(view, 0) ?? true)) return null;
  const charges = views.map((view) => charge(buckets, view, asker, 0, false));
  return { startUs: at.nowUs, ahead: false, version: at.version, holder, charges };
}
