import { describe, expect, it } from 'vitest';
import { perDay, perHour, perMinute, perSecond } from '../../../../src/core/limits/rate.ts';
import { excessOf, type Start } from '../../../support/ledger.ts';
import { limitOf, S, World, ZERO_US } from '../../../support/world.ts';
import { governed, startsOf } from '../../support/governed.ts';

/** Asks at each of the times, and tells when it was granted. */
function poll(world: World, fromUs: number, toUs: number, everyUs: number): Start[] {
  const starts: Start[] = [];
  for (let atUs = fromUs; atUs < toUs; atUs += everyUs)
    if (world.allows(atUs)) starts.push({ atUs, cost: 1 });
  return starts;
}

/** The most that started within any `lengthUs`, both ends included. */
function most(starts: readonly Start[], lengthUs: number): number {
  let first = 0;
  let found = 0;
  for (const [index, { atUs }] of starts.entries()) {
    while (atUs - starts[first]!.atUs > lengthUs) first += 1;
    found = Math.max(found, index - first + 1);
  }
  return found;
}

describe('in any second', () => {
  // https://github.com/OptimalBits/bull/issues/2777: of ten a second, eleven ran inside one second.
  it('no more than burst + rate start, at one instant no more than burst, and that much does', () => {
    for (const burst of [1, 2, 10]) {
      const starts = poll(new World({ calls: perSecond(10, { burst }) }), 0, 20 * S, 1_000);
      expect(most(starts, 1 * S)).toBe(burst + 10);
      expect(most(starts, 0.1 * S)).toBe(burst + 1);
      expect(excessOf(starts, limitOf(perSecond(10, { burst }))).worst).toBe(0n);
    }
  });

  // https://github.com/jhurliman/node-rate-limiter/issues/25, https://github.com/go-redis/redis_rate/issues/24,
  // https://github.com/mjpieters/aiolimiter/issues/298: a whole window's worth as burst is twice the rate in one window.
  it('a burst of a whole window lets twice the window through, as its numbers say', () => {
    const starts = poll(new World({ calls: { rate: 17, periodMs: 30_000, burst: 17 } }), 0, 300 * S, 10_000);
    expect(most(starts, 30 * S)).toBe(34);
    // With the burst that is the default, one more than the rate at most.
    const even = poll(new World({ calls: { rate: 17, periodMs: 30_000 } }), 0, 300 * S, 10_000);
    expect(most(even, 30 * S)).toBeLessThanOrEqual(18);
  });
});

describe('a burst', () => {
  // https://github.com/boinkor-net/governor/issues/11: it was off by one.
  it.each([1, 2, 3, 10, 100, 4_096])('of %d lets exactly that many pass at one instant', (burst) => {
    const world = new World({ calls: perSecond(1, { burst }) });
    for (let n = 0; n < burst; n++) expect(world.allows(0)).toBe(true);
    expect(world.acquire(0)).toMatchObject({ granted: false, waitUs: 1 * S });
    const whole = new World({ calls: perSecond(1, { burst }) });
    expect(whole.allows(0, { cost: burst })).toBe(true);
    expect(whole.allows(0)).toBe(false);
  });

  // https://github.com/AlaskanTuna/Rokabot/issues/149: a bucket of a minute's worth gave 29 of 15 a minute after idling.
  it('is small by default: of 15 a minute, 16 start in the worst one', () => {
    const world = new World({ calls: perMinute(15) });
    const starts = poll(world, 3_600 * S, 4_200 * S, 100_000);
    expect(most(starts, 60 * S)).toBe(16);
  });

  // https://github.com/a-j-wood/pv/pull/62: credit grew without bound.
  it.each([1, 60, 86_400, 10 * 366 * 86_400])('is all there is after %d s of idleness', (idle) => {
    const world = new World({ calls: perSecond(1_000, { burst: 7 }) });
    world.allows(0);
    for (let n = 0; n < 7; n++) expect(world.allows(idle * S)).toBe(true);
    expect(world.allows(idle * S)).toBe(false);
  });

  // https://github.com/uber-go/ratelimit/issues/119: after idling, one branch was always true and the rate without limit.
  it('comes once after an idle time, and then the rate', () => {
    const world = new World({ calls: perSecond(10, { burst: 4 }) });
    world.allows(0);
    const starts = poll(world, 100 * S, 110 * S, 500);
    expect(starts.filter(({ atUs }) => atUs < 100.1 * S).length).toBe(4);
    expect(starts.length).toBe(4 + 99);
  });

  // https://github.com/OptimalBits/bull/issues/1779: all started together, where each start was heavy.
  it('of 1 spaces starts evenly', () => {
    const world = new World({ calls: perSecond(4, { burst: 1 }) });
    const starts = Array.from({ length: 40 }, () => world.reserve(0).startUs);
    expect(starts).toEqual(Array.from({ length: 40 }, (_, n) => n * 0.25 * S));
  });
});

describe('a cold start', () => {
  // https://github.com/all-of-us/workbench/pull/5249: a hundred calls before anything was limited.
  // https://github.com/mjpieters/aiolimiter/pull/74: wanted, and refused, for after a deploy.
  it('has nothing to give but the rate', () => {
    const cold = new World({ calls: perMinute(4, { burst: 100 }) }, 0);
    expect(poll(cold, 0, 60 * S + 1, 100_000).length).toBe(4);
    const warm = new World({ calls: perMinute(4, { burst: 100 }) });
    expect(poll(warm, 0, 60 * S + 1, 100_000).length).toBe(104);
  });

  it('is over when its buckets have had time to fill, also for keys that are used for the first time', () => {
    const world = new World({ shop: perSecond(10, { burst: 20, by: 'shop' }) }, 0);
    expect(world.acquire(0, { keys: { shop: 'a' } })).toMatchObject({ granted: false, waitUs: 0.1 * S });
    expect(world.peek(1 * S, { keys: { shop: 'b' } })).toMatchObject([{ remaining: 10 }]);
    expect(world.peek(2 * S, { keys: { shop: 'c' } })).toMatchObject([{ remaining: 20 }]);
    expect(world.peek(900 * S, { keys: { shop: 'd' } })).toMatchObject([{ remaining: 20 }]);
  });
});

describe('under a backlog', () => {
  // https://github.com/OptimalBits/bull/issues/2683: of 50 in ten seconds, 250 to 280 a minute came, not 300.
  it('all of the rate is used', async () => {
    const { governor, clock } = governed({ calls: { rate: 50, periodMs: 10_000, burst: 1 } });
    const { starts, done } = startsOf(clock, Array.from({ length: 1_501 }), () => governor.wait());
    await clock.advance(300_000);
    await done;
    for (let minute = 0; minute < 5; minute++) {
      const within = starts.filter(({ atMs }) => atMs > minute * 60_000 && atMs <= (minute + 1) * 60_000);
      expect(within.length).toBe(300);
    }
  });

  // https://github.com/temporalio/temporal/pull/1910: rates below one were rounded to whole numbers.
  it.each([
    ['0.1 a second', perSecond(0.1), 10],
    ['0.3 a second', perSecond(0.3), 10 / 3],
    ['1 in an hour', perHour(1), 3_600],
    ['1 in a day', perDay(1), 86_400],
    ['0.001 in a day', perDay(0.001), 86_400_000],
    ['7 in an hour', perHour(7), 3_600 / 7],
  ])('of %s, each starts at its time, to the microsecond, for years', (_, options, everySeconds) => {
    const world = new World({ calls: { ...options, burst: 2 } });
    world.acquire(0, { cost: 2 });
    // A thousand of them, or ten years' worth; each is asked for at its time and a microsecond before.
    const count = Math.min(1_000, Math.floor((10 * 366 * 86_400) / everySeconds));
    for (let n = 1; n <= count; n++) {
      const dueUs = Math.ceil(Math.round(n * everySeconds * S * 1_000) / 1_000);
      expect(world.allows(dueUs - 1)).toBe(false);
      expect(world.allows(dueUs)).toBe(true);
    }
  });
});

// https://github.com/oban-bg/oban/issues/750: one a minute, and over midnight the next never ran. Only elapsed time counts
// here; there is no calendar in it. The same asks give the same answers wherever on the calendar they fall.
it.each([
  ['midnight', '2025-06-30T23:59:30Z'],
  ['the end of a year', '2025-12-31T23:59:30Z'],
  ['a leap second', '2016-12-31T23:59:30Z'],
  ['a leap day', '2028-02-28T23:59:30Z'],
  ['summer time in Berlin', '2025-03-30T00:59:30Z'],
  ['winter time in New York', '2025-11-02T05:59:30Z'],
  ['the end of 32 bits', '2038-01-19T03:13:37Z'],
  ['the year 2100', '2099-12-31T23:59:30Z'],
])('decides alike over %s', (_, date) => {
  const answers = (originUs: number) => {
    const world = new World({ calls: perMinute(1), daily: perDay(3, { burst: 3 }) });
    return [0, 1, 29, 30, 31, 59, 60, 61, 119, 120, 121, 180, 86_400, 172_800].map((second) => {
      const { granted, waitUs } = world.acquire(originUs + second * S);
      return [second, granted, waitUs];
    });
  };
  const originUs = Date.parse(date) * 1_000 - ZERO_US;
  expect(answers(originUs)).toEqual(answers(0));
  expect(answers(originUs).filter(([, granted]) => granted)).toEqual([
    [0, true, 0],
    [60, true, 0],
    [120, true, 0],
    [86_400, true, 0],
    [172_800, true, 0],
  ]);
});
