// Timers, event loops and the network move a call by some milliseconds after its tokens were granted.
const JITTER_MS = 50;

/** How far calls may exceed a limit, in tokens, and still count as exact: 50 ms of its rate, at least 1. */
export function toleratedExcess(rate: number): number {
  return Math.max(1, (rate * JITTER_MS) / 1000);
}
