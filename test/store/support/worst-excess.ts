import type { RateLimitOptions } from '../../../src/core/limits/rate.ts';
import { limitOf } from '../../support/world.ts';

/** Tokens granted at a moment. */
export interface Start {
  readonly atUs: number;
  readonly cost: number;
}

/**
 * The largest value, over all intervals from one start to another, of granted − burst − rate × length, in tokens: the
 * promise is that it is never above 0. Reckoned in whole units, so that a grant at the last moment is not above it.
 */
export function worstExcess(starts: readonly Start[], limit: RateLimitOptions): number {
  const { rate, periodUs, burst } = limitOf(limit);
  const sorted = [...starts].sort((a, b) => a.atUs - b.atUs);
  let worst = Number.NEGATIVE_INFINITY;
  // The most that any interval which ends here has above what drained during it.
  let level = 0;
  let lastUs = sorted[0]?.atUs ?? 0;
  for (const { atUs, cost } of sorted) {
    level = Math.max(0, level - (atUs - lastUs) * rate) + cost * periodUs;
    lastUs = atUs;
    worst = Math.max(worst, level - burst * periodUs);
  }
  return worst / periodUs;
}
