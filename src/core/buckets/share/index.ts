import { tokensPerPeriod } from '../../limits/rate-units.ts';
import { SCALE } from '../constants.ts';
import { ceilDiv } from '../exact.ts';
import type { Kind } from '../kind.ts';
import { openLine } from '../line.ts';
import { fromNowUs } from '../moment.ts';
import { pausedForUs, pausesOf } from '../pause.ts';
import { remainingTokens } from '../rate/debt.ts';
import { activate, blankGroup, groupAt, groupOverUs, shareIn } from './group.ts';
import {
  charge,
  drained,
  expiresUs,
  fullAtUs,
  hasSpare,
  mostOwed,
  owedByPause,
  unitsOf,
  waitUs,
  withSpare,
} from './share.ts';
import { blank, type ShareView } from './state.ts';

export type { ShareDemand } from './demand.ts';
export type { ShareGroup } from './group.ts';
export type { ShareState } from './state.ts';

/** How long the share takes to come by the cost. */
const intervalUs = ({ state, demand: { limit, cost }, parent }: ShareView): number =>
  ceilDiv(unitsOf(limit, parent.state, cost), state.share);

export const SHARE: Kind<ShareView> = {
  prefix: 'share|',
  reserves: false,

  look({ demand, stored, group: found, parent }, _asker, at) {
    const { limit, key, weight, cost } = demand;
    const { nowUs } = at;
    const group = groupAt(found ?? blankGroup(nowUs), nowUs);
    const before = stored ?? blank(nowUs);
    const fullUs = fullAtUs(before);
    const share = withSpare(shareIn(group, key, weight, nowUs), limit, parent.state);
    const state = drained(before, share, nowUs);
    state.lineUs = openLine(state.lineUs, state.atUs, state.debt === 0, fullUs);
    const leastOwed = owedByPause(state, limit, parent.state, cost);
    state.debt = Math.max(leastOwed, Math.min(state.debt, mostOwed(state, limit, parent.state, cost)));
    const pauses = pausesOf(state, at);
    const pausedUs = pausedForUs(pauses, at);
    const spare = pausedUs === 0 && leastOwed === 0 && hasSpare(limit, parent.state, cost);
    const wait = spare ? 0 : fromNowUs(state, waitUs(state, limit, parent.state, cost), at);
    return {
      demand,
      stored,
      state,
      waitUs: Math.max(pausedUs, wait),
      pausedUs,
      pauses,
      // Work that is to spare is nobody's: it need not wait in a line either.
      lineUs: spare ? 0 : state.lineUs,
      group,
      parent,
      idleUs: Math.max(0, nowUs - fullUs),
    };
  },

  expiresUs,
  groupExpiresUs: groupOverUs,

  // Nobody has come for what the share has: those of the line stand behind this one in their queue.
  passesLine: ({ state }) => state.debt === 0,
  canReserve: () => true,

  charge(view) {
    charge(view);
    return {};
  },

  remaining: ({ parent }) => (parent.pausedUs > 0 ? 0 : remainingTokens(parent.state, parent.demand.limit)),
  available: ({ waitUs }) => (waitUs > 0 ? 0 : Number.MAX_SAFE_INTEGER),
  effective: ({ state }) => state.share,
  inLimitUnits: (limit, share) => tokensPerPeriod(limit, (limit.rate * share) / SCALE),

  lineAfterUs: (view, fromUs) => fromUs + intervalUs(view),
  // Turns in the line were given at the pace that the share had then. When others have come since, more return than it admits:
  // all but the next get a new turn, so that they do not ask again and again.
  patienceUs: (view) => Math.floor(intervalUs(view) / 2),

  refused({ group, demand, state }, reason) {
    if (reason === 'share') activate(group, demand.key, demand.weight, state.atUs);
    return false;
  },
};
