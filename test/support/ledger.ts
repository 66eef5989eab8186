import type { RateLimit, RateLimitOptions } from '../../src/core/limits/rate.ts';
import { limitOf } from './world.ts';

/** One grant as an auditor sees it: when the work was allowed to start, and what it cost. */
export interface Start {
  readonly atUs: number;
  readonly cost: number;
}

/** How far the fullest interval is over the bound, in units of 1/`periodUs` token; 0n meets it exactly. */
export interface Excess {
  /** Over all intervals, those of length zero included. Null if nothing started. */
  readonly worst: bigint | null;
  /** Over those intervals only that begin at one instant and end at a later one. */
  readonly worstSpanning: bigint | null;
}

/**
 * The guarantee, checked without a float: for every interval, cost × periodUs − burst × periodUs − rate × length.
 *
 * Only intervals that begin and end at a start need looking at, as any other holds the same cost in more time. For those from the
 * start `i` to the start `j` the excess is `through(j) − before(i)`, where both are running sums less what has drained;
 * the lowest `before` so far therefore gives the worst interval that ends at `j`.
 */
export function excess(starts: readonly Start[], rate: bigint, periodUs: bigint, burst: bigint): Excess {
  const inOrder = [...starts].sort((a, b) => a.atUs - b.atUs);
  let total = 0n;
  let lowest: bigint | null = null;
  let lowestEarlier: bigint | null = null;
  let lastUs: number | null = null;
  let worst: bigint | null = null;
  let worstSpanning: bigint | null = null;
  for (const { atUs, cost } of inOrder) {
    if (atUs !== lastUs) lowestEarlier = lowest;
    lastUs = atUs;
    const drained = rate * BigInt(atUs);
    lowest = least(lowest, total * periodUs - drained);
    total += BigInt(cost);
    const through = total * periodUs - drained - burst * periodUs;
    worst = most(worst, through - lowest);
    if (lowestEarlier !== null) worstSpanning = most(worstSpanning, through - lowestEarlier);
  }
  return { worst, worstSpanning };
}

export const excessOf = (starts: readonly Start[], { rate, periodUs, burst }: RateLimit): Excess =>
  excess(starts, BigInt(rate), BigInt(periodUs), BigInt(burst));

/** In tokens. The promise is that it is never above 0. */
export function worstExcess(starts: readonly Start[], options: RateLimitOptions): number {
  const limit = limitOf(options);
  return Number(excessOf(starts, limit).worst ?? 0n) / limit.periodUs;
}

export const most = (a: bigint | null, b: bigint | null): bigint | null =>
  a === null ? b : b === null || a > b ? a : b;

const least = (a: bigint | null, b: bigint): bigint => (a === null || b < a ? b : a);

/** The most that starts in any interval of that length: half-open, or with both its ends. */
export function mostWithin(starts: readonly Start[], lengthUs: number, ends: 'half-open' | 'closed'): number {
  const inOrder = [...starts].sort((a, b) => a.atUs - b.atUs);
  let [most, sum, first] = [0, 0, 0];
  for (const { atUs, cost } of inOrder) {
    sum += cost;
    while (
      ends === 'closed' ? atUs - inOrder[first]!.atUs > lengthUs : atUs - inOrder[first]!.atUs >= lengthUs
    ) {
      sum -= inOrder[first]!.cost;
      first += 1;
    }
    most = Math.max(most, sum);
  }
  return most;
}

/** The items by some property of theirs, in their order. */
export function groupedBy<T, K>(items: readonly T[], of: (item: T) => K): Map<K, T[]> {
  const groups = new Map<K, T[]>();
  for (const item of items) {
    const group = groups.get(of(item));
    if (group === undefined) groups.set(of(item), [item]);
    else group.push(item);
  }
  return groups;
}

/** The sum of costs by some property of the starts. */
export const sumsBy = <T extends Start>(starts: readonly T[], of: (start: T) => string | number): number[] =>
  [...groupedBy(starts, of).values()].map((group) => group.reduce((sum, { cost }) => sum + cost, 0));
