import type { RateLimit } from '../../limits/rate.ts';
import { LINE_GRACE_US } from '../constants.ts';
import { ceilDiv } from '../exact.ts';
import { type Moment, movedBy } from '../moment.ts';
import { changeRate } from './debt.ts';
import type { RateState } from './state.ts';

/** A penalty: a bucket that was over its limit for long, without a break and without a pause, runs at a share of its rate for a while. */
export interface PenaltyState {
  /** Since when it has been over its limit; 0: it is not. */
  readonly overSinceUs: number;
  /** Until when it is punished; 0: it never was. */
  readonly untilUs: number;
}

const NONE: PenaltyState = { overSinceUs: 0, untilUs: 0 };

export const penaltyEndUs = ({ penalty = NONE }: RateState): number => penalty.untilUs;

/** What is left of a rate at that time. */
export const rateLeft = (state: RateState, limit: RateLimit, rate: number, us: number): number =>
  penaltyEndUs(state) > us ? shareLeft(limit, rate) : rate;

const shareLeft = ({ penalty }: RateLimit, rate: number): number =>
  penalty === null ? rate : Math.max(1, Math.floor((rate * penalty.permille) / 1_000));

/** A refusal. Whether its penalty begins now; then it drains more slowly from now on. */
export function refusedOver(state: RateState, limit: RateLimit, { nowUs }: Moment): boolean {
  const { overSinceUs, untilUs } = state.penalty ?? NONE;
  if (limit.penalty === null || untilUs > state.atUs) return false;
  const sinceUs = overSinceUs === 0 ? nowUs : overSinceUs;
  const begins = nowUs - sinceUs >= limit.penalty.afterUs;
  if (begins) changeRate(state, shareLeft(limit, state.terms.rate));
  keep(
    state,
    begins ? { overSinceUs: 0, untilUs: nowUs + limit.penalty.forUs } : { overSinceUs: sinceUs, untilUs },
  );
  return begins;
}

/** One that was full for half a token's time is not over its limit; nor is one that was paused since. */
export function relieve(state: RateState, limit: RateLimit, fullForUs: number, pauseEndUs: number): void {
  if (state.penalty === undefined) return;
  const relievedUs = Math.min(LINE_GRACE_US, ceilDiv(limit.periodUs, 2 * state.terms.rate));
  if (fullForUs >= relievedUs || pauseEndUs > state.penalty.overSinceUs) notOver(state);
}

export function notOver(state: RateState): void {
  if (state.penalty !== undefined) keep(state, { ...state.penalty, overSinceUs: 0 });
}

/** Its times after the clock was put right. */
export function movePenalty(state: RateState, stepUs: number): void {
  if (state.penalty === undefined) return;
  const { overSinceUs, untilUs } = state.penalty;
  keep(state, { overSinceUs: movedBy(overSinceUs, stepUs), untilUs: movedBy(untilUs, stepUs) });
}

export function carryPenalty(from: RateState, to: RateState): void {
  keep(to, from.penalty ?? NONE);
}

function keep(state: RateState, penalty: PenaltyState): void {
  if (penalty.overSinceUs === 0 && penalty.untilUs === 0) delete state.penalty;
  else state.penalty = penalty;
}
