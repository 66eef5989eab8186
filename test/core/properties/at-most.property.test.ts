import fc from 'fast-check';
import { expect, it } from 'vitest';
import type { RateState } from '../../../src/core/buckets/rate/index.ts';
import { usedOf } from '../../../src/core/buckets/window/counts.ts';
import type { WindowState } from '../../../src/core/buckets/window/index.ts';
import type { LimitsOptions } from '../../../src/core/limits/limit.ts';
import { perSecond } from '../../../src/core/limits/rate.ts';
import { runs } from '../../support/runs.ts';
import { S, World } from '../../support/world.ts';

/*
 * As much as there is, in whole tokens: as much from each limit, and what is less than a token stays where it is. Tokens that drip in and are
 * asked for again and again come to exactly what the rate is.
 */
const numRuns = runs(1_000);

const limits: fc.Arbitrary<LimitsOptions> = fc
  .record({
    rate: fc.integer({ min: 1, max: 60 }),
    burst: fc.integer({ min: 1, max: 20 }),
    second: fc.option(
      fc.record({ rate: fc.integer({ min: 1, max: 60 }), burst: fc.integer({ min: 1, max: 20 }) }),
      { nil: undefined },
    ),
    max: fc.option(fc.integer({ min: 1, max: 30 }), { nil: undefined }),
    mode: fc.constantFrom('fixed' as const, 'sliding' as const, 'log' as const),
  })
  .map(({ rate, burst, second, max, mode }) => ({
    calls: perSecond(rate, { burst }),
    ...(second && { second: perSecond(second.rate, { burst: second.burst }) }),
    ...(max !== undefined && { daily: { kind: 'window' as const, max, windowMs: 1_000, mode } }),
  }));

const asks = fc.array(
  fc.record({
    afterUs: fc.oneof(fc.constant(0), fc.integer({ min: 1, max: 400_000 })),
    most: fc.integer({ min: 1, max: 40 }),
  }),
  { minLength: 1, maxLength: 80, size: 'max' },
);

/** What each limit holds, in units that nothing is rounded in. */
const holds = (world: World, atUs: number) =>
  world.views(atUs).map(({ demand, state }) => {
    if (demand.kind === 'rate') return demand.limit.burst * demand.limit.periodUs - (state as RateState).debt;
    if (demand.kind === 'window') return demand.limit.max - usedOf(state as WindowState, demand.limit);
    throw new Error(demand.kind);
  });

it('takes as many whole tokens as all limits have, from all alike, and no fraction', () => {
  const seen = { taken: 0, nothing: 0, all: 0 };
  fc.assert(
    fc.property(limits, asks, (options, asks) => {
      const world = new World(options);
      let nowUs = 0;
      for (const { afterUs, most } of asks) {
        nowUs += afterUs;
        const before = holds(world, nowUs);
        const units = world.limits.map((limit) => (limit.kind === 'rate' ? limit.periodUs : 1));
        const expected = Math.min(
          most,
          ...before.map((left, index) => Math.max(0, Math.floor(left / units[index]!))),
        );
        const taken = world.atMost(nowUs, most);
        expect(taken).toBe(expected);
        expect(holds(world, nowUs)).toEqual(before.map((left, index) => left - taken * units[index]!));
        seen.taken += taken;
        if (taken === 0) seen.nothing += 1;
        if (taken === most) seen.all += 1;
      }
    }),
    { numRuns },
  );
  for (const count of Object.values(seen)) expect(count).toBeGreaterThan(numRuns / 2);
});

it('loses nothing of a rate to who asks all the time', () => {
  const world = new World({ calls: perSecond(7, { burst: 3 }) });
  let taken = 0;
  for (let atUs = 0; atUs <= 60 * S; atUs += 1_003) taken += world.atMost(atUs, 5);
  expect(taken).toBe(3 + 7 * 60 - 1);
});

it('takes nothing in a pause, and leaves what is kept for the more urgent', () => {
  const world = new World({ calls: perSecond(10, { burst: 10, reserve: { high: 0.3, normal: 0.2 } }) });
  expect(world.copy().atMost(0, 20, { priority: 2 })).toBe(5);
  expect(world.copy().atMost(0, 20, { priority: 1 })).toBe(7);
  expect(world.copy().atMost(0, 20, { priority: 0 })).toBe(10);
  world.pause(0, S);
  expect(world.atMost(0, 20, { priority: 0 })).toBe(0);
});

it('takes no more than its share of a fair limit that others use', () => {
  const world = new World({ calls: perSecond(100, { burst: 20, by: 'tenant', fair: true }) });
  const taken = { a: 0, b: 0 };
  for (let atUs = 0; atUs <= 10 * S; atUs += 10_000) {
    // The one asks for as much as there is, the other for one at a time, all the time.
    taken.a += world.atMost(atUs, 1_000, { keys: { tenant: 'a' } });
    if (world.allows(atUs + 5_000, { keys: { tenant: 'b' } })) taken.b += 1;
  }
  expect(taken.b / (taken.a + taken.b)).toBeGreaterThan(0.45);
});
