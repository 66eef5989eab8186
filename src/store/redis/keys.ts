/**
 * The names of a governor's keys; docs/redis-keys.md describes what they hold. All of them share the hash tag `{name}`, so
 * that a cluster keeps them on one node and one script may touch any of them.
 */

export const configKey = (governor: string): string => `flyball:{${governor}}:config`;

/** @param bucket - As in a leg: the limit's name, with `:` and the key's value if it has one. */
export const bucketKey = (governor: string, bucket: string): string =>
  `flyball:{${governor}}:limit:${bucket}`;
