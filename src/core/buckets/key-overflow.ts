/**
 * Key overflow: a limit keeps buckets for at most `maxKeys` values of its attribute at once. Others share one more bucket,
 * which has the limit's name without a value, so that a long tail of values cannot fill the store. lua/includes/buckets/key-overflow.lua
 * is the same in Lua.
 *
 * A value gets a bucket of its own only while the shared one is at rest: what it was granted from there counts for it still.
 */
export interface KeyRegistry {
  /** The buckets that have state, and until when. */
  readonly until: Map<string, number>;
}

export const blankRegistry = (): KeyRegistry => ({ until: new Map() });

/** Whether a value has a bucket of its own, or may have one. */
export function hasOwnBucket(
  registry: KeyRegistry,
  bucket: string,
  maxKeys: number,
  sharedAtRest: boolean,
  nowUs: number,
): boolean {
  if ((registry.until.get(bucket) ?? 0) > nowUs) return true;
  if (!sharedAtRest) return false;
  if (registry.until.size < maxKeys) return true;
  for (const [other, untilUs] of registry.until) if (untilUs <= nowUs) registry.until.delete(other);
  return registry.until.size < maxKeys;
}

/** Told that the bucket has state until then. */
export function registerBucket(registry: KeyRegistry, bucket: string, untilUs: number): void {
  registry.until.set(bucket, untilUs);
}
