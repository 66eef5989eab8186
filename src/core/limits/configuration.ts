import { kindOfLimit, type Limit, type Limits } from './limit.ts';
import { limitInWords } from './words.ts';

/** The limits of a governor, and who set them. */
export interface Configuration {
  /** Grows by 1 with each change. */
  readonly version: number;
  /** The highest revision that code brought; 0: none brought any. */
  readonly revision: number;
  /** Those in force: code's, each replaced by the operator's of the same name; those that the operator added come last. */
  readonly limits: Limits;
  /** As code proposes them. */
  readonly code: Limits;
  /** As an operator set them; empty: none are set. */
  readonly operator: Limits;
  /** Who made the last change. */
  readonly who: string;
}

/** One change of a configuration. */
export interface ConfigurationChange {
  /** The version it made. */
  readonly version: number;
  /** When: microseconds since the epoch, by the store's clock if it is shared. */
  readonly atUs: number;
  readonly who: string;
  /** A line for each limit that changed, old → new, for people. */
  readonly what: readonly string[];
}

/** How many changes a store remembers. */
export const MAX_HISTORY = 100;

/** The limits of `base`, each replaced by that of `over` with the same name; those that only `over` has come last. */
export function overlaid(base: Limits, over: Limits): Limits {
  const replaced = base.map((limit) => named(over, limit.name) ?? limit);
  const added = over.filter(({ name }) => named(base, name) === undefined);
  return Object.freeze([...replaced, ...added]);
}

const named = <L extends Limit>(limits: readonly L[], name: string): L | undefined =>
  limits.find((limit) => limit.name === name);

/**
 * What changed from one set of limits to the other, a line for each limit.
 *
 * @param whose - Whose limits they are: an operator's may change while code's stay, and the other way round.
 * @param before - `undefined`: nobody can tell, since the text in the store was damaged.
 */
export function changesInWords(
  whose: 'code' | 'operator',
  before: Limits | undefined,
  after: Limits,
): readonly string[] {
  if (before === undefined && after.length === 0) return [`all limits (${whose}): unreadable → none`];
  const names = new Set([...(before ?? []), ...after].map(({ name }) => name));
  return [...names].flatMap((name) => {
    const was = before === undefined ? 'unreadable' : inWords(named(before, name));
    const is = inWords(named(after, name));
    return was === is ? [] : [`${name} (${whose}): ${was} → ${is}`];
  });
}

const inWords = (limit: Limit | undefined): string => (limit === undefined ? 'none' : limitInWords(limit));

/**
 * The longest time in which a bucket that was empty fills, in microseconds, at the slowest that each limit may come to.
 * A store whose buckets were all empty once may forget that after it.
 */
export const fillingUs = (limits: Limits): number =>
  Math.max(...limits.map((limit) => kindOfLimit(limit).fillingUs(limit)));
