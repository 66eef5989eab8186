import { type TimedCost, totalCost } from './measure.ts';

/** Items from `fromUs` on and before `toUs`. */
export function within<Item extends { readonly atUs: number }>(
  items: readonly Item[],
  fromUs: number,
  toUs: number,
): Item[] {
  return items.filter(({ atUs }) => atUs >= fromUs && atUs < toUs);
}

/** Tokens a second from `fromUs` to `toUs`. */
export function ratePerSecond(items: readonly TimedCost[], fromUs: number, toUs: number): number {
  return (totalCost(within(items, fromUs, toUs)) * 1e6) / (toUs - fromUs);
}

/** The most that any interval of `windowUs` saw, its end left out. @param items - In order of time. */
export function mostInAny(items: readonly TimedCost[], windowUs: number): number {
  let first = 0;
  let sum = 0;
  let most = 0;
  for (const { atUs, cost } of items) {
    sum += cost;
    while (items[first]!.atUs <= atUs - windowUs) sum -= items[first++]!.cost;
    most = Math.max(most, sum);
  }
  return most;
}

/**
 * The least that any interval of `windowUs` between `fromUs` and `toUs` saw; `null` if none fits.
 * The least interval begins just after an item, or where the time begins.
 *
 * @param items - In order of time.
 */
export function leastInAny(
  items: readonly TimedCost[],
  windowUs: number,
  fromUs: number,
  toUs: number,
): number | null {
  if (toUs - fromUs < windowUs) return null;
  const inside = within(items, fromUs, toUs);
  let least = Number.POSITIVE_INFINITY;
  let sum = 0;
  let last = 0;
  const count = (isInside: (atUs: number) => boolean) => {
    while (last < inside.length && isInside(inside[last]!.atUs)) sum += inside[last++]!.cost;
    least = Math.min(least, sum);
  };
  count((atUs) => atUs < fromUs + windowUs);
  // Just after an item: without it, but with an item exactly a window later.
  for (const item of inside) {
    const endUs = item.atUs + windowUs;
    if (endUs >= toUs) break;
    sum -= item.cost;
    count((atUs) => atUs <= endUs);
  }
  return least;
}

/**
 * How long after `changeUs` the first window of `windowUs` begins that sees at least `share` of `rate`; `null` if none does.
 * Looks at windows that begin with the change or with a later item.
 *
 * @param items - In order of time.
 */
export function reachedAfterUs(
  items: readonly TimedCost[],
  { changeUs, rate, windowUs, share }: { changeUs: number; rate: number; windowUs: number; share: number },
): number | null {
  const after = items.filter(({ atUs }) => atUs >= changeUs);
  const needed = (share * rate * windowUs) / 1e6;
  if (totalCost(within(after, changeUs, changeUs + windowUs)) >= needed) return 0;
  let end = 0;
  let sum = 0;
  for (const { atUs, cost } of after) {
    while (end < after.length && after[end]!.atUs < atUs + windowUs) sum += after[end++]!.cost;
    if (sum >= needed) return atUs - changeUs;
    sum -= cost;
  }
  return null;
}
