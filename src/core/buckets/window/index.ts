import type { Kind } from '../kind.ts';
import { openLine } from '../line.ts';
import { fromNowUs } from '../moment.ts';
import { pausedForUs, pauseOf } from '../pause.ts';
import { correct, countIn, emptyAtUs, startsWithin, usedOf, waitUs } from './counts.ts';
import { blank, converted, drained } from './drain.ts';
import type { WindowView } from './state.ts';

export type { WindowDemand, WindowState } from './state.ts';

const isConverted = ({ stored, demand }: WindowView): boolean =>
  stored !== undefined && converted(stored, demand.limit) !== stored;

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
    const pause = pauseOf(state, false, at);
    const pausedUs = pausedForUs(pause, at);
    const wait = fromNowUs(state, waitUs(state, limit, cost), at);
    return { demand, stored, state, waitUs: Math.max(pausedUs, wait), pausedUs, pause, lineUs: state.lineUs };
  },

  expiresUs: (state, limit) => Math.max(emptyAtUs(converted(state, limit), limit), state.pausedUntilUs),

  canReserve: () => true,
  countsAhead: ({ state, demand }, startUs) => startsWithin(state, demand.limit, startUs),

  charge({ state, demand: { limit, cost } }, _asker, startUs) {
    countIn(state, limit, startUs, cost);
    return {};
  },

  remaining: ({ state, demand: { limit } }) => Math.max(0, limit.max - usedOf(state, limit)),
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
