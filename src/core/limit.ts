import { InvalidOptionError } from './errors.ts';
import { knownNames, oneOf, plainObject, wholeNumber } from './options.ts';

/** A rate limit as a user writes it; {@link perSecond} and its like write it for them. */
export interface RateLimitOptions {
  kind?: 'rate';
  /** Tokens per period: above 0, at most 3 decimals (0.1 is taken as exactly 1 in 10 periods). */
  rate: number;
  /** Length of the period in milliseconds, above 0, at most 3 decimals (whole microseconds), at most 366 days. */
  periodMs: number;
  /**
   * Size of the bucket: the most tokens that may pass at one instant. A whole number from 1. Default: `rate`, but
   * at most one second's worth and at least 1, so that an idle night is not paid out in one blow.
   */
  burst?: number;
  /** Name of the attribute that has a bucket of its own for each of its values, for example `'shop'`. */
  by?: string;
}

export type LimitOptions = RateLimitOptions;
export type LimitsOptions = Record<string, LimitOptions>;

/**
 * A rate limit in exact numbers. One token is `periodUs` units of debt, and `rate` units drain each microsecond,
 * so that no rate and no period is ever rounded.
 */
export interface RateLimit {
  readonly name: string;
  readonly kind: 'rate';
  readonly by: string | null;
  /** Units that drain per microsecond; `rate / periodUs` is tokens per microsecond in lowest terms. */
  readonly rate: number;
  readonly periodUs: number;
  readonly burst: number;
}

/** The limits of one governor, in the order in which they were declared. */
export type Limits = readonly RateLimit[];

// Half of what a double holds exactly is kept for debt, a quarter for one bucket's capacity, so that no sum of the
// two in gcra.ts, nor the same sum in Lua, can leave the exact range of 2^53.
export const MAX_CAPACITY_UNITS = 2 ** 51;
export const MAX_DEBT_UNITS = 2 ** 52;

const MAX_PERIOD_MS = 366 * 86_400_000;
const MAX_RATE = 1_000_000_000;
const RATE_SCALE = 1_000;
// Every limit can be reserved at least this far ahead; a rate with so many digits that it can't is refused.
const MIN_HORIZON_US = 60_000_000;

/** `rate` tokens per second, evenly. */
export const perSecond = rateOver(1_000);
/** `rate` tokens per minute, evenly: `perMinute(60)` lets one pass each second. */
export const perMinute = rateOver(60_000);
/** `rate` tokens per hour, evenly. */
export const perHour = rateOver(3_600_000);
/** `rate` tokens per day of 24 hours, evenly. */
export const perDay = rateOver(86_400_000);

function rateOver(periodMs: number) {
  return (rate: number, options: Pick<RateLimitOptions, 'burst' | 'by'> = {}): RateLimitOptions => ({
    rate,
    periodMs,
    ...plainObject('options', options),
  });
}

/** Checks a governor's limits and turns them into exact numbers. @throws {@link InvalidOptionError} */
export function parseLimits(options: unknown): Limits {
  const entries = Object.entries(plainObject('limits', options));
  if (entries.length === 0) throw new InvalidOptionError('limits', 'at least one limit', options);
  return Object.freeze(entries.map(([name, limit]) => parseLimit(name, limit)));
}

function parseLimit(name: string, options: unknown): RateLimit {
  const path = `limits.${name}`;
  if (!/^[A-Za-z][\w-]{0,63}$/.test(name)) {
    throw new InvalidOptionError(path, 'a name of letters, digits, _ and -, beginning with a letter', name);
  }
  const { kind, rate, periodMs, burst, by } = plainObject(path, options);
  knownNames(path, options as object, ['kind', 'rate', 'periodMs', 'burst', 'by']);
  if (kind !== undefined) oneOf(`${path}.kind`, kind, ['rate']);
  if (by !== undefined && (typeof by !== 'string' || !/^[A-Za-z][\w-]{0,63}$/.test(by))) {
    throw new InvalidOptionError(`${path}.by`, 'the name of an attribute (letters, digits, _ and -)', by);
  }
  const scaledRate = exactly(`${path}.rate`, rate, RATE_SCALE, MAX_RATE, 'tokens per period');
  const us = exactly(`${path}.periodMs`, periodMs, 1_000, MAX_PERIOD_MS, 'milliseconds');
  // rate tokens in us µs = scaledRate tokens in us × RATE_SCALE µs, in lowest terms; BigInt, as the product is large.
  const divisor = gcd(BigInt(scaledRate), BigInt(us) * BigInt(RATE_SCALE));
  const unitsPerUs = Number(BigInt(scaledRate) / divisor);
  const periodUs = Number((BigInt(us) * BigInt(RATE_SCALE)) / divisor);
  const perSecondWorth = Math.floor((unitsPerUs * 1_000_000) / periodUs);
  const size =
    burst === undefined
      ? Math.max(1, Math.min(Math.floor(rate as number), perSecondWorth))
      : wholeNumber(`${path}.burst`, burst, 1, Number.MAX_SAFE_INTEGER);
  if (size * periodUs > MAX_CAPACITY_UNITS) {
    const most = Math.floor(MAX_CAPACITY_UNITS / periodUs);
    throw new InvalidOptionError(
      `${path}.burst`,
      most >= 1
        ? `at most ${most} with this rate and period, to be exact`
        : 'a rate with fewer digits, to be exact',
      size,
    );
  }
  if (horizonUs(unitsPerUs, size * periodUs) < MIN_HORIZON_US) {
    throw new InvalidOptionError(`${path}.rate`, 'a rate with fewer digits, to be exact', rate);
  }
  return Object.freeze({ name, kind: 'rate', by: by ?? null, rate: unitsPerUs, periodUs, burst: size });
}

/** How far ahead a bucket can be reserved, in microseconds, without its debt leaving the exact range. */
export function horizonUs(rate: number, capacityUnits: number): number {
  return Math.floor((MAX_DEBT_UNITS - capacityUnits) / rate);
}

// A decimal as a whole number of 1/scale: 0.1 becomes 100,000 of 1/1,000,000. What does not fit is refused, since a
// limit that is silently rounded is not the limit that was asked for.
function exactly(option: string, value: unknown, scale: number, max: number, unit: string): number {
  const decimals = Math.log10(scale);
  const expected = `${unit}: a number above 0, at most ${max}, with at most ${decimals} decimals`;
  if (typeof value !== 'number' || !(value > 0) || value > max) {
    throw new InvalidOptionError(option, expected, value);
  }
  const scaled = Math.round(value * scale);
  if (scaled < 1 || Math.abs(scaled / scale - value) > value * Number.EPSILON) {
    throw new InvalidOptionError(option, `${expected} (write 1,000 per 3 s rather than 333.33 per s)`, value);
  }
  return scaled;
}

function gcd(a: bigint, b: bigint): bigint {
  return b === 0n ? a : gcd(b, a % b);
}
