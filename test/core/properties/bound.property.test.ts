import fc from 'fast-check';
import { expect, it } from 'vitest';
import { excessOf, most } from '../../support/ledger.ts';
import { type Entry, History, limits, operations, STEPPING } from '../support/history.ts';

/*
 * THE GUARANTEE. For every rate limit, every bucket of it and every interval: granted cost <= burst + rate x length, in whole
 * units and without any tolerance. Granted is all that was not given back by `cancel`; what an operator forces is not counted.
 * What a start is while the clock stands still is told at `History`.
 *
 * For a longer run by hand: FLYBALL_PROPERTY_RUNS=100000 npx vitest run --project unit bound
 */
const numRuns = Number(process.env.FLYBALL_PROPERTY_RUNS ?? 5_000);

it('grants no more than burst + rate x length in any interval, and as much', { timeout: 3_600_000 }, () => {
  let worst: bigint | null = null;
  let worstSpanning: bigint | null = null;
  const seen = { histories: 0, intervals: 0, grants: 0, refusals: 0, refunds: 0, keptCancels: 0 };
  fc.assert(
    fc.property(limits, operations(STEPPING), (limits, operations) => {
      const history = new History(limits);
      for (const operation of operations) history.play(operation);
      for (const bucket of history.entries.keys()) {
        const starts = history.starts(bucket);
        if (starts.length === 0) continue;
        const found = excessOf(starts, history.entries.get(bucket)![0]!.limit);
        worst = most(worst, found.worst);
        worstSpanning = most(worstSpanning, found.worstSpanning);
        seen.intervals += (starts.length * (starts.length + 1)) / 2;
        if (found.worst! > 0n) throw new Error(`${bucket} is ${found.worst} units over its bound`);
      }
      seen.histories += 1;
      seen.grants += history.grants;
      seen.refusals += history.refusals;
      seen.refunds += history.refunds;
      seen.keptCancels += history.keptCancels;
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
    fc.property(limits, operations([...STEPPING, 'back']), (limits, operations) => {
      const history = new History(limits, true);
      for (const operation of operations) history.play(operation);
      for (const [bucket, entries] of history.entries) {
        const byStretch = new Map<number, Entry[]>();
        for (const start of history.starts(bucket)) {
          byStretch.set(start.stretch, [...(byStretch.get(start.stretch) ?? []), start]);
        }
        corrections += Math.max(0, byStretch.size - 1);
        for (const starts of byStretch.values()) {
          const found = excessOf(starts, entries[0]!.limit).worst;
          worst = most(worst, found);
          if (found! > 0n) throw new Error(`${bucket} is ${found} units over its bound`);
        }
      }
    }),
    { numRuns },
  );
  expect(worst).toBe(0n);
  expect(corrections).toBeGreaterThanOrEqual(numRuns);
});
