import { describe, expect, it } from 'vitest';
import { perSecond } from '../../../../src/core/limits/rate.ts';
import { excessOf } from '../../../support/ledger.ts';
import { rateLimits, S } from '../../../support/world.ts';
import { costsOf, type Party, type Started, simulate } from '../../support/crowd.ts';

/*
 * Fairness, as callers of waitN meet it: a share by weight for each value that asks for it, and what one leaves is the others'.
 */
const RATE = 120;
const limitsOf = (burst: number | undefined) => ({
  calls: perSecond(RATE, {
    by: 'tenant',
    fair: true,
    weights: { a: 3, b: 2 },
    ...(burst !== undefined && { burst }),
  }),
});

const party = (tenant: string, callers: number, more: Partial<Party> = {}): Party => ({
  keys: { tenant },
  callers,
  ...more,
});

const total = (costs: readonly number[]) => costs.reduce((sum, cost) => sum + cost, 0);

/** Each has its share to within 5 %, and together they use at least 95 % of the rate. */
function expectShares(
  starts: readonly Started[],
  weights: readonly number[],
  fromS: number,
  toS: number,
): void {
  const costs = costsOf(starts, weights.length, fromS * S, toS * S);
  const all = total(costs);
  expect(all).toBeGreaterThanOrEqual(0.95 * RATE * (toS - fromS));
  for (const [index, weight] of weights.entries()) {
    const share = (costs[index]! / all / weight) * total(weights);
    expect(Math.abs(share - 1), `of party ${index}: ${costs}`).toBeLessThanOrEqual(0.05);
  }
}

describe.each([{ burst: undefined }, { burst: 12 }, { burst: 1 }])(
  'a fair limit with burst $burst',
  ({ burst }) => {
    const limits = limitsOf(burst);

    it.each([
      ['all alike', [20, 20, 20]],
      ['few callers', [4, 4, 4]],
      ['the lightest floods', [20, 20, 1_000]],
      ['the heaviest floods', [1_000, 20, 20]],
    ])('is shared by weight: %s', (_, callers) => {
      const starts = simulate(
        limits,
        ['a', 'b', 'c'].map((tenant, index) => party(tenant, callers[index]!)),
        10 * S,
      );
      expectShares(starts, [3, 2, 1], 0, 10);
      const { worst } = excessOf(
        starts.map(({ atUs, cost }) => ({ atUs: Math.floor(atUs), cost })),
        rateLimits(limits)[0]!,
      );
      expect(worst! <= 0n).toBe(true);
    });

    it('leaves three their shares beside a fourth that floods it', () => {
      const parties = [party('a', 20), party('b', 20), party('c', 20), party('d', 1_000)];
      expectShares(simulate(limits, parties, 10 * S), [3, 2, 1, 1], 0, 10);
    });

    it('is all used by one that is alone', () => {
      expectShares(simulate(limits, [party('c', 20)], 10 * S), [1], 0, 10);
    });

    it('gives the rest of a light share to the others', () => {
      // A tenth of what its share would be.
      const starts = simulate(
        limits,
        [party('a', 20), party('b', 20), party('c', 5, { perSecond: 2 })],
        10 * S,
      );
      const costs = costsOf(starts, 3, 0, 10 * S);
      expect(costs[2]).toBeGreaterThanOrEqual(19);
      expect(total(costs)).toBeGreaterThanOrEqual(0.95 * RATE * 10);
      expect(costs[0]! / costs[1]!).toBeGreaterThan(1.5 * 0.9);
      expect(costs[0]! / costs[1]!).toBeLessThan(1.5 * 1.1);
    });

    it('gives the share of one that stops to the others within two seconds, and back when it comes', () => {
      const parties = [
        party('a', 20, { untilUs: 5 * S }),
        party('b', 20),
        party('c', 20),
        party('d', 20, { fromUs: 10 * S }),
      ];
      const starts = simulate(limits, parties, 15 * S);
      expectShares(
        starts.map((start) => ({ ...start, party: start.party - 1 })),
        [2, 1],
        7,
        10,
      );
      expectShares(
        starts.map((start) => ({ ...start, party: start.party - 1 })),
        [2, 1, 1],
        11,
        15,
      );
    });
  },
);
