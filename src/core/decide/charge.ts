import type { Asker, View } from '../buckets/kind.ts';
import { type Buckets, kindOf } from '../buckets/kinds.ts';
import type { Demand } from './demands.ts';
import type { Charge, Wake } from './verdict.ts';
import { save } from './view.ts';

/**
 * Takes the cost from a bucket, from `startUs` on, and keeps its state.
 * @param ahead - Whether it may be taken back.
 */
export function charge(
  buckets: Buckets,
  view: View,
  asker: Asker,
  startUs: number,
  ahead: boolean,
  wakeUp?: Wake,
): Charge {
  const kind = kindOf(view.demand);
  const { grantedAfter = 0, pushedUnits = 0, fence = 0 } = kind.charge(view, asker, startUs);
  if (wakeUp !== undefined) wake(view, wakeUp);
  save(buckets, view);
  const demand = view.demand as Demand;
  return ahead
    ? { demand, grantedAfter, pushedUnits, fence }
    : { demand, grantedAfter: 0, pushedUnits: 0, fence };
}

/** Wakes those for whom there is a slot now. */
export function wake(view: View, wakeUp: Wake): void {
  for (const holder of kindOf(view.demand).slots?.wake(view) ?? []) wakeUp(holder);
}
