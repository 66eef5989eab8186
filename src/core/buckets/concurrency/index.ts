import { held, observed } from '../adaptive.ts';
import { ADAPTIVE_KEPT_US } from '../constants.ts';
import type { Kind } from '../kind.ts';
import { pausedForUs, pausesOf } from '../pause.ts';
import { lease, release, renew } from './leases.ts';
import { leaveQueue, queueUp, waitUs, wake } from './queue.ts';
import {
  blank,
  type ConcurrencyState,
  type ConcurrencyView,
  drained,
  emptyAtUs,
  heldOf,
  slotsOf,
} from './state.ts';

export type { ConcurrencyDemand, ConcurrencyState } from './state.ts';

/** An adaptive limit is told how many are held now. */
function tellHeld(state: ConcurrencyState): void {
  if (state.adaptive !== undefined) state.adaptive = held(state.adaptive, heldOf(state));
}

export const CONCURRENCY: Kind<ConcurrencyView> = {
  prefix: 'concurrency|',
  reserves: false,

  look({ demand, stored }, { holder }, at) {
    const { limit, cost } = demand;
    const state = drained(stored ?? blank(limit, at), limit, at.nowUs);
    const pauses = pausesOf(state, at);
    const pausedUs = pausedForUs(pauses, at);
    // All that held slots when the store lost them have come to renew them by then.
    const coldUs = at.coldAtUs === 0 ? 0 : Math.max(0, at.coldAtUs + limit.leaseUs - at.nowUs);
    const holds = state.leases.some((lease) => lease.holder === holder);
    const wait = Math.max(pausedUs, holds ? 0 : coldUs, waitUs(state, limit, cost, holder, pauses.at(-1)));
    return { demand, stored, state, waitUs: wait, pausedUs, pauses, lineUs: 0 };
  },

  expiresUs(state) {
    const keptUs = state.adaptive === undefined ? 0 : state.atUs + ADAPTIVE_KEPT_US;
    return Math.max(emptyAtUs(state), state.pause?.untilUs ?? 0, keptUs);
  },

  // A slot that waits for its start would be held idle.
  canReserve: () => false,

  charge({ state, demand: { limit, cost } }, { holder }) {
    const fence = lease(state, limit, cost, holder);
    tellHeld(state);
    return { fence };
  },

  remaining: ({ state, demand, pauses }) =>
    Math.max(0, slotsOf(state, demand.limit, pauses.at(-1)) - heldOf(state)),
  effective: ({ state, demand, pauses }) => slotsOf(state, demand.limit, pauses.at(-1)),

  // Slots are released, not taken back.
  giveBack: () => false,

  observe({ state, demand }, calls, nowUs) {
    state.adaptive = observed(state.adaptive!, demand.limit.adaptive!, calls, nowUs);
    tellHeld(state);
  },

  slots: {
    join({ state, demand }, { holder, instance = '' }) {
      queueUp(state, demand.cost, holder, instance);
      state.refused += 1;
    },
    leave({ state }, holder) {
      const waits = state.waiting.some((place) => place.holder === holder);
      leaveQueue(state, holder);
      return waits;
    },
    wake: ({ state, demand, pauses }) => wake(state, demand.limit, pauses.at(-1)),
    release: ({ state }, holder, fence) => release(state, holder, fence),
    renew: ({ state, demand }, holder, fence, lostCost) =>
      renew(state, demand.limit, holder, fence, lostCost),
  },
};
