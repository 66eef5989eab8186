/** Something that cost tokens at a moment. All times are of one clock. */
export interface TimedCost {
  readonly atUs: number;
  readonly cost: number;
}

/**
 * The largest value, over all intervals, of arrived cost − burst − rate × length, in tokens: how far the
 * arrivals ever went over what a bucket of this rate and burst lets pass. At most 0 for a limit that was
 * exactly kept; −burst if nothing arrived.
 *
 * Only intervals from one arrival to another can be the worst, both ends included. With `before(i)` the cost
 * before arrival i, the interval i…j is worth `before(j) + cost(j) − rate × t(j)` plus `rate × t(i) −
 * before(i)`, less the burst; so the best i for each j is a running maximum, and one pass sees all intervals.
 *
 * @param arrivals - In order of time.
 * @param rate - Tokens a second.
 * @param burst - Tokens.
 */
export function worstExcess(arrivals: Iterable<TimedCost>, rate: number, burst: number): number {
  let before = 0;
  let bestStart = Number.NEGATIVE_INFINITY;
  let worst = -burst;
  for (const { atUs, cost } of arrivals) {
    const allowed = (rate * atUs) / 1e6;
    bestStart = Math.max(bestStart, allowed - before);
    before += cost;
    worst = Math.max(worst, before - allowed + bestStart - burst);
  }
  return worst;
}

/**
 * The share of the limit that was used: (cost − burst) / (rate × seconds from the first arrival to the last).
 * The burst is subtracted because it was there before the clock started. `null` if no time passed.
 */
export function utilisation(arrivals: readonly TimedCost[], rate: number, burst: number): number | null {
  const seconds = spanSeconds(arrivals);
  return seconds > 0 ? (totalCost(arrivals) - burst) / (rate * seconds) : null;
}

/** Seconds from the first arrival to the last. */
export function spanSeconds(arrivals: readonly TimedCost[]): number {
  return arrivals.length === 0 ? 0 : (arrivals.at(-1)!.atUs - arrivals[0]!.atUs) / 1e6;
}

export function totalCost(items: readonly Pick<TimedCost, 'cost'>[]): number {
  return items.reduce((sum, { cost }) => sum + cost, 0);
}

/** The smallest value that at least `share` of all values do not exceed (nearest rank); `null` if there are none. */
export function percentile(values: readonly number[], share: number): number | null {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] ?? null;
}

/** Four digits after the point: finer than anything measured here. */
export function round(value: number): number {
  return Math.round(value * 1e4) / 1e4;
}

export function roundOrNull(value: number | null): number | null {
  return value === null ? null : round(value);
}
