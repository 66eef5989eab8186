import type { WindowLimit } from '../../limits/window.ts';
import type { Kind } from '../kind.ts';
import { openLine } from '../line.ts';
import { fromNowUs } from '../moment.ts';
import { opened, type Pauses, pausedForUs, pausesOf, whenOpened } from '../pause.ts';
import { correct, countIn, emptyAtUs, startsWithin, usedOf, waitUs } from './counts.ts';
import { blank, converted, drained } from './drain.ts';
import type { WindowState, WindowView } from './state.ts';

export type { WindowDemand, WindowState } from './state.ts';

const isConverted = ({ stored, demand }: WindowView): boolean =>
  stored !== undefined && converted(stored, demand.limit) !== stored;

/** Until so much of it is open again after a pause. After a wait for room, what was used is no more. */
function openUs(
  state: WindowState,
  limit: WindowLimit,
  cost: number,
  roomUs: number,
  pauses: Pauses,
): number {
  const { max } = limit;
  const pause = pauses.at(-1);
  const needed = Math.min(max, roomUs > 0 ? cost : usedOf(state, limit) + cost);
  return pause === undefined || opened(max, pause, state.atUs) >= needed
    ? 0
    : whenOpened(needed, max, pause) - state.atUs;
}

export const WINDOW: Kind<WindowView> = {
  prefix: 'window|',
  reserves: false,

  look({ demand, stored }, _asker, at) {
    const { limit, cost } = demand;
    const before = converted(stored ?? blank(limit, at), limit);
    const state = drained(before, limit, at.nowUs);
    const isEmpty = usedOf(state, limit) === 0;
    const emptyUs = Math.min(emptyAtUs(before, limit), state.atUs);
    state.lineUs = openLine(state.lineUs, state.atUs, isEmpty, emptyUs);
    const pauses = pausesOf(state, at);
    const pausedUs = pausedForUs(pauses, at);
    const roomUs = waitUs(state, limit, cost);
    const wait = fromNowUs(state, Math.max(roomUs, openUs(state, limit, cost, roomUs, pauses)), at);
    return {
      demand,
      stored,
      state,
      waitUs: Math.max(pausedUs, wait),
      pausedUs,
      pauses,
      lineUs: state.lineUs,
    };
  },

  expiresUs: (state, limit) => Math.max(emptyAtUs(converted(state, limit), limit), state.pause?.untilUs ?? 0),

  canReserve: () => true,
  countsAhead: ({ state, demand }, startUs) => startsWithin(state, demand.limit, startUs),

  charge({ state, demand: { limit, cost } }, _asker, startUs) {
    countIn(state, limit, startUs, cost);
    return {};
  },

  remaining: ({ state, demand: { limit }, pauses }) =>
    Math.max(0, opened(limit.max, pauses.at(-1), state.atUs) - usedOf(state, limit)),
  effective: ({ demand }) => demand.limit.max,

  // What the window grants in the mean.
  lineAfterUs: ({ demand: { limit, cost } }, fromUs) =>
    fromUs + Math.ceil((cost * limit.windowUs) / limit.max),

  isCurrent: (view) => !isConverted(view),
  isOutdated: isConverted,

  giveBack: ({ state, demand: { limit, cost } }, _charged, startUs) => correct(state, limit, startUs, -cost),
  settle({ state, demand: { limit, cost } }, startUs, actual) {
    correct(state, limit, startUs, actual - cost);
  },
};
