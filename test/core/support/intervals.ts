import type { Start } from './ledger.ts';

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

/** The sum of costs by some property of the starts. */
export function sumsBy<T extends Start>(starts: readonly T[], of: (start: T) => string | number): number[] {
  const sums = new Map<string | number, number>();
  for (const start of starts) sums.set(of(start), (sums.get(of(start)) ?? 0) + start.cost);
  return [...sums.values()];
}
