import fc from 'fast-check';
import { expect, it } from 'vitest';
import { excessOf, groupedBy, most } from '../../support/ledger.ts';
import { operations, STEPPING, STEPPING_BACK } from '../../support/operations.ts';
import { Played } from '../../support/played.ts';
import { wideRates } from '../../support/property-limits.ts';
import { expectNothingCharged } from '../../support/refusal.ts';
import { runs } from '../../support/runs.ts';

/*
 * THE GUARANTEE. For every rate limit, every bucket of it and every interval: granted cost <= burst + rate x length, in whole
 * units and without any tolerance. Granted is all that was not given back by `cancel`; what an operator forces is not counted.
 * What a start is while the clock stands still is told at `Entry`.
 */
const numRuns = runs(2_000);
const doing = { acquire: 20, cancel: 6, force: 1, forget: 1 };

it('grants no more than burst + rate x length in any interval, and as much', { timeout: 3_600_000 }, () => {
  let worst: bigint | null = null;
  let worstSpanning: bigint | null = null;
  const seen = { histories: 0, intervals: 0, grants: 0, refusals: 0, refunds: 0, keptCancels: 0 };
  fc.assert(
    fc.property(wideRates, operations(doing, STEPPING), (limits, operations) => {
      const played = new Played([limits], { onRefusal: expectNothingCharged }).play(operations);
      for (const starts of played.byRate()) {
        const found = excessOf(starts, starts[0]!.limit);
        worst = most(worst, found.worst);
        worstSpanning = most(worstSpanning, found.worstSpanning);
        seen.intervals += (starts.length * (starts.length + 1)) / 2;
        if (found.worst! > 0n) throw new Error(`${starts[0]!.bucket} is ${found.worst} units over its bound`);
      }
      seen.histories += 1;
      for (const name of ['grants', 'refusals', 'refunds', 'keptCancels'] as const)
        seen[name] += played.seen[name];
    }),
    { numRuns },
  );
  // Equality is reached: the limiter holds nothing back to be on the safe side, neither at one instant nor over time.
  expect(worst).toBe(0n);
  expect(worstSpanning).toBe(0n);
  // And the histories were worth playing.
  for (const count of Object.values(seen)) expect(count).toBeGreaterThanOrEqual(numRuns);
});

/*
 * A clock that was wrong by more than a second and is put right. A bucket whose time lies further ahead than that adopts
 * the new one and keeps its debt. Two starts on either side of the correction have no distance in time that means
 * anything; on each side the bound holds exactly.
 */
it('holds the bound within each stretch between corrections of the clock', { timeout: 3_600_000 }, () => {
  let corrections = 0;
  let worst: bigint | null = null;
  fc.assert(
    fc.property(wideRates, operations(doing, STEPPING_BACK), (limits, operations) => {
      const played = new Played([limits], { mayCorrect: true, onRefusal: expectNothingCharged }).play(
        operations,
      );
      for (const entries of played.byRate()) {
        const byStretch = groupedBy(entries, ({ stretch }) => stretch);
        corrections += byStretch.size - 1;
        for (const starts of byStretch.values()) {
          const found = excessOf(starts, entries[0]!.limit).worst;
          worst = most(worst, found);
          if (found! > 0n) throw new Error(`${entries[0]!.bucket} is ${found} units over its bound`);
        }
      }
    }),
    { numRuns },
  );
  expect(worst).toBe(0n);
  expect(corrections).toBeGreaterThanOrEqual(numRuns);
});
