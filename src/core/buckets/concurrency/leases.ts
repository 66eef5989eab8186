import type { ConcurrencyLimit } from '../../limits/concurrency.ts';
import { type AdaptiveState, begun, held, risen } from '../adaptive.ts';
import { MAX_CLOCK_STEP_US, movedBy } from '../moment.ts';
import { isRamping, slotsInRamp, whenSlots } from '../ramp.ts';

/**
 * Concurrency: slots that are leased. A lease lapses by itself if it is not renewed, so that a holder that died needs nobody
 * to clean up after it. lua/includes/{slots,leases,queue}.lua are the same in Lua.
 *
 * Who finds no slot may wait in the queue of its bucket, first come, first served: nobody passes those before it, so that
 * a heavy request is not starved by light ones. When slots come free, those at the head that now fit are woken, each once.
 * A place in the queue lapses too.
 */
export interface Lease {
  /** Whose it is: the same holder is let in again, and holds one lease. */
  readonly holder: string;
  /** Fencing number: grows with each grant, so that a later holder can be told from one that outlived its lease. */
  readonly fence: number;
  readonly cost: number;
  readonly untilUs: number;
}

export interface Waiting {
  readonly holder: string;
  readonly cost: number;
  readonly untilUs: number;
  /** When it was told that there is room, without having asked again since; 0: it was not. */
  readonly wokenUs: number;
  /** The process that waits; '': nothing is known of it. */
  readonly instance: string;
}

export interface LeaseState {
  atUs: number;
  granted: number;
  refused: number;
  closedUs: number;
  /** The last fencing number. */
  fence: number;
  leases: readonly Lease[];
  waiting: readonly Waiting[];
  adaptive: AdaptiveState | null;
}

/** A place in the queue lapses after this long without asking again. */
export const WAITING_US = 3_000_000;

/**
 * Who was woken and has not asked again within this is passed over until it does, and so are the places of the same process
 * behind it: that may be gone, and slots are not to stand empty for it.
 */
export const WOKEN_US = 50_000;

/** Who waits asks again after this long at the latest, should the message that wakes it be lost. */
export const ASK_AGAIN_US = 1_000_000;

export function blankLeases(limit: ConcurrencyLimit, nowUs: number): LeaseState {
  const adaptive = limit.adaptive && begun(limit.adaptive, limit.max, nowUs);
  return { atUs: nowUs, granted: 0, refused: 0, closedUs: 0, fence: 0, leases: [], waiting: [], adaptive };
}

/** The slots as they stand now: without the leases and places that have lapsed. */
export function lapsed(stored: LeaseState, limit: ConcurrencyLimit, storeNowUs: number): LeaseState {
  const stepUs = stored.atUs - storeNowUs;
  let { leases, waiting, closedUs, adaptive } = stored;
  const back = stepUs > MAX_CLOCK_STEP_US;
  if (back) {
    leases = leases.map((lease) => ({ ...lease, untilUs: movedBy(lease.untilUs, stepUs) }));
    waiting = waiting.map((place) => ({
      ...place,
      untilUs: movedBy(place.untilUs, stepUs),
      wokenUs: movedBy(place.wokenUs, stepUs),
    }));
    closedUs = movedBy(closedUs, stepUs);
  }
  const atUs = back ? storeNowUs : Math.max(storeNowUs, stored.atUs);
  leases = leases.filter(({ untilUs }) => untilUs > atUs);
  waiting = waiting.filter(({ untilUs }) => untilUs > atUs);
  if (limit.adaptive === null) adaptive = null;
  else if (adaptive === null) adaptive = begun(limit.adaptive, limit.max, storeNowUs);
  else adaptive = risen(held(adaptive, heldOf(stored)), limit.adaptive, 0, storeNowUs);
  // A stretch in which use is looked at begins with what is held then.
  if (adaptive !== null) adaptive = held(adaptive, heldOf({ ...stored, leases }));
  return { ...stored, atUs, leases, waiting, closedUs, adaptive };
}

const wholeSlots = ({ adaptive }: LeaseState, limit: ConcurrencyLimit): number =>
  adaptive === null ? limit.max : Math.max(1, Math.floor(adaptive.value / 1_000));

/** The slots there are now. @param emptyUs - When a pause ends or ended; 0: there was none. */
export const slotsOf = (state: LeaseState, limit: ConcurrencyLimit, emptyUs: number): number =>
  // An adaptive one comes back by itself.
  state.adaptive !== null && state.atUs >= emptyUs
    ? wholeSlots(state, limit)
    : slotsInRamp(wholeSlots(state, limit), state.atUs, emptyUs);

export const heldOf = (state: LeaseState): number => state.leases.reduce((sum, { cost }) => sum + cost, 0);

/** Microseconds until it is worth asking again; 0: there is room for `holder`, and nobody before it in the queue. */
export function leaseWaitUs(
  state: LeaseState,
  limit: ConcurrencyLimit,
  cost: number,
  holder: string,
  emptyUs: number,
): number {
  const own = state.leases.find((lease) => lease.holder === holder);
  let taken = heldOf(state) - (own?.cost ?? 0);
  const slots = slotsOf(state, limit, emptyUs);
  if (own === undefined) {
    for (const { place, counted } of needs(state, limit)) {
      if (place.holder === holder) break;
      taken += counted;
    }
  }
  const needed = taken + askedOf(cost, state, limit);
  const whole = wholeSlots(state, limit);
  // A ramp keeps nobody from what it holds.
  if (needed <= (own !== undefined && cost <= own.cost ? whole : slots)) return 0;
  const ramps = limit.adaptive === null && isRamping(state.atUs, emptyUs) && needed <= whole;
  const rampUs = ramps ? whenSlots(needed, whole, emptyUs) : Number.POSITIVE_INFINITY;
  const firstUs = Math.min(rampUs, ...state.leases.map(({ untilUs }) => untilUs)) - state.atUs;
  return Math.min(ASK_AGAIN_US, firstUs);
}

/** An adaptive limit may have fallen below a cost: that passes alone. */
const askedOf = (cost: number, state: LeaseState, limit: ConcurrencyLimit): number =>
  state.adaptive === null ? cost : Math.min(cost, wholeSlots(state, limit));

interface Need {
  readonly place: Waiting;
  /** What it still needs, besides what its holder has. */
  readonly cost: number;
  /** The same, or 0 if it is passed over. */
  readonly counted: number;
}

function needs(state: LeaseState, limit: ConcurrencyLimit): Need[] {
  const gone = new Set<string>();
  return state.waiting.map((place) => {
    const own = state.leases.find((lease) => lease.holder === place.holder);
    const cost = Math.max(0, askedOf(place.cost, state, limit) - (own?.cost ?? 0));
    const isLate = place.wokenUs > 0 && state.atUs >= place.wokenUs + WOKEN_US;
    if (isLate && place.instance !== '') gone.add(place.instance);
    return { place, cost, counted: isLate || gone.has(place.instance) ? 0 : cost };
  });
}

export function lease(state: LeaseState, limit: ConcurrencyLimit, cost: number, holder: string): number {
  // Numbers follow the clock, so that they still grow after the bucket was forgotten.
  state.fence = Math.max(state.fence + 1, state.atUs);
  const others = state.leases.filter((held) => held.holder !== holder);
  state.leases = [...others, { holder, fence: state.fence, cost, untilUs: state.atUs + limit.leaseUs }];
  state.waiting = state.waiting.filter((place) => place.holder !== holder);
  state.granted += cost;
  return state.fence;
}

/** Gives `holder` its place in the queue, or keeps it there. */
export function queueUp(state: LeaseState, cost: number, holder: string, instance: string): void {
  const place = { holder, cost, untilUs: state.atUs + WAITING_US, wokenUs: 0, instance };
  const index = state.waiting.findIndex((waiting) => waiting.holder === holder);
  state.waiting = index < 0 ? [...state.waiting, place] : state.waiting.with(index, place);
}

export function leaveQueue(state: LeaseState, holder: string): void {
  state.waiting = state.waiting.filter((place) => place.holder !== holder);
}

/** Whether it was still held. */
export function release(state: LeaseState, holder: string, fence: number): boolean {
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
  state: LeaseState,
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

/** Marks those at the head of the queue for whom there is room now, and returns the ones that do not know it yet. */
export function wake(state: LeaseState, limit: ConcurrencyLimit, emptyUs: number): string[] {
  const woken: string[] = [];
  let taken = heldOf(state);
  const slots = slotsOf(state, limit, emptyUs);
  state.waiting = needs(state, limit).map(({ place, cost, counted }) => {
    const fits = taken + cost <= slots;
    taken += counted;
    if (!fits || place.wokenUs > 0) return place;
    woken.push(place.holder);
    return { ...place, wokenUs: state.atUs };
  });
  return woken;
}

/** The microsecond at which nothing will be held or waited for any more, if nobody renews. */
export function leasesEmptyUs(state: LeaseState): number {
  const all = [...state.leases, ...state.waiting].map(({ untilUs }) => untilUs);
  return Math.max(state.atUs, ...all);
}
