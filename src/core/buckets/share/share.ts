import type { RateLimit } from '../../limits/rate.ts';
import { MAX_CLOCK_STEP_US, MAX_DEBT_UNITS, OWED_US, PAUSE_KEPT_US, SCALE } from '../constants.ts';
import { ceilDiv } from '../exact.ts';
import { movedBy } from '../moment.ts';
import { movedPause, rampUs } from '../pause.ts';
import { costUnits } from '../rate/debt.ts';
import type { RateState } from '../rate/state.ts';
import { activate } from './group.ts';
import type { ShareState, ShareView } from './state.ts';

/** The value's bucket as it stands now. */
export function drained(stored: ShareState, share: number, nowUs: number): ShareState {
  const state = { ...stored, share };
  const stepUs = state.atUs - nowUs;
  if (stepUs > MAX_CLOCK_STEP_US) {
    state.lineUs = movedBy(state.lineUs, stepUs);
    state.pause = movedPause(state.pause, stepUs);
    state.atUs = nowUs;
  } else if (nowUs > state.atUs) {
    const elapsedUs = nowUs - state.atUs;
    state.debt = elapsedUs >= ceilDiv(state.debt, stored.share) ? 0 : state.debt - elapsedUs * stored.share;
    state.atUs = nowUs;
  }
  return state;
}

/** What `cost` tokens take of the time of the whole rate, in units. */
export const unitsOf = (limit: RateLimit, parent: RateState, cost: number): number =>
  Math.min(MAX_DEBT_UNITS, Math.ceil((cost * limit.periodUs * SCALE) / parent.terms.rate));

/** How much a value may owe: its share of the burst, and one cost in any case. */
function capacity(state: ShareState, limit: RateLimit, parent: RateState, cost: number): number {
  return unitsOf(limit, parent, Math.max(cost, Math.floor((limit.burst * state.share) / SCALE)));
}

/** What it owes at the least after a pause of its own, which has left it empty, and in a ramp; 0: there was none, or long ago. */
export function owedByPause(state: ShareState, limit: RateLimit, parent: RateState, cost: number): number {
  const { atUs, pause, share } = state;
  if (pause === null || pause.untilUs > atUs) return 0;
  const heldBack = Math.ceil((share * rampUs(pause)) / 2);
  return Math.max(0, roomUnits(state, limit, parent, cost) + heldBack - (atUs - pause.untilUs) * share);
}

/**
 * What was to spare is owed for a second of its share at most, as that is now: the value that asks most often must not get all of
 * it, nor wait for long because of what nobody else wanted.
 */
export const mostOwed = (state: ShareState, limit: RateLimit, parent: RateState, cost: number): number =>
  capacity(state, limit, parent, cost) + state.share * OWED_US;

/** Whether the limit has so much to spare that nobody's share matters. */
export const hasSpare = (limit: RateLimit, parent: RateState, cost: number): boolean =>
  parent.debt + costUnits(limit, Math.ceil(limit.burst / 2) + cost) <= limit.burst * limit.periodUs;

/**
 * How much a value may owe after a grant. There is room for two of them: else one that comes late to its turn would find its
 * bucket full, and the time for which it was so lost.
 */
function roomUnits(state: ShareState, limit: RateLimit, parent: RateState, cost: number): number {
  return Math.max(capacity(state, limit, parent, cost), 2 * unitsOf(limit, parent, cost));
}

/** Microseconds from the bucket's own time until its share allows `cost` tokens. */
export function waitUs(state: ShareState, limit: RateLimit, parent: RateState, cost: number): number {
  const over = state.debt + unitsOf(limit, parent, cost) - roomUnits(state, limit, parent, cost);
  return over <= 0 ? 0 : ceilDiv(over, state.share);
}

/**
 * Whether it uses its share: then it counts among those that share the limit. One that comes back to its turn has just
 * drained: it still does.
 *
 * @param idleUs - How long it had owed nothing before it was charged.
 */
const isActive = (
  state: ShareState,
  limit: RateLimit,
  parent: RateState,
  cost: number,
  idleUs: number,
): boolean =>
  state.debt * 2 > capacity(state, limit, parent, cost) ||
  (state.granted > 0 && idleUs * 2 < ceilDiv(unitsOf(limit, parent, cost), state.share));

/** A share while the limit is not used up: up to a quarter more for all, so that nothing of it is lost. */
export function withSpare(share: number, limit: RateLimit, parent: RateState): number {
  const capacityUnits = limit.burst * limit.periodUs;
  const leftUnits = Math.max(0, capacityUnits - parent.debt);
  return Math.floor(share * (1 + leftUnits / capacityUnits / 4));
}

/** Charges a grant to the value and tells the group. */
export function charge({ state, group, parent, demand, idleUs }: ShareView): void {
  const { limit, key, weight, cost } = demand;
  const units = unitsOf(limit, parent.state, cost);
  if (isActive(state, limit, parent.state, cost, idleUs)) activate(group, key, weight, state.atUs);
  // What an active one takes is no light use, even where it is all that it takes.
  else if (!group.active.has(key)) group.light += units;
  state.debt = Math.min(state.debt + units, mostOwed(state, limit, parent.state, cost));
  state.granted += cost;
}

export const fullAtUs = (state: ShareState): number => state.atUs + ceilDiv(state.debt, state.share);

/** From when a value's bucket says nothing more than none does: it is full, and a pause of its own is long over. */
export function expiresUs(state: ShareState): number {
  return Math.max(fullAtUs(state), state.pause === null ? 0 : state.pause.untilUs + PAUSE_KEPT_US);
}
