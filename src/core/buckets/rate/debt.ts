import { horizonUs, MAX_DEBT_UNITS, type RateLimit } from '../../limits/rate.ts';
import { type AdaptiveState, begun, used } from '../adaptive.ts';
import { type Moment, RECALL_US } from '../moment.ts';
import { whenWorth, worthUs } from '../ramp.ts';

/**
 * The generic cell rate algorithm in debt form, in whole numbers (docs/algorithm.md has the proof sketch).
 *
 * A bucket is its debt: what was granted and has not drained yet, in units of 1/`periodUs` token. Each microsecond
 * `rate` units drain, so nothing is ever rounded but waits, which are rounded up. lua/includes/{gcra,debt,rate}.lua are
 * the same in Lua; test/lua/parity.test.ts holds the two together.
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
  /** The latest start that was promised ahead; 0: none was. */
  lastUs: number;
  /** Of `debt`, units of grants that were promised more than {@link RECALL_US} ahead: the most that a recall undoes. */
  promised: number;
  /** Until when this bucket is paused; it is empty then. 0: it never was. */
  closedUs: number;
  /** The end of the pause whose ramp `debt` reckons with; 0: it is in none. */
  rampUs: number;
  /** Since when it has been over its limit, without a break and without a pause; 0: it is not. Only with a penalty. */
  overUs: number;
  /** Until when it runs at a share of its rate; 0: it does not. Only with a penalty. */
  penaltyUs: number;
  /** Only with an adaptive limit. */
  adaptive: AdaptiveState | null;
  /** What `debt` was charged under, since a limit may be changed while its buckets live: units a µs and a token, and the burst. */
  rate: number;
  periodUs: number;
  readonly burst: number;
  readonly version: number;
}

/** An adaptive rate is forgotten after this long without a request, as other buckets are when they are full. */
export const ADAPTIVE_KEPT_US = 3_600_000_000;

/** A cold start lies no further ahead than this; a time that does was written by a clock that was wrong. */
export const MAX_COLD_AHEAD_US = 60_000_000;

const capacityUnits = (limit: RateLimit): number => limit.burst * limit.periodUs;

export const costUnits = (limit: RateLimit, cost: number): number => cost * limit.periodUs;

/**
 * The bucket of a limit that has no state. That is a full one, unless all buckets are known to be empty at a time: a cold
 * start was asked for, the store lost its data, or the governor was paused. Then it may lie ahead.
 */
export function blank(limit: RateLimit, at: Moment): Bucket {
  const emptyUs = Math.max(at.coldAtUs, Math.min(at.closedUs, at.nowUs));
  const aheadUs = Math.max(0, emptyUs - at.nowUs);
  return {
    debt: emptyUs === 0 ? 0 : Math.min(MAX_DEBT_UNITS, capacityUnits(limit) + aheadUs * limit.rate),
    atUs: emptyUs === 0 ? at.nowUs : emptyUs - aheadUs,
    lineUs: 0,
    granted: 0,
    refused: 0,
    lastUs: 0,
    promised: 0,
    closedUs: 0,
    rampUs: 0,
    overUs: 0,
    penaltyUs: 0,
    adaptive: limit.adaptive && begun(limit.adaptive, limit.rate / 1_000, at.nowUs),
    rate: limit.rate,
    periodUs: limit.periodUs,
    burst: limit.burst,
    version: at.version,
  };
}

/**
 * What the bucket will owe at `us`, if nothing happens to it until then. Whatever it owes, a pause that ends by then has left it
 * empty at its end, and in a ramp from there.
 *
 * @param emptyUs - When its pause ends or ended; 0: there was none.
 */
export function debtAt(bucket: Bucket, limit: RateLimit, us: number, emptyUs: number): number {
  if (emptyUs < bucket.atUs || emptyUs > us)
    return less(bucket, bucket.debt, worthUs(bucket.atUs, us, rampEndUs(limit, emptyUs)));
  const capacity = Math.min(MAX_DEBT_UNITS, limit.burst * bucket.periodUs);
  const atEnd = Math.max(capacity, less(bucket, bucket.debt, emptyUs - bucket.atUs));
  return less(bucket, atEnd, worthUs(emptyUs, us, rampEndUs(limit, emptyUs)));
}

// Times are compared before anything is multiplied, so that a long idle time cannot leave the exact range.
export function less({ rate }: Bucket, debt: number, elapsedUs: number): number {
  if (elapsedUs <= 0) return debt;
  return elapsedUs >= ceilDiv(debt, rate) ? 0 : debt - elapsedUs * rate;
}

/**
 * The bucket drains at another rate from now on, under the same limit. What is promised keeps its time: else what stands for it
 * would drain before it starts, and others would come between.
 */
export function repace(bucket: Bucket, rate: number): void {
  // At a slower one it takes longer as it is: on the safe side.
  if (rate > bucket.rate && bucket.lastUs > bucket.atUs) {
    // Nothing is promised beyond what is owed: the last may have been given back.
    const aheadUs = Math.min(bucket.lastUs - bucket.atUs, Math.floor(bucket.debt / bucket.rate));
    bucket.debt = Math.min(MAX_DEBT_UNITS, bucket.debt + (rate - bucket.rate) * aheadUs);
  }
  bucket.rate = rate;
}

/** The share of a rate that a bucket has that was over its limit for long. */
export const penalised = ({ penalty }: RateLimit, rate: number): number =>
  penalty === null ? rate : Math.max(1, Math.floor((rate * penalty.permille) / 1_000));

/** What a request asks of the burst: its cost, or all of it if it is larger and may leave the bucket owing. */
const costWithin = (limit: RateLimit, cost: number): number =>
  limit.oversize ? Math.min(cost, limit.burst) : cost;

/** Tokens that must remain for more urgent requests; never so many that the cost could not pass at all. */
const keptTokens = (limit: RateLimit, cost: number, priority: 0 | 1 | 2): number =>
  limit.kept === null ? 0 : Math.min(limit.kept[priority], limit.burst - cost);

/** Microseconds from the bucket's own time until `cost` tokens fit; 0 if they fit now. `emptyUs` as for {@link debtAt}. */
export function waitUs(
  bucket: Bucket,
  limit: RateLimit,
  cost: number,
  priority: 0 | 1 | 2,
  emptyUs: number,
): number {
  const within = costWithin(limit, cost);
  const asked = within + keptTokens(limit, within, priority);
  const fromUs = Math.max(bucket.atUs, emptyUs);
  const over = debtAt(bucket, limit, fromUs, emptyUs) + costUnits(limit, asked) - capacityUnits(limit);
  return over <= 0
    ? 0
    : whenWorth(ceilDiv(over, bucket.rate), fromUs, rampEndUs(limit, emptyUs)) - bucket.atUs;
}

/** Whether a grant that starts `aheadUs` after the bucket's time would keep its debt within the exact range. */
export function withinHorizon(bucket: Bucket, limit: RateLimit, aheadUs: number, cost: number): boolean {
  const units = costUnits(limit, cost);
  return bucket.debt + units <= MAX_DEBT_UNITS && aheadUs <= horizonUs(bucket.rate, units);
}

/**
 * Charges a grant that starts `aheadUs` after the bucket's time.
 *
 * A bucket that would be idle until then is moved forward to it: the debt becomes what drains until the start, so
 * that nobody can use that time twice. This makes reservations exact even when their starts are out of order.
 *
 * @param emptyUs - As for {@link debtAt}.
 * @returns the units by which the bucket was moved forward, for {@link refund}.
 */
export function commit(
  bucket: Bucket,
  limit: RateLimit,
  aheadUs: number,
  cost: number,
  emptyUs: number,
): number {
  const worth = worthUs(bucket.atUs, bucket.atUs + aheadUs, rampEndUs(limit, emptyUs));
  const pushedUnits = Math.max(0, worth * bucket.rate - bucket.debt);
  bucket.debt += pushedUnits + costUnits(limit, cost);
  bucket.granted += cost;
  // A cost above the burst stays owed for long after its start: what is behind it must not be taken for it.
  if (aheadUs > RECALL_US && cost <= limit.burst) bucket.promised += pushedUnits + costUnits(limit, cost);
  if (aheadUs > 0) bucket.lastUs = Math.max(bucket.lastUs, bucket.atUs + aheadUs);
  if (bucket.adaptive !== null) bucket.adaptive = used(bucket.adaptive, cost);
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
  at: Moment,
): boolean {
  if (bucket.granted !== grantedAfter) return false;
  const units = costUnits(limit, cost) + pushedUnits;
  bucket.debt = Math.min(bucket.debt, Math.max(emptiedUnits(bucket, limit, at), bucket.debt - units));
  bucket.promised = Math.max(0, bucket.promised - units);
  bucket.granted -= cost;
  return true;
}

/**
 * Corrects a cost after the fact. Above it, the overrun becomes debt. Below it, what has not drained since the start is
 * given back, and only if nothing is promised ahead: anything more would let later grants break the bound.
 */
export function settle(
  bucket: Bucket,
  limit: RateLimit,
  startUs: number,
  cost: number,
  actual: number,
  at: Moment,
): void {
  if (actual >= cost) {
    bucket.debt = Math.min(MAX_DEBT_UNITS, bucket.debt + costUnits(limit, actual - cost));
    bucket.granted += actual - cost;
    return;
  }
  if (bucket.lastUs > bucket.atUs) return;
  const elapsedUs = Math.max(0, bucket.atUs - startUs);
  const most = fastest(limit);
  const paid = costUnits(limit, cost);
  const undrained = elapsedUs >= ceilDiv(paid, most) ? 0 : paid - elapsedUs * most;
  const left = bucket.debt - Math.min(costUnits(limit, cost - actual), undrained);
  bucket.debt = Math.min(bucket.debt, Math.max(emptiedUnits(bucket, limit, at), left));
}

/** What a pause that is over leaves owing at least, now: what was granted before it cannot be had back after its end. */
function emptiedUnits(bucket: Bucket, limit: RateLimit, at: Moment): number {
  const emptyUs = emptyUsOf(bucket, at);
  if (emptyUs === 0 || emptyUs > bucket.atUs) return 0;
  return less(bucket, capacityUnits(limit), worthUs(emptyUs, bucket.atUs, rampEndUs(limit, emptyUs)));
}

/**
 * The end of the pause that a limit has a ramp after; 0: none. An adaptive one has none: it comes back by itself, and is throttled
 * again and again while it looks for what the downstream takes, often for milliseconds.
 */
export const rampEndUs = ({ adaptive }: RateLimit, emptyUs: number): number =>
  adaptive === null ? emptyUs : 0;

/** When the pause of a bucket or of its governor ends or ended, whichever is later; 0: there was none. */
export const emptyUsOf = ({ closedUs }: Pick<Bucket, 'closedUs'>, at: Moment): number =>
  Math.max(closedUs, at.closedUs);

// The rate may have been anything since the start; it was never more than this.
export const fastest = (limit: RateLimit): number =>
  limit.adaptive === null ? limit.rate : Math.max(limit.rate, Math.ceil(limit.adaptive.max * 1_000));

/** The microsecond of the bucket's clock at which it will be full again. `emptyUs` as for {@link debtAt}. */
export function fullAtUs(bucket: Bucket, limit: RateLimit, emptyUs: number): number {
  const fromUs = Math.max(bucket.atUs, emptyUs);
  const owed = debtAt(bucket, limit, fromUs, emptyUs);
  return whenWorth(ceilDiv(owed, bucket.rate), fromUs, rampEndUs(limit, emptyUs));
}

/** Whole tokens that fit now. */
export function remainingTokens(bucket: Bucket, limit: RateLimit): number {
  return Math.max(0, Math.floor((capacityUnits(limit) - bucket.debt) / limit.periodUs));
}

/**
 * `ceil(a / b)` for whole numbers below 2^53, exactly. The quotient is rounded to a double, yet never down to a whole
 * number it exceeds: it exceeds it by at least 1/b, and doubles near it lie less than 2/b apart, since a < 2^53.
 */
export const ceilDiv = (a: number, b: number): number => Math.ceil(a / b);
