import { LINE_GRACE_US } from './constants.ts';
import type { DemandOf } from './kind.ts';
import { type Buckets, type KeyRegistry, kindOf, registryName, stateName } from './kinds.ts';
import type { BucketState } from './moment.ts';

/**
 * Key overflow: a limit keeps buckets for at most `maxKeys` values of its attribute at once. Others share one more bucket,
 * which has the limit's name without a value, so that a long tail of values cannot fill the store. lua/includes/buckets/key-overflow.lua
 * is the same in Lua.
 *
 * A value gets a bucket of its own only while the shared one is at rest: what it was granted from there counts for it still.
 */

/** The demand, on the bucket that it meets: its key's own, or the one that keys beyond `maxKeys` share. */
export function bucketFor(buckets: Buckets, demand: DemandOf, nowUs: number): DemandOf {
  const maxKeys = maxKeysOf(demand);
  if (maxKeys === null) return demand;
  const shared = { ...demand, bucket: demand.limit.name };
  const stored = buckets.get(stateName(shared)) as BucketState | undefined;
  const atRest = stored === undefined || expiryOf(shared, stored) <= nowUs;
  return hasOwnBucket(registryOf(buckets, demand), stateName(demand), maxKeys, atRest, nowUs)
    ? demand
    : shared;
}

/** Notes that the bucket of a demand has state until then. */
export function registerBucket(buckets: Buckets, demand: DemandOf, untilUs: number): void {
  if (maxKeysOf(demand) === null || demand.bucket === demand.limit.name) return;
  const registry = registryOf(buckets, demand);
  registry.until.set(stateName(demand), untilUs);
  buckets.set(registryName(demand.limit.name), registry, Number.MAX_SAFE_INTEGER);
}

/** From when a state says nothing more than none does, as a store may have it: a line is remembered for a while. */
export const expiryOf = (demand: DemandOf, state: BucketState): number =>
  kindOf(demand).expiresUs(state, demand.limit) + LINE_GRACE_US;

const maxKeysOf = ({ limit }: DemandOf): number | null => ('maxKeys' in limit ? limit.maxKeys : null);

const registryOf = (buckets: Buckets, { limit }: DemandOf): KeyRegistry =>
  (buckets.get(registryName(limit.name)) as KeyRegistry | undefined) ?? { until: new Map() };

function hasOwnBucket(
  { until }: KeyRegistry,
  bucket: string,
  maxKeys: number,
  sharedAtRest: boolean,
  nowUs: number,
): boolean {
  if ((until.get(bucket) ?? 0) > nowUs) return true;
  if (!sharedAtRest) return false;
  if (until.size < maxKeys) return true;
  for (const [other, untilUs] of until) if (untilUs <= nowUs) until.delete(other);
  return until.size < maxKeys;
}
