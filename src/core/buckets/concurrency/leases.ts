import type { ConcurrencyLimit } from '../../limits/concurrency.ts';
import type { ConcurrencyState } from './state.ts';

/** Takes slots for a holder: the same holder is let in again. @returns the fencing number of the lease. */
export function lease(
  state: ConcurrencyState,
  limit: ConcurrencyLimit,
  cost: number,
  holder: string,
): number {
  // Numbers follow the clock, so that they still grow after the bucket was forgotten.
  state.fence = Math.max(state.fence + 1, state.atUs);
  const others = state.leases.filter((held) => held.holder !== holder);
  state.leases = [...others, { holder, fence: state.fence, cost, untilUs: state.atUs + limit.leaseUs }];
  state.waiting = state.waiting.filter((place) => place.holder !== holder);
  state.granted += cost;
  return state.fence;
}

/** Whether it was still held. */
export function release(state: ConcurrencyState, holder: string, fence: number): boolean {
  const before = state.leases.length;
  state.leases = state.leases.filter((held) => held.holder !== holder || held.fence !== fence);
  return state.leases.length < before;
}

/**
 * Whether it was still held, and is for another lease's length.
 *
 * @param lostCost - If the store has lost its leases, and this one may have been among them: what it was for. Then it is taken
 *   in again. Undefined: they are all there.
 */
export function renew(
  state: ConcurrencyState,
  limit: ConcurrencyLimit,
  holder: string,
  fence: number,
  lostCost?: number,
): boolean {
  const index = state.leases.findIndex((held) => held.holder === holder && held.fence === fence);
  if (index < 0) {
    if (lostCost === undefined || state.leases.some((held) => held.holder === holder)) return false;
    state.leases = [...state.leases, { holder, fence, cost: lostCost, untilUs: state.atUs + limit.leaseUs }];
    state.fence = Math.max(state.fence, fence);
    return true;
  }
  const renewed = { ...state.leases[index]!, untilUs: state.atUs + limit.leaseUs };
  state.leases = state.leases.with(index, renewed);
  return true;
}
