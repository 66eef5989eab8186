import { LINE_GRACE_US } from '../buckets/constants.ts';
import { bucketFor, expiryOf, registerBucket } from '../buckets/key-overflow.ts';
import type { Asker, DemandOf, View } from '../buckets/kind.ts';
import { type Buckets, groupName, kindOf, type State, stateName } from '../buckets/kinds.ts';
import type { BucketState, Moment } from '../buckets/moment.ts';

/** The buckets of a request, as they look to it now. */
export function viewsOf(buckets: Buckets, demands: readonly DemandOf[], asker: Asker, at: Moment): View[] {
  const views: View[] = [];
  for (const demand of demands) views.push(viewOf(buckets, demand, asker, at, views.at(-1)));
  return views;
}

/** @param before - Of the demand before it: a share comes right after its rate. */
export function viewOf(buckets: Buckets, asked: DemandOf, asker: Asker, at: Moment, before?: View): View {
  const { parent } = asked;
  const demand = bucketFor(buckets, asked, at.nowUs);
  const parentView = parent && (before?.demand === parent ? before : viewOf(buckets, parent, asker, at));
  const group = parent && buckets.get(groupName(demand.limit.name));
  return kindOf(demand).look(
    { demand, stored: storedAs(buckets, demand), group, parent: parentView },
    asker,
    at,
  );
}

/** One that asks for nothing new. @param holder - Of the slots that it is about. */
export const nobody = (holder = ''): Asker => ({ priority: 1, holder });

/** The view of a bucket whose state still says something; undefined if there is nothing to give back to. */
export function viewIfKept(buckets: Buckets, demand: DemandOf, asker: Asker, at: Moment): View | undefined {
  const stored = storedAs(buckets, demand);
  if (stored === undefined || expiryOf(demand, stored) <= at.nowUs) return undefined;
  return viewOf(buckets, demand, asker, at);
}

export const storedAs = (buckets: Buckets, demand: DemandOf): BucketState | undefined =>
  buckets.get(stateName(demand)) as BucketState | undefined;

/** Keeps the state of a view, or another one for it. */
export function save(buckets: Buckets, { demand, state, group }: View, kept = state): void {
  const untilUs = expiryOf(demand, kept);
  buckets.set(stateName(demand), kept as State, untilUs);
  if (group !== undefined) {
    const groupUntilUs = kindOf(demand).groupExpiresUs!(group) + LINE_GRACE_US;
    buckets.set(groupName(demand.limit.name), group as State, groupUntilUs);
  }
  registerBucket(buckets, demand, untilUs);
}
