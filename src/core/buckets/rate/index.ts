import { tokensPerPeriod } from '../../limits/rate-units.ts';
import { observed } from '../adaptive.ts';
import { ADAPTIVE_KEPT_US } from '../constants.ts';
import { ceilDiv } from '../exact.ts';
import type { Kind } from '../kind.ts';
import { openLine } from '../line.ts';
import { fromNowUs } from '../moment.ts';
import { pausedForUs, pauseEndUs, pausesOf } from '../pause.ts';
import { shareDemand } from '../share/demand.ts';
import {
  changeRate,
  commit,
  costUnits,
  debtAt,
  fullAtUs,
  refund,
  remainingTokens,
  settle,
  waitUs,
  withinHorizon,
} from './debt.ts';
import { drained, rateAt } from './drain.ts';
import { carryPenalty, notOver, penaltyEndUs, refusedOver, relieve } from './penalty.ts';
import { blank, type RateState, type RateView } from './state.ts';

export type { RateDemand, RateState } from './state.ts';

const aheadUs = (state: RateState, startUs: number): number => Math.max(0, startUs - state.atUs);

export const RATE: Kind<RateView> = {
  prefix: '',
  reserves: true,

  companion: shareDemand,

  look({ demand, stored }, { priority }, at) {
    const { limit } = demand;
    const before = stored ?? blank(limit, at);
    const state = drained(before, limit, at);
    const pauses = pausesOf(state, at);
    const full = state.debt === 0 && pauseEndUs(pauses) <= state.atUs;
    const fullUs = fullAtUs(before, limit, pausesOf(before, at));
    state.lineUs = openLine(state.lineUs, state.atUs, full, fullUs);
    relieve(state, limit, full ? state.atUs - fullUs : 0, pauseEndUs(pauses));
    return {
      demand,
      stored,
      state,
      waitUs: fromNowUs(state, waitUs(state, limit, demand.cost, priority, pauses), at),
      pausedUs: pausedForUs(pauses, at),
      pauses,
      lineUs: state.lineUs,
    };
  },

  expiresUs(state, limit) {
    const fullUs = fullAtUs(state, limit, pausesOf(state));
    const keptUs = state.adaptive === undefined ? 0 : state.atUs + ADAPTIVE_KEPT_US;
    return Math.max(fullUs, penaltyEndUs(state), keptUs);
  },

  // One of high priority passes the line where priorities mean something.
  passesLine: ({ demand }, { priority }) => demand.limit.kept !== null && priority === 0,

  // What the less urgent reserve is what the urgent would wait for. And what is granted ahead cannot follow an adaptive limit
  // that falls, nor a pause that is ended early.
  canReserve: ({ demand: { limit }, pauses }, { priority }, at) =>
    limit.adaptive === null && (limit.kept === null || priority === 0) && pauseEndUs(pauses) <= at.nowUs,

  staysExact: ({ state, demand: { limit, cost } }, startUs) =>
    withinHorizon(state, limit, aheadUs(state, startUs), cost),

  charge({ state, demand: { limit, cost } }, _asker, startUs) {
    const pushedUnits = commit(state, limit, aheadUs(state, startUs), cost);
    return { grantedAfter: state.granted, pushedUnits };
  },

  remaining: ({ state, demand }) => remainingTokens(state, demand.limit),
  available: ({ state, demand: { limit } }, { priority }) =>
    remainingTokens(state, limit) - (limit.kept?.[priority] ?? 0),
  effective: ({ state }) => state.terms.rate,
  inLimitUnits: tokensPerPeriod,

  lineAfterUs: ({ state, demand: { limit, cost } }, fromUs) =>
    fromUs + ceilDiv(costUnits(limit, cost), state.terms.rate),

  refused: ({ state, demand }, reason, at) => reason !== 'paused' && refusedOver(state, demand.limit, at),

  isCurrent({ stored, state, demand: { limit } }) {
    const [then, now] = [stored.terms, state.terms];
    if (then.periodUs !== now.periodUs || then.burst !== now.burst || then.version !== now.version)
      return false;
    return then.rate === now.rate || limit.adaptive !== null;
  },
  isOutdated: ({ stored, state }) => stored.terms.version !== state.terms.version,
  carry: carryPenalty,

  giveBack: ({ state, demand: { limit, cost }, pauses }, { grantedAfter, pushedUnits }) =>
    refund(state, limit, grantedAfter, cost, pushedUnits, pauses),
  settle: ({ state, demand: { limit, cost }, pauses }, startUs, actual) =>
    settle(state, limit, startUs, cost, actual, pauses),

  observe({ state, demand: { limit } }, calls, nowUs) {
    state.adaptive = observed(state.adaptive!, limit.adaptive!, calls, nowUs);
    changeRate(state, Math.min(state.terms.rate, rateAt(state, limit, nowUs)));
  },

  paused: ({ state }) => notOver(state),
  // Empty, under the limit in force now. Not yet, while a stepped clock stands still.
  resumed({ state, demand: { limit } }, at) {
    if (state.atUs <= at.nowUs) state.debt = debtAt(state, limit, at.nowUs, pausesOf(state, at));
  },
};
