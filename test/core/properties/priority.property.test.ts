import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { RateState } from '../../../src/core/buckets/rate/index.ts';
import { classOf } from '../../../src/core/calls/options.ts';
import { perSecond, type RateLimit } from '../../../src/core/limits/rate.ts';
import { runs } from '../../support/runs.ts';
import { S, WAITING, World } from '../../support/world.ts';

/*
 * A reserve: what is kept of the burst for the more urgent. The less urgent never get at it, and the line does not stop who is urgent.
 */
const numRuns = runs(1_000);
const HIGH = 0;
const NORMAL = 1;
const LOW = 2;

const limit = fc
  .record({
    rate: fc.integer({ min: 1, max: 50 }),
    burst: fc.integer({ min: 4, max: 40 }),
    high: fc.nat(5),
    normal: fc.nat(4),
  })
  .map(({ rate, burst, high, normal }) => ({
    calls: perSecond(rate, { burst, reserve: { high: high / 10, normal: normal / 10 } }),
  }));

const requests = fc.array(
  fc.record({
    afterUs: fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 300_000 }), fc.constant(2 * S)),
    cost: fc.integer({ min: 1, max: 6 }),
    priority: fc.constantFrom(HIGH, NORMAL, LOW, LOW),
    waits: fc.boolean(),
  }),
  { minLength: 1, maxLength: 100, size: 'max' },
);

const remainingAt = (world: World, atUs: number) => {
  const { state, demand } = world.views(atUs)[0]!;
  const { burst, periodUs } = demand.limit as RateLimit;
  return burst - (state as RateState).debt / periodUs;
};

describe('a reserve', () => {
  it('is never touched by who is less urgent, and is all that holds them up', () => {
    const seen = { granted: 0, kept: 0, urgent: 0 };
    fc.assert(
      fc.property(limit, requests, (options, requests) => {
        const world = new World(options);
        const { kept, burst } = world.limits[0] as RateLimit;
        let nowUs = 0;
        for (const { afterUs, cost, priority, waits } of requests) {
          nowUs += afterUs;
          const before = remainingAt(world, nowUs);
          const most = Math.min(cost, burst);
          const verdict = world.acquire(nowUs, {
            cost: most,
            priority,
            ...(waits && priority === HIGH && WAITING),
          });
          // The whole burst is never kept from anyone who asks for most of it.
          const mine = Math.min(kept![priority], burst - most);
          const reserved = verdict.granted && verdict.waitUs > 0;
          expect(verdict.granted && !reserved).toBe(before >= most + mine);
          if (verdict.granted) seen.granted += 1;
          else if (before >= most) seen.kept += 1;
          if (verdict.granted && priority === HIGH && before < most + kept![NORMAL]) seen.urgent += 1;
        }
      }),
      { numRuns },
    );
    for (const count of Object.values(seen)) expect(count).toBeGreaterThan(numRuns);
  });

  it('is there for the urgent however much the others ask for', () => {
    let passed = 0;
    fc.assert(
      fc.property(limit, requests, fc.constantFrom(NORMAL, HIGH), (options, requests, above) => {
        const world = new World(options);
        const { kept, burst } = world.limits[0] as RateLimit;
        // What is kept from those below `above`, less what is kept from it.
        const theirs = kept![above + 1]! - kept![above];
        let nowUs = 0;
        for (const { afterUs, cost, priority, waits } of requests) {
          nowUs += afterUs;
          const asked = Math.min(cost, burst - kept![LOW]);
          const below = Math.max(priority, above + 1) as 0 | 1 | 2;
          world.acquire(nowUs, { cost: asked, priority: below, ...(waits && WAITING) });
          if (theirs === 0) continue;
          const verdict = world
            .copy()
            .acquire(nowUs, { cost: theirs, priority: above as 0 | 1, returning: true });
          expect(verdict.granted).toBe(true);
          passed += 1;
        }
      }),
      { numRuns },
    );
    expect(passed).toBeGreaterThan(numRuns);
  });

  it('does not let the urgent stand in line: they pass work that was put aside', () => {
    const world = new World({ calls: perSecond(10, { burst: 10, by: 'shop', reserve: { high: 0.3 } }) });
    const keys = { shop: 'a' };
    expect(world.allows(0, { keys, cost: 7 })).toBe(true);
    const slots = [1, 2, 3].map(() => world.acquire(0, { ...WAITING, keys }).waitUs);
    expect(slots).toEqual([100_000, 200_000, 300_000]);
    expect(world.allows(250_000, { keys })).toBe(false);
    expect(world.acquire(250_000, { keys }).granted).toBe(false);
    expect(world.allows(0, { keys, priority: HIGH, cost: 3 })).toBe(true);
  });
});

describe('a request that waits', () => {
  it.each([
    ['low', 0, LOW],
    ['low', 9_999, LOW],
    ['low', 10_000, NORMAL],
    ['low', 20_000, HIGH],
    ['low', 3_600_000, HIGH],
    ['normal', 9_999, NORMAL],
    ['normal', 10_000, HIGH],
    [undefined, 0, NORMAL],
    ['high', 60_000, HIGH],
  ] as const)('%s for %i ms is of class %i', (priority, waitedMs, expected) => {
    expect(classOf(priority, waitedMs)).toBe(expected);
  });
});
