import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { RateLimit } from '../../../src/core/limits/rate.ts';
import { excessOf, most, mostWithin } from '../../support/ledger.ts';
import { operations, withinSeconds } from '../../support/operations.ts';
import { Played } from '../../support/played.ts';
import { mixtures, type RateKind } from '../../support/property-limits.ts';
import { runs } from '../../support/runs.ts';
import type { Request, World } from '../../support/world.ts';

/*
 * Limits of all kinds in one request: all of them are charged or none is, and the guarantee of each rate holds to the unit whatever
 * else takes part in the decision. Costs count as what they came to; what they came to beyond their estimate is over the bound
 * by so much.
 */
const numRuns = runs(600);
const timeout = 3_600_000;

const plain: RateKind[] = [
  {},
  { fair: true },
  { reserve: { high: 0.3, normal: 0.3 } },
  { penalty: { afterMs: 1_000, forMs: 2_000, share: 0.5 } },
  { fair: true, reserve: { high: 0.3, normal: 0 } },
];
const seconds = withinSeconds();
const everything = { acquire: 20, settle: 5, cancel: 4, release: 3, atMost: 2, forget: 1 };

/** What a decision reads of the buckets that a request meets, but for the line, the queue and the penalty. */
function charged(world: World, atUs: number, request: Request): Record<string, unknown>[] {
  return world.views(atUs, request).map(({ demand, state }) => {
    const { lineUs, refused, waiting, penalty, share, terms, ...rest } = state as unknown as Record<
      string,
      unknown
    >;
    return { bucket: demand.bucket, kind: demand.kind, ...rest, ...(terms as object) };
  });
}

/** Where a refusal begins a penalty, what is owed is told in the terms of the slower rate. */
function expectUncharged(before: Record<string, unknown>[], after: Record<string, unknown>[]): void {
  const comparable = (state: Record<string, unknown>, index: number) =>
    before[index]!.rate === after[index]!.rate ? state : { ...state, debt: 0, rate: 0 };
  expect(after.map(comparable)).toEqual(before.map(comparable));
}

describe('a request that meets limits of all kinds', () => {
  it('charges none of them when it is refused, and keeps the bound of each rate', { timeout }, () => {
    let worst: bigint | null = null;
    const seen = {
      grants: 0,
      ahead: 0,
      refusals: 0,
      refunds: 0,
      settled: 0,
      overruns: 0,
      taken: 0,
    };
    fc.assert(
      fc.property(
        fc.oneof(mixtures(plain), mixtures(plain, true)),
        operations(everything, seconds),
        (limits, operations) => {
          const mixture = new Played([limits], {
            onRefusal: (before, after, atUs, request) =>
              expectUncharged(charged(before, atUs, request), charged(after, atUs, request)),
          });
          mixture.play(operations);
          for (const entries of mixture.byRate()) {
            const { worst: found } = excessOf(entries, entries[0]!.limit);
            worst = most(worst, found);
            if (found! > 0n) throw new Error(`${entries[0]!.bucket} is ${found} units over its bound`);
          }
          for (const name of Object.keys(seen) as (keyof typeof seen)[]) seen[name] += mixture.seen[name];
        },
      ),
      { numRuns },
    );
    expect(worst).toBe(0n);
    for (const count of Object.values(seen)) expect(count).toBeGreaterThanOrEqual(numRuns / 20);
  });

  it('that costs more than the burst passes, within the bound of the largest cost', { timeout }, () => {
    let larger = 0;
    fc.assert(
      fc.property(mixtures([{ oversize: 'debt' }]), operations(everything, seconds), (limits, operations) => {
        const mixture = new Played([limits]).play(operations);
        for (const entries of mixture.byRate()) {
          const { limit } = entries[0]!;
          const largest = Math.max(limit.burst, ...entries.map(({ cost }) => cost));
          if (largest > limit.burst) larger += 1;
          expect(excessOf(entries, { ...limit, burst: largest }).worst! <= 0n).toBe(true);
        }
      }),
      { numRuns },
    );
    expect(larger).toBeGreaterThan(numRuns / 4);
  });

  it('under a strict limit never passes more than the rate in any period', { timeout }, () => {
    let fullest = 0;
    fc.assert(
      fc.property(mixtures([{ strict: true }]), operations(everything, seconds), (limits, operations) => {
        const mixture = new Played([limits]).play(operations);
        const calls = mixture.starts('calls');
        const { rate, periodMs } = (limits.find(({ name }) => name === 'calls') as RateLimit).options;
        const found = mostWithin(calls, periodMs * 1_000, 'closed') / rate;
        fullest = Math.max(fullest, found);
        expect(found).toBeLessThanOrEqual(1);
      }),
      { numRuns },
    );
    expect(fullest).toBe(1);
  });

  // An overrun is paid back: whatever is granted after it was told waits until it has drained.
  it('pays back what it came to beyond its estimate', { timeout }, () => {
    let overruns = 0;
    fc.assert(
      fc.property(mixtures([{}]), operations({ acquire: 20, settle: 10 }, seconds), (limits, operations) => {
        const mixture = new Played([limits]);
        const debts: { bucket: string; atUs: number; cost: number; decided: number }[] = [];
        let told = 0;
        for (const operation of operations) {
          mixture.play([operation]);
          for (const { bucket, overrun } of mixture.entries) told += bucket === 'calls' ? overrun : 0;
          const known = debts.reduce((sum, { cost }) => sum + cost, 0);
          const decided = mixture.entries.length;
          if (told > known) debts.push({ bucket: 'calls', atUs: mixture.nowUs, cost: told - known, decided });
          told = 0;
        }
        overruns += debts.length;
        const { rate, periodUs, burst } = limits.find(({ name }) => name === 'calls') as RateLimit;
        for (const [index, last] of mixture.entries.entries()) {
          if (last.bucket !== 'calls' || last.cost === 0) continue;
          for (const debt of debts) {
            if (debt.decided > index || debt.atUs > last.atUs) continue;
            // From when it was told to that start: the overrun and all that was decided by then.
            let passed = debt.cost;
            for (const entry of mixture.entries.slice(0, index + 1)) {
              if (entry.bucket === 'calls' && entry.atUs >= debt.atUs && entry.atUs <= last.atUs)
                passed += entry.cost;
            }
            expect((passed - burst) * periodUs).toBeLessThanOrEqual(rate * (last.atUs - debt.atUs));
          }
        }
      }),
      { numRuns },
    );
    expect(overruns).toBeGreaterThan(numRuns / 2);
  });
});
