import type { ConcurrencyLimit } from '../../limits/concurrency.ts';
import { type AdaptiveState, begun, held, risen } from '../adaptive.ts';
import { MAX_CLOCK_STEP_US } from '../constants.ts';
import type { DemandOf, View } from '../kind.ts';
import { type BucketState, type Moment, movedBy } from '../moment.ts';
import { movedPause, opened, type Pause } from '../pause.ts';

export type ConcurrencyDemand = DemandOf<'concurrency', ConcurrencyLimit>;
export type ConcurrencyView = View<ConcurrencyDemand, ConcurrencyState>;

/**
 * Concurrency: slots that are leased. A lease lapses by itself if it is not renewed, so that a holder that died needs nobody
 * to clean up after it. lua/includes/buckets/concurrency/ is the same in Lua.
 *
 * A request that finds no slot may wait in the queue of its bucket, first come, first served: nobody passes those before it, so that
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
  /** When it was woken, if it has not asked again since; 0: it was not. */
  readonly wokenUs: number;
  /** The process that waits; '': not known. */
  readonly instance: string;
}

/** The slots of a limit. They have no line: those that wait stand in a queue. */
export interface ConcurrencyState extends BucketState {
  /** The last fencing number. */
  fence: number;
  leases: readonly Lease[];
  waiting: readonly Waiting[];
  /** Only of an adaptive limit. */
  adaptive?: AdaptiveState;
}

export const blank = ({ adaptive, max }: ConcurrencyLimit, { nowUs }: Moment): ConcurrencyState => ({
  atUs: nowUs,
  lineUs: 0,
  granted: 0,
  refused: 0,
  pause: null,
  fence: 0,
  leases: [],
  waiting: [],
  ...(adaptive && { adaptive: begun(adaptive, max, nowUs) }),
});

/** The slots as they stand now: without the leases and places that have lapsed. */
export function drained(stored: ConcurrencyState, limit: ConcurrencyLimit, nowUs: number): ConcurrencyState {
  const state = { ...stored };
  if (stored.atUs - nowUs > MAX_CLOCK_STEP_US) step(state, nowUs);
  state.atUs = Math.max(nowUs, state.atUs);
  state.leases = state.leases.filter(({ untilUs }) => untilUs > state.atUs);
  state.waiting = state.waiting.filter(({ untilUs }) => untilUs > state.atUs);
  if (limit.adaptive === null) delete state.adaptive;
  else {
    const risenTo =
      state.adaptive === undefined
        ? begun(limit.adaptive, limit.max, nowUs)
        : risen(held(state.adaptive, heldOf(stored)), limit.adaptive, 0, nowUs);
    // A stretch in which use is looked at begins with what is held then.
    state.adaptive = held(risenTo, heldOf(state));
  }
  return state;
}

function step(state: ConcurrencyState, nowUs: number): void {
  const stepUs = state.atUs - nowUs;
  const moved = <T extends { readonly untilUs: number }>(one: T): T => ({
    ...one,
    untilUs: movedBy(one.untilUs, stepUs),
  });
  state.atUs = nowUs;
  state.pause = movedPause(state.pause, stepUs);
  state.leases = state.leases.map(moved);
  state.waiting = state.waiting.map((place) => ({
    ...moved(place),
    wokenUs: movedBy(place.wokenUs, stepUs),
  }));
}

/** The slots there are without a pause. */
export const allSlots = ({ adaptive }: ConcurrencyState, limit: ConcurrencyLimit): number =>
  adaptive === undefined ? limit.max : Math.max(1, Math.floor(adaptive.value / 1_000));

/** The slots there are now. After a pause they come back one after the other. */
export const slotsOf = (state: ConcurrencyState, limit: ConcurrencyLimit, pause: Pause | undefined): number =>
  opened(allSlots(state, limit), pause, state.atUs);

export const heldOf = (state: ConcurrencyState): number =>
  state.leases.reduce((sum, { cost }) => sum + cost, 0);

/** The microsecond at which nothing will be held or waited for any more, if nobody renews. */
export function emptyAtUs(state: ConcurrencyState): number {
  const all = [...state.leases, ...state.waiting].map(({ untilUs }) => untilUs);
  return Math.max(state.atUs, ...all);
}
