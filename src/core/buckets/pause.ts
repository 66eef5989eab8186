import { RAMP_US } from './constants.ts';
import { type BucketState, type Moment, movedBy } from './moment.ts';

/**
 * A pause, and how work comes back after it. A downstream that asked for a pause must not meet everything at once: a pause costs
 * half of its own length, at most half a second, and what comes back in whole numbers comes back bit by bit for as long.
 * lua/includes/buckets/pause.lua is the same in Lua.
 */
export interface Pause {
  readonly fromUs: number;
  readonly untilUs: number;
}

/** The last pauses of a bucket and of its governor, in the order of their ends. */
export type Pauses = readonly Pause[];

/** @param at - Left out: the bucket's own alone. */
export function pausesOf({ pause }: Pick<BucketState, 'pause'>, at?: Moment): Pauses {
  const all = [at?.pause ?? null, pause].filter((one) => one !== null);
  return all.sort((a, b) => a.untilUs - b.untilUs);
}

/** When the last of them ends or ended; 0: there was none. */
export const pauseEndUs = (pauses: Pauses): number => pauses.at(-1)?.untilUs ?? 0;

/** From the store's now until the last of them ends; 0: it is over. */
export const pausedForUs = (pauses: Pauses, { nowUs }: Moment): number =>
  Math.max(0, pauseEndUs(pauses) - nowUs);

/** How long work takes to come back in full. */
export const rampUs = ({ fromUs, untilUs }: Pause): number =>
  Math.max(0, Math.min(RAMP_US, untilUs - fromUs));

/** How much of `whole` (slots, tokens of a window) is there at `us`. */
export function opened(whole: number, pause: Pause | undefined, us: number): number {
  if (pause === undefined) return whole;
  const ramp = rampUs(pause);
  if (us >= pause.untilUs + ramp) return whole;
  if (us < pause.untilUs) return 0;
  return Math.max(1, Math.floor((whole * Math.floor(((us - pause.untilUs) * 1_000) / ramp)) / 1_000));
}

/** The first microsecond at which `needed` of `whole` is there. */
export function whenOpened(needed: number, whole: number, pause: Pause): number {
  if (needed <= 1) return pause.untilUs;
  return pause.untilUs + Math.ceil((Math.ceil((needed * 1_000) / whole) * rampUs(pause)) / 1_000);
}

/** The pause after somebody pauses until then: the longest wins. */
export function longer(before: Pause | null, nowUs: number, untilUs: number): Pause {
  if (before === null || before.untilUs <= nowUs) return { fromUs: nowUs, untilUs };
  return { fromUs: before.fromUs, untilUs: Math.max(before.untilUs, untilUs) };
}

/** As it is after the clock that wrote it was put right. */
export const movedPause = (pause: Pause | null, stepUs: number): Pause | null =>
  pause && { fromUs: movedBy(pause.fromUs, stepUs), untilUs: movedBy(pause.untilUs, stepUs) };
