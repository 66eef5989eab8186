import type { Demand } from '../../core/decide/demands.ts';

/**
 * The names of a governor's keys; docs/redis-keys.md describes what they hold. All of them share the hash tag `{name}`, so
 * that a cluster keeps them on one node and one script may touch any of them.
 */

const prefix = (governor: string): string => `flyball:{${governor}}`;

export const configKey = (governor: string): string => `${prefix(governor)}:config`;

// What a bucket's keys are called; its own is the first.
export const PLACES = {
  rate: ['limit'],
  window: ['window', 'log'],
  concurrency: ['slots', 'leases', 'queue', 'waiting'],
  share: ['share'],
} as const;

/** A bucket's own key. @param bucket - As in a demand: the limit's name, with `:` and the key's value if it has one. */
export const bucketKey = (governor: string, bucket: string, kind: Demand['kind'] = 'rate'): string =>
  `${prefix(governor)}:${PLACES[kind][0]}:${bucket}`;

/** All keys of a bucket, as lua/includes/buckets takes them. A share has one more, for all values of its limit. */
export function bucketKeys(governor: string, { kind, limit, bucket }: Demand): string[] {
  const keys = PLACES[kind].map((place) => `${prefix(governor)}:${place}:${bucket}`);
  return kind === 'share' ? [...keys, `${prefix(governor)}:sharing:${limit.name}`] : keys;
}

/** The values of a limit's attribute that have a bucket of their own. */
export const registryKey = (governor: string, limit: string): string => `${prefix(governor)}:keys:${limit}`;

/** The channel on which a process hears of slots that have come free for its own waiters. */
export const wakePrefix = (governor: string): string => `${prefix(governor)}:wake:`;

export const historyKey = (governor: string): string => `${prefix(governor)}:history`;

/** The channel of what concerns all processes. A cluster tells all its nodes. */
export const eventsChannel = (governor: string): string => `${prefix(governor)}:events`;

/** @param queue - As the adapter names it, its prefix included. */
export const deferredKeys = (governor: string, queue: string): string[] =>
  ['deferred', 'deferred-since', 'deferred-slots'].map((place) => `${prefix(governor)}:${place}:${queue}`);

export const retimedKey = (governor: string, queue: string): string => `${prefix(governor)}:retimed:${queue}`;
