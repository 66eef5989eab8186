import { check, oneOf, plainObject } from '../checks.ts';
import { CONCURRENCY_LIMIT, type ConcurrencyLimit, type ConcurrencyLimitOptions } from './concurrency.ts';
import type { LimitKind } from './kind.ts';
import { RATE_LIMIT, type RateLimit, type RateLimitOptions } from './rate.ts';
import { WINDOW_LIMIT, type WindowLimit, type WindowLimitOptions } from './window.ts';

/** One named rule, as a user writes it. Without `kind` it is a rate. */
export type LimitOptions = RateLimitOptions | WindowLimitOptions | ConcurrencyLimitOptions;
export type LimitsOptions = Record<string, LimitOptions>;

/** One named rule in exact numbers. */
export type Limit = RateLimit | WindowLimit | ConcurrencyLimit;

/** The limits of one governor, in the order in which they were declared. */
export type Limits = readonly Limit[];

/** The list of kinds: each has a line. */
export const LIMIT_KINDS: Readonly<Record<Limit['kind'], LimitKind<Limit>>> = {
  rate: RATE_LIMIT,
  window: WINDOW_LIMIT,
  concurrency: CONCURRENCY_LIMIT,
};

export const kindOfLimit = ({ kind }: Pick<Limit, 'kind'>): LimitKind<Limit> => LIMIT_KINDS[kind];

const NAME = /^[A-Za-z][\w-]{0,63}$/;

/** Checks a governor's limits and turns them into exact numbers. @throws {@link InvalidOptionError} */
export function parseLimits(options: unknown): Limits {
  const entries = Object.entries(plainObject('limits', options));
  check(entries.length > 0, 'limits', 'at least one limit', options);
  return Object.freeze(entries.map(([name, limit]) => parseLimit(name, limit)));
}

/** @throws {@link InvalidOptionError} */
export function parseLimit(name: string, options: unknown): Limit {
  const path = `limits.${name}`;
  check(NAME.test(name), path, 'a name of letters, digits, _ and -, beginning with a letter', name);
  const given = plainObject(path, options);
  const { kind = 'rate', by } = given;
  const isName = by === undefined || (typeof by === 'string' && NAME.test(by));
  check(isName, `${path}.by`, 'the name of an attribute (letters, digits, _ and -)', by);
  const kinds = Object.keys(LIMIT_KINDS) as Limit['kind'][];
  return LIMIT_KINDS[oneOf(`${path}.kind`, kind, kinds)].parse(name, path, given, by ?? null);
}
