/** Tokens granted at a moment. */
export interface Start {
  readonly atUs: number;
  readonly cost: number;
}

/**
 * The largest value, over all intervals from one start to another, of granted − burst − rate × length, in tokens: the
 * promise is that it is never above 0.
 *
 * @param ratePerUs - Tokens per microsecond.
 */
export function worstExcess(starts: readonly Start[], burst: number, ratePerUs: number): number {
  const sorted = [...starts].sort((a, b) => a.atUs - b.atUs);
  let worst = Number.NEGATIVE_INFINITY;
  // The most that any interval which ends here has above what drained during it.
  let level = 0;
  let lastUs = sorted[0]?.atUs ?? 0;
  for (const { atUs, cost } of sorted) {
    level = Math.max(0, level - (atUs - lastUs) * ratePerUs) + cost;
    lastUs = atUs;
    worst = Math.max(worst, level - burst);
  }
  return worst;
}
