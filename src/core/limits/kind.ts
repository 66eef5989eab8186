import { check, optional, wholeNumber } from '../checks.ts';

/** What all kinds of limits can tell of themselves: one of these for each kind, in a file of its own. */
export interface LimitKind<L extends { readonly options: object }> {
  /** Checks a limit as a user wrote it. @throws {@link InvalidOptionError} */
  parse(name: string, path: string, given: Record<string, unknown>, by: string | null): L;
  /** The first words about it, for people, and the options that they do not say. */
  words(options: L['options']): [first: string, rest: object & { readonly by?: string }];
  /** The attribute whose values it tells apart; null: none. */
  attributeOf(limit: L): string | null;
  /** Tokens of its burst or window, or slots. */
  size(limit: L): number;
  /** The most that can ever be asked of it. One that was lowered for a while can be raised again: that is no error. */
  mostCost(limit: L): number;
  /** Whether a cost that is one number for all limits is meant for it. Slots are no tokens: a job of 5,000 tokens is one job. */
  readonly countsTokens: boolean;
  /** The longest time in which a bucket that was empty fills, in microseconds. */
  fillingUs(limit: L): number;
  /** Microseconds that the tokens of a cost take to come; undefined where that is not a matter of time alone. */
  intervalUs(limit: L, cost: number): number | undefined;
}

const PERIODS = new Map([
  [1_000, 'second'],
  [60_000, 'minute'],
  [3_600_000, 'hour'],
  [86_400_000, 'day'],
]);

/** A period in words: "per second", "per 250 ms". */
export const perPeriod = (ms: number): string => `per ${PERIODS.get(ms) ?? `${ms} ms`}`;

/** Of how many values of an attribute a limit keeps buckets; null: of all. @throws {@link InvalidOptionError} */
export function parseMaxKeys(path: string, value: unknown, by: string | null, fair = false): number | null {
  const isAllowed = value === undefined || (by !== null && !fair);
  check(isAllowed, `${path}.maxKeys`, 'maxKeys only together with by, and without fair', value);
  return optional(value, () => wholeNumber(`${path}.maxKeys`, value, 1, 10_000_000)) ?? null;
}
