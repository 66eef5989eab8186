import { check } from '../checks.ts';
import type { RateLimit } from './rate.ts';

// Half of what a double holds exactly is kept for debt (2^52 units), half of that for one bucket's capacity, so that no sum of
// the two, here or in Lua, can leave the exact range of 2^53.
export const MAX_CAPACITY_UNITS = 2 ** 51;

/** A rate has three decimals: thousandths of a token. */
export const RATE_SCALE = 1_000;
// Every limit can be reserved at least this far ahead; a rate with so many digits that it can't is refused.
const MIN_HORIZON_US = 60_000_000;

// scaledRate / RATE_SCALE tokens in us µs, in lowest terms times `scale`; BigInt, as the products are large.
export function inUnits(scaledRate: number, us: number, scale: number): { rate: number; periodUs: number } {
  const divisor = gcd(BigInt(scaledRate), BigInt(us) * BigInt(RATE_SCALE));
  return {
    rate: Number((BigInt(scaledRate) * BigInt(scale)) / divisor),
    periodUs: Number((BigInt(us) * BigInt(RATE_SCALE) * BigInt(scale)) / divisor),
  };
}

const gcd = (a: bigint, b: bigint): bigint => (b === 0n ? a : gcd(b, a % b));

/** @throws {@link InvalidOptionError} for a rate or burst that whole numbers cannot hold. */
export function checkExact(
  path: string,
  rate: number,
  periodUs: number,
  burst: number,
  given: unknown,
): void {
  const most = Math.floor(MAX_CAPACITY_UNITS / periodUs);
  const fewer = 'a rate with fewer digits, which can be kept exactly';
  const smaller = most >= 1 ? `at most ${most} with this rate and period, to be exact` : fewer;
  check(burst * periodUs <= MAX_CAPACITY_UNITS, `${path}.burst`, smaller, burst);
  const horizonUs = (2 * MAX_CAPACITY_UNITS - burst * periodUs) / rate;
  check(horizonUs >= MIN_HORIZON_US, `${path}.rate`, fewer, given);
}

/** Tokens per period that so many units a microsecond are: for people, with three decimals. */
export const tokensPerPeriod = ({ periodUs, options }: RateLimit, unitsPerUs: number): number =>
  Math.round((unitsPerUs * options.periodMs * 1_000 * RATE_SCALE) / periodUs) / RATE_SCALE;

/** The most units a microsecond that it may ever have had. */
export const fastestRate = ({ rate, adaptive }: RateLimit): number =>
  adaptive === null ? rate : Math.max(rate, Math.ceil(adaptive.max * RATE_SCALE));
