import type { RateLimit } from '../../limits/rate.ts';
import { fastestRate } from '../../limits/rate-units.ts';
import { used } from '../adaptive.ts';
import { MAX_DEBT_UNITS, RECALL_US } from '../constants.ts';
import { ceilDiv } from '../exact.ts';
import { type Pause, type Pauses, pauseEndUs, rampUs } from '../pause.ts';
import type { RateState } from './state.ts';

/**
 * The generic cell rate algorithm in debt form, in whole numbers (docs/algorithm.md has the proof sketch).
 *
 * A bucket is its debt: what was granted and has not drained yet, in units of 1/`periodUs` token. Each microsecond
 * `rate` units drain, so nothing is ever rounded but waits, which are rounded up. lua/includes/buckets/rate/ is the same in Lua;
 * test/lua/parity.test.ts holds the two together.
 */

const capacityUnits = (limit: RateLimit): number => limit.burst * limit.periodUs;

export const costUnits = (limit: RateLimit, cost: number): number => cost * limit.periodUs;

/** What a pause leaves owing at its end, at the least. */
const emptiedBy = ({ terms }: RateState, { burst }: RateLimit, pause: Pause): number =>
  burst * terms.periodUs + Math.ceil((terms.rate * rampUs(pause)) / 2);

/** What the bucket will owe at `us`, if nothing happens to it until then. A pause that ends by then has left it empty. */
export function debtAt(state: RateState, limit: RateLimit, us: number, pauses: Pauses): number {
  let { atUs, debt } = state;
  for (const pause of pauses) {
    if (pause.untilUs < atUs || pause.untilUs > us) continue;
    const emptied = Math.min(MAX_DEBT_UNITS, emptiedBy(state, limit, pause));
    debt = Math.max(emptied, drainedBy(state, debt, pause.untilUs - atUs));
    atUs = pause.untilUs;
  }
  return drainedBy(state, debt, us - atUs);
}

// Times are compared before anything is multiplied, so that a long idle time cannot leave the exact range.
export function drainedBy({ terms: { rate } }: RateState, debt: number, elapsedUs: number): number {
  if (elapsedUs <= 0) return debt;
  return elapsedUs >= ceilDiv(debt, rate) ? 0 : debt - elapsedUs * rate;
}

/**
 * The bucket drains at another rate from now on, under the same limit. What is promised keeps its time: else what stands for it
 * would drain before it starts, and others would come between.
 */
export function changeRate(state: RateState, rate: number): void {
  const before = state.terms.rate;
  // At a slower one it takes longer as it is: on the safe side.
  if (rate > before && state.lastUs > state.atUs) {
    // Nothing is promised beyond what is owed: the last may have been given back.
    const aheadUs = Math.min(state.lastUs - state.atUs, Math.floor(state.debt / before));
    state.debt = Math.min(MAX_DEBT_UNITS, state.debt + (rate - before) * aheadUs);
  }
  state.terms = { ...state.terms, rate };
}

/** What a request asks of the burst: its cost, or all of it if it is larger and may leave the bucket owing. */
const costWithin = (limit: RateLimit, cost: number): number =>
  limit.oversize ? Math.min(cost, limit.burst) : cost;

/** Tokens that must remain for more urgent requests; never so many that the cost could not pass at all. */
const keptTokens = (limit: RateLimit, cost: number, priority: 0 | 1 | 2): number =>
  limit.kept === null ? 0 : Math.min(limit.kept[priority], limit.burst - cost);

/** Microseconds from the bucket's own time until `cost` tokens fit; 0 if they fit now. `pauses` as for {@link debtAt}. */
export function waitUs(
  state: RateState,
  limit: RateLimit,
  cost: number,
  priority: 0 | 1 | 2,
  pauses: Pauses,
): number {
  const within = costWithin(limit, cost);
  const asked = within + keptTokens(limit, within, priority);
  const fromUs = Math.max(state.atUs, pauseEndUs(pauses));
  const over = debtAt(state, limit, fromUs, pauses) + costUnits(limit, asked) - capacityUnits(limit);
  return over <= 0 ? 0 : fromUs - state.atUs + ceilDiv(over, state.terms.rate);
}

/** How far ahead a bucket can be reserved, in microseconds, without its debt leaving the exact range. */
export function horizonUs(rate: number, capacityUnits: number): number {
  return Math.floor((MAX_DEBT_UNITS - capacityUnits) / rate);
}

/** Whether a grant that starts `aheadUs` after the bucket's time would keep its debt within the exact range. */
export function withinHorizon(state: RateState, limit: RateLimit, aheadUs: number, cost: number): boolean {
  const units = costUnits(limit, cost);
  return state.debt + units <= MAX_DEBT_UNITS && aheadUs <= horizonUs(state.terms.rate, units);
}

/**
 * Charges a grant that starts `aheadUs` after the bucket's time.
 *
 * A bucket that would be idle until then is moved forward to it: the debt becomes what drains until the start, so
 * that nobody can use that time twice. This makes reservations exact even when their starts are out of order.
 *
 * @returns the units by which the bucket was moved forward, for {@link refund}.
 */
export function commit(state: RateState, limit: RateLimit, aheadUs: number, cost: number): number {
  const pushedUnits = Math.max(0, aheadUs * state.terms.rate - state.debt);
  state.debt += pushedUnits + costUnits(limit, cost);
  state.granted += cost;
  // A cost above the burst stays owed for long after its start: what is behind it must not be taken for it.
  if (aheadUs > RECALL_US && cost <= limit.burst) state.promised += pushedUnits + costUnits(limit, cost);
  if (aheadUs > 0) state.lastUs = Math.max(state.lastUs, state.atUs + aheadUs);
  if (state.adaptive !== undefined) state.adaptive = used(state.adaptive, cost);
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
  state: RateState,
  limit: RateLimit,
  grantedAfter: number,
  cost: number,
  pushedUnits: number,
  pauses: Pauses,
): boolean {
  if (state.granted !== grantedAfter) return false;
  const units = costUnits(limit, cost) + pushedUnits;
  state.debt = Math.min(state.debt, Math.max(emptiedUnits(state, limit, pauses), state.debt - units));
  state.promised = Math.max(0, state.promised - units);
  state.granted -= cost;
  return true;
}

/**
 * Corrects a cost after the fact. Above it, the overrun becomes debt. Below it, what has not drained since the start is
 * given back, and only if nothing is promised ahead: anything more would let later grants break the bound.
 */
export function settle(
  state: RateState,
  limit: RateLimit,
  startUs: number,
  cost: number,
  actual: number,
  pauses: Pauses,
): void {
  if (actual >= cost) {
    state.debt = Math.min(MAX_DEBT_UNITS, state.debt + costUnits(limit, actual - cost));
    state.granted += actual - cost;
    return;
  }
  if (state.lastUs > state.atUs) return;
  const elapsedUs = Math.max(0, state.atUs - startUs);
  const most = fastestRate(limit);
  const paid = costUnits(limit, cost);
  const undrained = elapsedUs >= ceilDiv(paid, most) ? 0 : paid - elapsedUs * most;
  const left = state.debt - Math.min(costUnits(limit, cost - actual), undrained);
  state.debt = Math.min(state.debt, Math.max(emptiedUnits(state, limit, pauses), left));
}

/** What pauses that are over leave owing at least, now: what was granted before one cannot be had back after its end. */
function emptiedUnits(state: RateState, limit: RateLimit, pauses: Pauses): number {
  const over = pauses.filter(({ untilUs }) => untilUs <= state.atUs);
  return Math.max(
    0,
    ...over.map((pause) => drainedBy(state, emptiedBy(state, limit, pause), state.atUs - pause.untilUs)),
  );
}

/** The microsecond of the bucket's clock at which it will be full again. `pauses` as for {@link debtAt}. */
export function fullAtUs(state: RateState, limit: RateLimit, pauses: Pauses): number {
  const fromUs = Math.max(state.atUs, pauseEndUs(pauses));
  return fromUs + ceilDiv(debtAt(state, limit, fromUs, pauses), state.terms.rate);
}

/** Whole tokens that fit now. */
export function remainingTokens(state: RateState, limit: RateLimit): number {
  return Math.max(0, Math.floor((capacityUnits(limit) - state.debt) / limit.periodUs));
}
