import { horizonUs, MAX_DEBT_UNITS, type RateLimit } from './limit.ts';

/**
 * The generic cell rate algorithm in debt form, in whole numbers (docs/algorithm.md has the proof sketch).
 *
 * A bucket is its debt: what was granted and has not drained yet, in units of 1/`periodUs` token. Each microsecond
 * `rate` units drain, so nothing is ever rounded but waits, which are rounded up. lua/includes/gcra.lua is the same
 * in Lua; test/lua/parity.test.ts holds the two together.
 */
export interface Bucket {
  /** Units owed at `atUs`. More than the capacity means that grants are promised ahead. */
  debt: number;
  /** Microseconds of the store's clock at which `debt` was true. */
  atUs: number;
  /** Microseconds at which all deferred work will have been admitted (line.ts); 0 if none is. */
  lineUs: number;
  /** Tokens granted since the bucket has been there: what tells whether a cancelled grant was the last. */
  granted: number;
  /** Requests that this bucket refused since it has been there. */
  refused: number;
  /** The units that `debt` is in, since a limit may be changed while its buckets live. */
  readonly rate: number;
  readonly periodUs: number;
}

/** How far a clock may be behind `atUs` before it counts as corrected rather than as late. */
export const MAX_CLOCK_STEP_US = 1_000_000;

const capacityUnits = (limit: RateLimit): number => limit.burst * limit.periodUs;
export const costUnits = (limit: RateLimit, cost: number): number => cost * limit.periodUs;

/** A cold start lies no further ahead than this; a time that does was written by a clock that was wrong. */
export const MAX_COLD_AHEAD_US = 60_000_000;

/**
 * The bucket of a limit that has no state. That is a full one, unless all buckets are known to be empty at `coldAtUs`:
 * a cold start was asked for, or the store lost its data. Then it may lie ahead, after what was promised before the loss.
 */
export function blank(limit: RateLimit, nowUs: number, coldAtUs: number): Bucket {
  const state = { lineUs: 0, granted: 0, refused: 0, rate: limit.rate, periodUs: limit.periodUs };
  if (coldAtUs === 0) return { debt: 0, atUs: nowUs, ...state };
  const aheadUs = Math.max(0, coldAtUs - nowUs);
  const debt = Math.min(MAX_DEBT_UNITS, capacityUnits(limit) + aheadUs * limit.rate);
  return { debt, atUs: coldAtUs - aheadUs, ...state };
}

/**
 * The bucket as it stands at `nowUs`, in the limit's own units.
 *
 * A clock that steps back must not give tokens twice: the bucket's time stands still until the clock has caught up.
 * If it is behind by more than {@link MAX_CLOCK_STEP_US}, the earlier time was the wrong one, and standing still
 * would stop the work for as long as it was wrong: the bucket adopts `nowUs` and keeps its debt.
 */
export function drained(bucket: Bucket, limit: RateLimit, nowUs: number): Bucket {
  let { debt, atUs, lineUs } = bucket;
  if (atUs - nowUs > MAX_CLOCK_STEP_US) {
    if (lineUs > 0) lineUs = Math.max(0, lineUs - (atUs - nowUs));
    atUs = nowUs;
  } else if (nowUs > atUs) {
    // Times are compared before anything is multiplied, so that a long idle time cannot leave the exact range.
    const elapsedUs = nowUs - atUs;
    debt = elapsedUs >= ceilDiv(debt, bucket.rate) ? 0 : debt - elapsedUs * bucket.rate;
    atUs = nowUs;
  }
  if (bucket.rate !== limit.rate || bucket.periodUs !== limit.periodUs) {
    debt = convert(debt, bucket.periodUs, limit.periodUs);
  }
  return { ...bucket, debt, atUs, lineUs, rate: limit.rate, periodUs: limit.periodUs };
}

/** Microseconds from the bucket's own time until `cost` tokens fit; 0 if they fit now. */
export function waitUs(bucket: Bucket, limit: RateLimit, cost: number): number {
  const over = bucket.debt + costUnits(limit, cost) - capacityUnits(limit);
  return over <= 0 ? 0 : ceilDiv(over, limit.rate);
}

/** Whether a grant that starts `aheadUs` after the bucket's time would keep its debt within the exact range. */
export function withinHorizon(bucket: Bucket, limit: RateLimit, aheadUs: number, cost: number): boolean {
  const units = costUnits(limit, cost);
  return bucket.debt + units <= MAX_DEBT_UNITS && aheadUs <= horizonUs(limit.rate, units);
}

/**
 * Charges a grant that starts `aheadUs` after the bucket's time.
 *
 * A bucket that would be idle until then is moved forward to it: the debt becomes what drains until the start, so
 * that nobody can use that time twice. This makes reservations exact even when their starts are out of order.
 *
 * @returns the units by which the bucket was moved forward, for {@link refund}.
 */
export function commit(bucket: Bucket, limit: RateLimit, aheadUs: number, cost: number): number {
  const pushedUnits = Math.max(0, aheadUs * limit.rate - bucket.debt);
  bucket.debt += pushedUnits + costUnits(limit, cost);
  bucket.granted += cost;
  return pushedUnits;
}

/**
 * Takes a grant back that has not started: the whole of it if nothing was granted from the bucket since, else nothing.
 * Any other refund lets later grants break the bound (by up to 98 tokens when fuzzed). Undoing `granted` lets a batch
 * that is cancelled newest first be refunded whole: the bucket is then as if the batch had never been.
 *
 * @returns whether it was given back.
 */
export function refund(
  bucket: Bucket,
  limit: RateLimit,
  grantedAfter: number,
  cost: number,
  pushedUnits: number,
): boolean {
  if (bucket.granted !== grantedAfter) return false;
  bucket.debt = Math.max(0, bucket.debt - costUnits(limit, cost) - pushedUnits);
  bucket.granted -= cost;
  return true;
}

/** The microsecond of the bucket's clock at which it will be full again. */
export const fullAtUs = (bucket: Bucket): number => bucket.atUs + ceilDiv(bucket.debt, bucket.rate);

/** Whole tokens that fit now. */
export function remainingTokens(bucket: Bucket, limit: RateLimit): number {
  return Math.max(0, Math.floor((capacityUnits(limit) - bucket.debt) / limit.periodUs));
}

/**
 * `ceil(a / b)` for whole numbers below 2^53, exactly. The quotient is rounded to a double, yet never down to a whole
 * number it exceeds: it exceeds it by at least 1/b, and doubles near it lie less than 2/b apart, since a < 2^53.
 */
export const ceilDiv = (a: number, b: number): number => Math.ceil(a / b);

// What was used stays used, in tokens. The fraction of a token is rounded up by at least a unit: on the safe side.
function convert(debt: number, fromPeriodUs: number, toPeriodUs: number): number {
  const fraction = debt % fromPeriodUs;
  const tokens = (debt - fraction) / fromPeriodUs;
  const rest =
    fraction === 0 ? 0 : Math.min(toPeriodUs, Math.ceil((fraction / fromPeriodUs) * toPeriodUs) + 1);
  return Math.min(MAX_DEBT_UNITS, tokens * toPeriodUs + rest);
}
