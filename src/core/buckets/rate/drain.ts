import type { RateLimit } from '../../limits/rate.ts';
import { type AdaptiveState, begun, risen } from '../adaptive.ts';
import {
  ADAPTIVE_KEPT_US,
  MAX_AHEAD_US,
  MAX_CLOCK_STEP_US,
  MAX_DEBT_UNITS,
  RECALL_US,
} from '../constants.ts';
import { type Moment, movedBy } from '../moment.ts';
import { movedPause, type Pauses, pauseEndUs, pausesOf } from '../pause.ts';
import { changeRate, debtAt, drainedBy } from './debt.ts';
import { movePenalty, penaltyEndUs, rateLeft } from './penalty.ts';
import type { RateState } from './state.ts';

/** What time, pauses and changes of the limits make of a bucket. lua/includes/buckets/rate/drain.lua is the same in Lua. */

/**
 * The bucket as it stands now, in the limit's own units: a function of what is stored and of the moment alone, so that who
 * looks often sees the same as who looks once.
 *
 * A clock that steps back must not give tokens twice: the bucket's time stands still until the clock has caught up.
 * If it is behind by more than {@link MAX_CLOCK_STEP_US}, the earlier time was the wrong one, and standing still
 * would stop the work for as long as it was wrong: the bucket adopts `nowUs` and keeps its debt.
 */
export function drained(stored: RateState, limit: RateLimit, at: Moment): RateState {
  const { nowUs } = at;
  const state = { ...stored };
  if (stored.atUs - nowUs > MAX_CLOCK_STEP_US) step(state, nowUs);
  const pauses = pausesOf(state, at);
  if (limit.adaptive === null) delete state.adaptive;
  else state.adaptive = adapted(state, limit, nowUs);
  const rate = rateAt(state, limit, nowUs);
  const { version, periodUs } = state.terms;
  if (version !== at.version || periodUs !== limit.periodUs) changeOver(state, limit, pauses, at);
  const penaltyUs = penaltyEndUs(state);
  if (penaltyUs > state.atUs && penaltyUs < nowUs) {
    advance(state, limit, pauses, penaltyUs);
    changeRate(state, rate);
  }
  advance(state, limit, pauses, nowUs);
  if (state.lastUs <= nowUs + RECALL_US) state.promised = 0;
  changeRate(state, rate);
  state.terms = { ...state.terms, burst: limit.burst, version: at.version };
  return state;
}

/**
 * Takes the bucket to the moment at which the limits changed, and there into the terms of the new ones.
 *
 * What was promised to start later than {@link RECALL_US} after it is taken back. What may still be used left no more debt than
 * a full burst and that time's worth; and what was never promised so far ahead stays owed, whatever it comes to.
 */
function changeOver(state: RateState, limit: RateLimit, pauses: Pauses, at: Moment): void {
  const changedUs = at.changedUs === 0 ? at.nowUs : Math.min(at.changedUs, at.nowUs);
  advance(state, limit, pauses, changedUs);
  const { rate, periodUs, burst } = state.terms;
  const laterUs = state.lastUs - state.atUs - RECALL_US;
  if (laterUs > 0 && state.promised > 0) {
    // No more than that was granted for so long.
    const recalled = Math.min(state.promised, burst * periodUs + rate * laterUs);
    const usable = burst * periodUs + rate * RECALL_US;
    state.debt = Math.min(state.debt, Math.max(usable, state.debt - recalled));
    state.lastUs = state.atUs + RECALL_US;
  }
  state.promised = 0;
  if (state.lineUs > state.atUs) {
    // The same work, at the new pace; a pause takes as long as it did.
    const fromUs = Math.min(state.lineUs, Math.max(state.atUs, pauseEndUs(pauses)));
    const pace = (rate * limit.periodUs) / (limit.rate * periodUs);
    state.lineUs = fromUs + Math.min(MAX_AHEAD_US, Math.ceil((state.lineUs - fromUs) * pace));
  }
  if (periodUs !== limit.periodUs) state.debt = convert(state.debt, periodUs, limit.periodUs);
  state.terms = { ...state.terms, periodUs: limit.periodUs, rate: rateAt(state, limit, state.atUs) };
}

function step(state: RateState, nowUs: number): void {
  const stepUs = state.atUs - nowUs;
  state.atUs = nowUs;
  state.lineUs = movedBy(state.lineUs, stepUs);
  state.lastUs = movedBy(state.lastUs, stepUs);
  state.pause = movedPause(state.pause, stepUs);
  movePenalty(state, stepUs);
}

function advance(state: RateState, limit: RateLimit, pauses: Pauses, us: number): void {
  if (us < state.atUs) return;
  state.promised = drainedBy(state, state.promised, us - state.atUs);
  state.debt = debtAt(state, limit, us, pauses);
  state.atUs = us;
}

function adapted({ adaptive, atUs }: RateState, limit: RateLimit, nowUs: number): AdaptiveState {
  const rule = limit.adaptive!;
  if (adaptive === undefined || nowUs - atUs > ADAPTIVE_KEPT_US)
    return begun(rule, limit.rate / 1_000, nowUs);
  return risen(adaptive, rule, limit.options.periodMs * 1_000, nowUs);
}

/** What the bucket drains at: what an adaptive limit has come to, or the limit's rate; in a penalty a share of it. */
export const rateAt = (state: RateState, limit: RateLimit, us: number): number =>
  rateLeft(state, limit, state.adaptive?.value ?? limit.rate, us);

// What was used stays used, in tokens. The fraction of a token is rounded up by at least a unit: on the safe side.
function convert(debt: number, fromPeriodUs: number, toPeriodUs: number): number {
  const fraction = debt % fromPeriodUs;
  const tokens = (debt - fraction) / fromPeriodUs;
  const rest =
    fraction === 0 ? 0 : Math.min(toPeriodUs, Math.ceil((fraction / fromPeriodUs) * toPeriodUs) + 1);
  return Math.min(MAX_DEBT_UNITS, tokens * toPeriodUs + rest);
}
