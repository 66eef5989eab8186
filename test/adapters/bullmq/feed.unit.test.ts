import fc from 'fast-check';
import { perHour, perSecond } from 'flyball';
import { beforeEach, describe, expect, test, vi } from 'vitest';
import { Feed } from '../../../src/adapters/bullmq/fetch/feed.ts';
import { Fleet, type FleetOptions, waitsMs } from './feed-simulator.ts';

vi.mock('bullmq', async (original) => ({
  ...(await original<object>()),
  Queue: (await import('../../support/bullmq-worker.ts')).OpenedQueue,
}));

// The gates open at times of their own; the same ones in each run.
beforeEach(() => {
  let seed = 42;
  vi.spyOn(Math, 'random').mockImplementation(() => {
    seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31;
    return seed / 2 ** 31;
  });
  return () => vi.restoreAllMocks();
});

const steady = (rate: number, serviceMs: number, fleet: Omit<FleetOptions, 'limits' | 'backlog'>) =>
  new Fleet({
    ...fleet,
    limits: { calls: perSecond(rate, { burst: Math.max(1, Math.floor(rate / 10)) }) },
    backlog: () => ({ serviceMs }),
  });

/**
 * The most starts a job. With more workers than the limit feeds in a second, most gates are shut most of the time, and
 * each time that one opens it may fetch a job too many.
 */
const mostStarts = (rate: number, workers: number): number => (workers > rate ? 1.2 : 1.1);

/** Long enough for some 200 jobs, and at least 2 s. */
const spanMs = (rate: number): number => Math.min(60_000, Math.max(2_000, 200_000 / rate));

function expectWithinBounds({ seen, concurrencies }: Fleet, concurrency: number): void {
  expect(seen.inside).toBeLessThanOrEqual(concurrency);
  expect(concurrencies.least).toBeGreaterThanOrEqual(1);
  expect(concurrencies.most).toBeLessThanOrEqual(concurrency);
  expect(seen.least).toBe(0);
}

describe('a fleet with a long backlog reaches its limit and refuses hardly a job', () => {
  test.each([
    [1, 1, 1, 10],
    [1, 1, 4, 10],
    [1, 1, 16, 10],
    [1, 3_000, 4, 10],
    [1, 30_000, 4, 20],
    [5, 1, 1, 50],
    [5, 1, 16, 50],
    [20, 5, 4, 50],
    [20, 500, 16, 50],
    [20, 30_000, 4, 250],
    [60, 3_000, 4, 100],
    [100, 1, 1, 50],
    [100, 500, 4, 50],
    [200, 5, 4, 50],
    [200, 5, 16, 50],
    [200, 1_000, 4, 100],
    [1_000, 1, 1, 50],
    [1_000, 20, 4, 50],
    [1_000, 100, 16, 50],
    [5_000, 1, 16, 50],
    [5_000, 10, 16, 50],
  ])('%i/s, jobs of %i ms, %i workers of concurrency %i', async (rate, serviceMs, workers, concurrency) => {
    const fleet = steady(rate, serviceMs, { workers, concurrency });
    await fleet.run((rate < 1_000 ? 4_000 : 2_000) + serviceMs);
    const { tokensPerSecond, startsPerJob } = await fleet.measure(spanMs(rate));
    expect(tokensPerSecond / rate).toBeGreaterThanOrEqual(0.98);
    expect(tokensPerSecond / rate).toBeLessThanOrEqual(1.02 + 1 / rate);
    expect(startsPerJob).toBeLessThanOrEqual(mostStarts(rate, workers));
    expectWithinBounds(fleet, concurrency);
  });

  test('at any rate, with any service time, any number of workers and any weights', async () => {
    const logarithmic = (min: number, max: number) =>
      fc
        .noBias(fc.integer({ min: 0, max: 1_000 }))
        .map((part) => Math.round(min * (max / min) ** (part / 1_000)));
    await fc.assert(
      fc.asyncProperty(
        logarithmic(1, 2_000),
        logarithmic(1, 30_000),
        fc.integer({ min: 1, max: 16 }),
        fc.integer({ min: 1, max: 5 }),
        logarithmic(300, 5_000),
        async (rate, serviceMs, workers, largest, maxHoldMs) => {
          // Enough of them for the jobs that run at a time, and some to wait.
          const concurrency = Math.ceil((1.3 * rate * serviceMs) / 1_000 / workers) + 20;
          fc.pre(concurrency <= 1_000 && rate * (spanMs(rate) + serviceMs) <= 20_000_000);
          let n = 0;
          const fleet = new Fleet({
            workers,
            concurrency,
            govern: { maxHoldMs },
            limits: { calls: perSecond(rate, { burst: Math.max(largest, Math.floor(rate / 10)) }) },
            backlog: () => ({ serviceMs, cost: 1 + (n++ % largest) }),
          });
          await fleet.run(6_000 + maxHoldMs + serviceMs);
          const { tokensPerSecond, startsPerJob } = await fleet.measure(spanMs(rate));
          // A single worker whose jobs end in bunches can settle at nine tenths (170/s, jobs of 346 ms); the cases above, and
          // fleets, reach 0.98.
          expect(tokensPerSecond / rate).toBeGreaterThanOrEqual(0.85);
          // A job that costs more than the one before it may have to wait for longer than was known when it was fetched.
          const holdsTwo = maxHoldMs >= (2_000 * largest) / rate;
          if (holdsTwo) expect(startsPerJob).toBeLessThanOrEqual(mostStarts(rate, workers));
          expectWithinBounds(fleet, concurrency);
        },
      ),
      { numRuns: 20 },
    );
  }, 60_000);
});

describe('a fleet follows', () => {
  test.each([
    [100, 1_000, 5],
    [1_000, 100, 5],
    [10, 100, 5],
    [100, 10, 5],
    [100, 1_000, 300],
    [1_000, 100, 300],
    [5, 50, 20],
    [50, 5, 20],
  ])('a rate changed from %i/s to %i/s, jobs of %i ms', async (before, after, serviceMs) => {
    const concurrency = 100;
    const fleet = steady(before, serviceMs, { workers: 4, concurrency });
    await fleet.run(8_000);
    const burst = Math.max(1, Math.floor(before / 10));
    fleet.setLimits({ calls: perSecond(after, { burst }) });
    await fleet.run(5_000);
    const { tokensPerSecond, startsPerJob } = await fleet.measure(spanMs(after));
    expect(tokensPerSecond / after).toBeGreaterThanOrEqual(0.98);
    expect(startsPerJob).toBeLessThanOrEqual(1.1);
    expectWithinBounds(fleet, concurrency);
  });

  test('a pause of 20 s, with no fetch, and reaches the limit again after it', async () => {
    const fleet = steady(100, 20, { workers: 4, concurrency: 50 });
    await fleet.run(5_000);
    // Debt for 20 s, as a pause or someone else's forced calls make it.
    for (let n = 0; n < 200; n++) await fleet.call((governor) => governor.forceN(10));
    await fleet.run(2_000);
    const paused = await fleet.measure(15_000);
    expect(paused.starts.length).toBe(0);
    expect(fleet.states.every(({ gate, held }) => gate === 'shut' && held === 0)).toBe(true);
    const refusedBefore = fleet.refusals;
    await fleet.run(4_000);
    const { tokensPerSecond, startsPerJob } = await fleet.measure(4_000);
    expect(tokensPerSecond / 100).toBeGreaterThanOrEqual(0.98);
    expect(startsPerJob).toBeLessThanOrEqual(1.1);
    // Those that were held when it began; reopening costs a few.
    expect(refusedBefore).toBeLessThanOrEqual(4 * 50);
    expect(fleet.refusals - refusedBefore).toBeLessThanOrEqual(20);
    expectWithinBounds(fleet, 50);
  });

  test('a limit that is near zero for a minute and raised again', async () => {
    const fleet = steady(100, 20, { workers: 4, concurrency: 50 });
    await fleet.run(5_000);
    fleet.setLimits({ calls: perHour(1, { burst: 10 }) });
    await fleet.run(60_000);
    fleet.setLimits({ calls: perSecond(100, { burst: 10 }) });
    await fleet.run(3_000);
    const { tokensPerSecond } = await fleet.measure(4_000);
    expect(tokensPerSecond / 100).toBeGreaterThanOrEqual(0.98);
  });

  test('an uneven producer: under the limit each job starts at once', async () => {
    const fleet = new Fleet({
      workers: 4,
      concurrency: 20,
      limits: { calls: perSecond(100, { burst: 20 }) },
    });
    for (let second = 0; second < 20; second++) {
      // A handful, then silence.
      for (let n = 0; n < 15; n++) fleet.queue.add({ serviceMs: 50 });
      await fleet.run(second % 5 === 4 ? 5_000 : 400);
    }
    expect(fleet.starts.length).toBe(300);
    expect(waitsMs(fleet.starts).at(-1)).toBeLessThanOrEqual(200);
    expect(fleet.refusals).toBe(0);
  });

  test('a backlog after an idle time without fetching all of it', async () => {
    const fleet = new Fleet({ workers: 2, concurrency: 100, limits: { calls: perSecond(10, { burst: 5 }) } });
    for (let n = 0; n < 50; n++) {
      fleet.queue.add({ serviceMs: 5 });
      await fleet.run(150);
    }
    for (let n = 0; n < 200; n++) fleet.queue.add({ serviceMs: 5 });
    const { tokensPerSecond, startsPerJob } = await fleet.measure(15_000);
    expect(tokensPerSecond / 10).toBeGreaterThanOrEqual(0.98);
    expect(startsPerJob).toBeLessThanOrEqual(1.1);
  });
});

describe('a flood of one key', () => {
  const flood = (limits: FleetOptions['limits'], workers: number, concurrency: number) => {
    const fleet = new Fleet({ workers, concurrency, limits });
    for (let n = 0; n < 2_000; n++) fleet.queue.add({ serviceMs: 5, key: 'hot' });
    return fleet;
  };

  test.each([
    [1, 2],
    [1, 10],
    [4, 10],
    [4, 50],
    [16, 4],
  ])('starves no other key: %i workers of concurrency %i', async (workers, concurrency) => {
    const fleet = flood(
      { calls: perSecond(500, { burst: 50 }), shop: perSecond(20, { burst: 2, by: 'shop' }) },
      workers,
      concurrency,
    );
    // Twenty others ask for a quarter of what they may have each.
    for (let tick = 0; tick < 100; tick++) {
      for (let shop = tick % 4; shop < 20; shop += 4) fleet.queue.add({ serviceMs: 5, key: `shop-${shop}` });
      await fleet.run(50);
    }
    await fleet.run(3_000);
    const others = fleet.starts.filter(({ job }) => job.data.key !== 'hot');
    const hot = fleet.starts.length - others.length;
    const waitedMs = waitsMs(others);
    expect(others.length).toBe(500);
    expect(waitedMs.at(-1)).toBeLessThanOrEqual(2_000 + 1_000);
    expect(waitedMs[250]).toBeLessThanOrEqual(500);
    // A worker of two can have but one job of the hot key wait for its slot.
    expect(hot / 8).toBeGreaterThanOrEqual(20 * (concurrency > 2 ? 0.95 : 0.8));
    expect(hot / 8).toBeLessThanOrEqual(20 * 1.02 + 0.5);
    expectWithinBounds(fleet, concurrency);
  });

  test('starves no other key where keys are the only limit', async () => {
    const fleet = flood({ shop: perSecond(20, { burst: 2, by: 'shop' }) }, 1, 10);
    await fleet.run(100);
    for (let n = 0; n < 5; n++) fleet.queue.add({ serviceMs: 5, key: 'other' });
    await fleet.run(5_000);
    const others = fleet.starts.filter(({ job }) => job.data.key === 'other');
    expect(others.length).toBe(5);
    expect(waitsMs(others).at(-1)).toBeLessThanOrEqual(3_000);
  });
});

describe('Feed', () => {
  type Step =
    | {
        do: 'arrived' | 'refused' | 'reopened' | 'stepsNearby' | 'stepsBack' | 'started' | 'ended' | 'left';
      }
    | { do: 'granted'; waitMs: number; nextMs: number }
    | { do: 'setMax'; max: number };
  const step: fc.Arbitrary<Step> = fc.oneof(
    { weight: 4, arbitrary: fc.constant({ do: 'arrived' as const }) },
    {
      weight: 8,
      arbitrary: fc.record({
        do: fc.constantFrom('refused', 'reopened', 'stepsNearby', 'stepsBack', 'started', 'ended', 'left'),
      }),
    },
    {
      weight: 4,
      arbitrary: fc.record({
        do: fc.constant('granted' as const),
        waitMs: fc.oneof(fc.constant(0), fc.double({ min: 0, max: 5_000, noNaN: true })),
        nextMs: fc.double({ min: 0, max: 10_000, noNaN: true }),
      }),
    },
    {
      weight: 1,
      arbitrary: fc.record({ do: fc.constant('setMax' as const), max: fc.integer({ min: 1, max: 500 }) }),
    },
  );

  test('counts its jobs, and asks for 1 to the user’s maximum, whatever happens', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 500 }),
        fc.integer({ min: 1, max: 60_000 }),
        fc.array(step, { maxLength: 300 }),
        (first, maxHoldMs, steps) => {
          let max = first;
          const feed = new Feed(max, maxHoldMs);
          const here = { held: 0, nearby: 0, running: 0 };
          const move = (from: keyof typeof here | null, to: keyof typeof here | null): boolean => {
            if (from !== null && here[from] === 0) return false;
            if (from !== null) here[from] -= 1;
            if (to !== null) here[to] += 1;
            return true;
          };
          for (const each of steps) {
            if (each.do === 'arrived' && move(null, 'held')) feed.arrived();
            if (each.do === 'stepsNearby' && move('held', 'nearby')) feed.stepsNearby();
            if (each.do === 'stepsBack' && move('nearby', 'held')) feed.stepsBack();
            if (each.do === 'started' && move('held', 'running')) feed.started();
            if (each.do === 'ended' && move('running', null)) feed.ended();
            if (each.do === 'left' && move('held', null)) feed.left();
            if (each.do === 'refused' && here.held > 0) feed.refused();
            if (each.do === 'reopened') feed.reopened();
            if (each.do === 'granted' && here.held > 0)
              feed.granted(each.waitMs, Math.max(each.waitMs, each.nextMs));
            if (each.do === 'setMax') {
              max = each.max;
              feed.setMax(max);
            }
            expect({ held: feed.held, nearby: feed.nearby, running: feed.running }).toEqual(here);
            expect(feed.inside).toBe(here.held + here.nearby + here.running);
            expect(Number.isInteger(feed.concurrency)).toBe(true);
            expect(feed.concurrency).toBeGreaterThanOrEqual(1);
            expect(feed.concurrency).toBeLessThanOrEqual(max);
            expect(feed.target).toBeGreaterThanOrEqual(0);
            expect(feed.target).toBeLessThanOrEqual(max);
            if (each.do === 'refused' && here.held > 0) expect(feed.open).toBe(false);
            if (each.do === 'reopened') expect(feed.open).toBe(true);
          }
        },
      ),
      { numRuns: 300 },
    );
  });

  test('halves once for all refusals until the gate opens again', () => {
    const feed = new Feed(100, 1_000);
    for (let n = 0; n < 100; n++) {
      for (let m = feed.inside; m < feed.concurrency; m++) feed.arrived();
      feed.granted(0, 10);
    }
    const before = feed.target;
    for (let n = 0; n < 10; n++) feed.refused();
    expect(feed.target).toBe(before / 2);
    expect(feed.open).toBe(false);
    feed.reopened();
    feed.refused();
    expect(feed.target).toBe(before / 4);
  });

  test('fetches as many jobs beside a hundred that run as beside none', () => {
    const feed = new Feed(200, 1_000);
    const alone = feed.concurrency;
    for (let n = 0; n < 100; n++) {
      feed.arrived();
      feed.started();
    }
    expect(feed.concurrency - feed.running).toBe(alone);
  });

  test('falls to a few jobs with slots to spare, not to one', () => {
    const feed = new Feed(100, 1_000);
    for (let n = 0; n < 60; n++) {
      for (let m = feed.inside; m < feed.concurrency; m++) feed.arrived();
      feed.granted(0, 10);
    }
    while (feed.held > 0) feed.left();
    for (let n = 0; n < 200; n++) {
      feed.arrived();
      feed.granted(0, 10);
      feed.left();
    }
    expect(feed.target).toBe(4);
  });
});

test('deferred jobs make the feed look at more of those behind them, up to a few', () => {
  const feed = new Feed(50, 1_000);
  const targets = Array.from({ length: 40 }, () => {
    feed.arrived();
    feed.deferred();
    feed.left();
    return feed.target;
  });
  expect(targets.slice(0, 3)).toEqual([2, 3, 4]);
  expect(Math.max(...targets)).toBe(16);
});
