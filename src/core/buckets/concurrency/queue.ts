import type { ConcurrencyLimit } from '../../limits/concurrency.ts';
import { ASK_AGAIN_US, WAITING_US, WOKEN_US } from '../constants.ts';
import { type Pause, whenOpened } from '../pause.ts';
import { allSlots, type ConcurrencyState, heldOf, slotsOf, type Waiting } from './state.ts';

/** Microseconds until it is worth asking again; 0: there is room for `holder`, and nobody before it in the queue. */
export function waitUs(
  state: ConcurrencyState,
  limit: ConcurrencyLimit,
  cost: number,
  holder: string,
  pause: Pause | undefined,
): number {
  const own = state.leases.find((lease) => lease.holder === holder);
  let taken = heldOf(state) - (own?.cost ?? 0);
  const slots = slotsOf(state, limit, pause);
  if (own === undefined) {
    for (const { place, counted } of needs(state, limit)) {
      if (place.holder === holder) break;
      taken += counted;
    }
  }
  const needed = taken + askedOf(cost, state, limit);
  const all = allSlots(state, limit);
  // A ramp keeps nobody from what it holds.
  if (needed <= (own !== undefined && cost <= own.cost ? all : slots)) return 0;
  const rampUs =
    pause !== undefined && needed <= all ? whenOpened(needed, all, pause) : Number.POSITIVE_INFINITY;
  const firstUs = Math.min(rampUs, ...state.leases.map(({ untilUs }) => untilUs)) - state.atUs;
  return Math.min(ASK_AGAIN_US, firstUs);
}

/** An adaptive limit may have fallen below a cost: that passes alone. */
const askedOf = (cost: number, state: ConcurrencyState, limit: ConcurrencyLimit): number =>
  state.adaptive === undefined ? cost : Math.min(cost, allSlots(state, limit));

interface Need {
  readonly place: Waiting;
  /** What it still needs, besides what its holder has. */
  readonly cost: number;
  /** The same, or 0 if it is passed over. */
  readonly counted: number;
}

function needs(state: ConcurrencyState, limit: ConcurrencyLimit): Need[] {
  const gone = new Set<string>();
  return state.waiting.map((place) => {
    const own = state.leases.find((lease) => lease.holder === place.holder);
    const cost = Math.max(0, askedOf(place.cost, state, limit) - (own?.cost ?? 0));
    const isLate = place.wokenUs > 0 && state.atUs >= place.wokenUs + WOKEN_US;
    if (isLate && place.instance !== '') gone.add(place.instance);
    return { place, cost, counted: isLate || gone.has(place.instance) ? 0 : cost };
  });
}

/** Gives `holder` its place in the queue, or keeps it there. */
export function queueUp(state: ConcurrencyState, cost: number, holder: string, instance: string): void {
  const place = { holder, cost, untilUs: state.atUs + WAITING_US, wokenUs: 0, instance };
  const index = state.waiting.findIndex((waiting) => waiting.holder === holder);
  state.waiting = index < 0 ? [...state.waiting, place] : state.waiting.with(index, place);
}

export function leaveQueue(state: ConcurrencyState, holder: string): void {
  state.waiting = state.waiting.filter((place) => place.holder !== holder);
}

/** Marks those at the head of the queue for whom there is room now, and returns the ones that do not know it yet. */
export function wake(state: ConcurrencyState, limit: ConcurrencyLimit, pause: Pause | undefined): string[] {
  const woken: string[] = [];
  let taken = heldOf(state);
  const slots = slotsOf(state, limit, pause);
  state.waiting = needs(state, limit).map(({ place, cost, counted }) => {
    const fits = taken + cost <= slots;
    taken += counted;
    if (!fits || place.wokenUs > 0) return place;
    woken.push(place.holder);
    return { ...place, wokenUs: state.atUs };
  });
  return woken;
}
