import type { Clock } from './core/clock.ts';

// setTimeout fires at once for anything longer.
const MAX_TIMER_MS = 2_147_483_647;

/** This process's clock. */
export const systemClock: Clock = {
  monoMs: () => performance.now(),
  wallMs: () => Date.now(),
  timer: (delayMs, callback) => {
    // Rounded up: setTimeout cuts fractions, and would wake a holder up to a millisecond before its start.
    const timer = setTimeout(callback, Math.min(MAX_TIMER_MS, Math.ceil(delayMs)));
    return () => clearTimeout(timer);
  },
};
