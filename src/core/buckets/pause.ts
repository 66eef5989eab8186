import type { BucketState, Moment } from './moment.ts';

/** The last pause of a bucket, its own or its governor's, whichever ends later. */
export interface Pause {
  /** When it ends or ended; 0: there was none. */
  readonly endUs: number;
  /** The same if a ramp follows it (ramp.ts); 0: none does. */
  readonly rampEndUs: number;
}

/** @param ramps - Whether work comes back in a ramp after a pause. An adaptive limit comes back by itself. */
export function pauseOf(
  { pausedUntilUs }: Pick<BucketState, 'pausedUntilUs'>,
  ramps: boolean,
  at?: Moment,
): Pause {
  const endUs = Math.max(pausedUntilUs, at?.pausedUntilUs ?? 0);
  return { endUs, rampEndUs: ramps ? endUs : 0 };
}

/** From the store's now until the pause ends; 0: it is over. */
export const pausedForUs = ({ endUs }: Pause, { nowUs }: Moment): number => Math.max(0, endUs - nowUs);
