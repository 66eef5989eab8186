import { describe, expect, test } from 'vitest';
import { MAX_DEBT_UNITS } from '../../src/core/buckets/constants.ts';
import { horizonUs } from '../../src/core/buckets/rate/debt.ts';
import type { Verdict } from '../../src/core/decide/verdict.ts';
import { CostExceedsBurstError } from '../../src/core/errors.ts';
import type { LimitsOptions } from '../../src/core/limits/limit.ts';
import { perDay, perHour, perSecond } from '../../src/core/limits/rate.ts';
import { MAX_CAPACITY_UNITS } from '../../src/core/limits/rate-units.ts';
import { RedisStore } from '../../src/store/redis/redis-store.ts';
import { AT_ONCE, ask, NORMAL, WHENEVER } from '../store/support/terms.ts';
import { connect, uniqueName } from '../support/redis.ts';
import { rateLimits } from '../support/world.ts';
import { clientWithTime } from './support/injected-time.ts';

const START_US = 1_700_000_000_000_000;
const HOUR_US = 3_600_000_000;
const YEAR_US = 365 * 24 * HOUR_US;
const redis = connect();

function bucketOf(limits: LimitsOptions, startUs = START_US) {
  let nowUs = startUs;
  const name = uniqueName('extremes');
  const parsed = rateLimits(limits);
  const store = new RedisStore(
    { name, limits: parsed, coldStart: 'full' },
    clientWithTime(redis, () => nowUs),
  );
  return {
    limit: parsed[0]!,
    store,
    take: (cost: number, terms = AT_ONCE) => store.acquire(ask(cost), terms),
    at: (us: number) => {
      nowUs = startUs + us;
    },
    state: () => redis.hgetall(`flyball:{${name}}:limit:${parsed[0]!.name}`),
  };
}

const waited = ({ granted, waitUs }: Verdict) => ({ granted, waitUs });

const LIMITS: [string, LimitsOptions][] = [
  ['1 an hour, burst 1', { limit: perHour(1, { burst: 1 }) }],
  ['1 a day, the largest burst', { limit: perDay(1, { burst: Math.floor(MAX_CAPACITY_UNITS / 86_400e6) }) }],
  ['1 in 366 days', { limit: { rate: 1, periodMs: 366 * 86_400_000, burst: 1 } }],
  ['1,000 in 3 seconds', { limit: { rate: 1_000, periodMs: 3_000, burst: 7 } }],
  ['99,991 a day', { limit: perDay(99_991, { burst: 1_000 }) }],
  ['1,000,000 a second, burst 1', { limit: perSecond(1_000_000, { burst: 1 }) }],
  ['1,000,000 a second', { limit: perSecond(1_000_000) }],
  ['999,983 a second', { limit: perSecond(999_983, { burst: 2 ** 31 }) }],
  ['1,000,000,000 a second', { limit: perSecond(1_000_000_000, { burst: 1_000_000_000 }) }],
  ['1 a microsecond, the largest burst', { limit: perSecond(1_000_000, { burst: MAX_CAPACITY_UNITS }) }],
];

describe.for(LIMITS)('%s', ([, limits]) => {
  test('a cost of the burst passes once, and again not a microsecond too early', async () => {
    const { limit, take, at } = bucketOf(limits);
    const backUs = Math.ceil((limit.burst * limit.periodUs) / limit.rate);
    expect(waited(await take(limit.burst))).toEqual({ granted: true, waitUs: 0 });
    expect(waited(await take(limit.burst))).toEqual({ granted: false, waitUs: backUs });
    at(backUs - 1);
    expect(waited(await take(limit.burst))).toEqual({ granted: false, waitUs: 1 });
    at(backUs);
    expect(waited(await take(limit.burst))).toEqual({ granted: true, waitUs: 0 });
    const tokenUs = Math.ceil(limit.periodUs / limit.rate);
    expect(waited(await take(1))).toEqual({ granted: false, waitUs: tokenUs });
  });

  test('one token more than the burst is an error, and takes nothing', async () => {
    const { limit, take } = bucketOf(limits);
    await expect(take(limit.burst + 1, WHENEVER)).rejects.toBeInstanceOf(CostExceedsBurstError);
    expect(waited(await take(limit.burst))).toEqual({ granted: true, waitUs: 0 });
  });

  test('the burst in single steps is the burst: one token more is too much', async () => {
    const { limit, take } = bucketOf(limits);
    const single = Math.min(limit.burst, 500);
    if (limit.burst > single) await take(limit.burst - single);
    const verdicts = await Promise.all(Array.from({ length: single + 3 }, () => take(1)));
    expect(verdicts.filter(({ granted }) => granted)).toHaveLength(single);
  });

  test('reservations start when the tokens they need have come, to the microsecond', async () => {
    const { limit, take } = bucketOf(limits);
    await take(limit.burst);
    const costs = [1, 1, Math.min(limit.burst, 3)];
    const verdicts = await Promise.all(costs.map((cost) => take(cost, WHENEVER)));
    let tokens = 0;
    for (const [index, verdict] of verdicts.entries()) {
      tokens += costs[index]!;
      const waitUs = Math.ceil((tokens * limit.periodUs) / limit.rate);
      const debt = (limit.burst + tokens) * limit.periodUs;
      expect(waited(verdict)).toEqual({ granted: debt <= MAX_DEBT_UNITS, waitUs });
      if (!verdict.granted) expect(verdict.reason).toBe('horizon');
    }
  });
});

describe('near the horizon', () => {
  test('a start as far ahead as is exact is granted, and none beyond it', async () => {
    const { limit, take, state } = bucketOf({ calls: perSecond(1_000_000, { burst: MAX_CAPACITY_UNITS }) });
    await take(limit.burst);
    // Debt of 2^52 at the start: all that is exact.
    expect(waited(await take(limit.burst, WHENEVER))).toEqual({ granted: true, waitUs: MAX_CAPACITY_UNITS });
    expect(await state()).toMatchObject({ debt: `${MAX_DEBT_UNITS}`, granted: `${MAX_DEBT_UNITS}` });
    const refused = await take(1, WHENEVER);
    expect(refused).toMatchObject({ granted: false, reason: 'horizon', waitUs: MAX_CAPACITY_UNITS + 1 });
    expect(await state()).toMatchObject({ debt: `${MAX_DEBT_UNITS}`, granted: `${MAX_DEBT_UNITS}` });
  });

  test('an empty second limit is not pushed forward beyond what it can hold exactly', async () => {
    const limits = {
      slow: perDay(1, { burst: 100 }),
      fast: perSecond(1_000_000_000, { burst: 1_000_000_000 }),
    };
    const { store } = bucketOf(limits);
    const fast = rateLimits(limits)[1]!;
    const furthestUs = horizonUs(fast.rate, fast.periodUs);
    const take = (slow: number) => store.acquire(ask({ slow, fast: 1 }), WHENEVER);
    const day = 86_400_000_000;
    await store.acquire(ask({ slow: 100, fast: 0 }), AT_ONCE);
    const within = Math.floor(furthestUs / day);
    expect(within).toBeGreaterThan(40);
    expect(within).toBeLessThan(100);
    expect(await take(within)).toMatchObject({ granted: true, waitUs: within * day });
    const seen = () => store.peek(ask(), NORMAL);
    const before = await seen();
    expect(await take(100 - within)).toMatchObject({ granted: false, reason: 'horizon' });
    expect((await seen()).map(({ sight }) => sight.remaining)).toEqual(
      before.map(({ sight }) => sight.remaining),
    );
  });

  test('a reservation years ahead can be given back whole', async () => {
    const { limit, store, take, state } = bucketOf({ calls: perDay(1, { burst: 20_000 }) });
    await take(limit.burst);
    const before = await state();
    const far = await take(limit.burst, WHENEVER);
    expect(waited(far)).toEqual({ granted: true, waitUs: limit.burst * limit.periodUs });
    expect(far.granted && (await store.cancel(far.receipt))).toBe(true);
    // But for the latest start that was ever promised.
    expect(await state()).toEqual({ ...before, last: `${START_US + far.waitUs}` });
  });
});

describe('large numbers', () => {
  test.for([1e14 - 1, 1e14, 1e14 + 1, 1e15 - 1, 1e15, 1e15 + 1, 2 ** 50 + 1, 2 ** 51])(
    '%d comes through the state and the reply digit for digit',
    async (cost) => {
      const { store, take, state, at } = bucketOf({
        calls: perSecond(1_000_000, { burst: MAX_CAPACITY_UNITS }),
      });
      await take(MAX_CAPACITY_UNITS);
      const verdict = await take(cost, WHENEVER);
      const granted = MAX_CAPACITY_UNITS + cost;
      expect(waited(verdict)).toEqual({ granted: true, waitUs: cost });
      const receipt = verdict.granted ? verdict.receipt : undefined;
      expect(receipt).toMatchObject({
        startUs: START_US + cost,
        charges: [{ grantedAfter: granted, pushedUnits: 0 }],
      });
      expect(await state()).toMatchObject({ debt: `${granted}`, granted: `${granted}`, at: `${START_US}` });
      const [seen] = await store.peek(ask(), NORMAL);
      expect(seen?.sight).toMatchObject({ remaining: 0, waitUs: cost + 1, granted });
      at(1);
      expect(await store.cancel(receipt!)).toBe(true);
      expect(await state()).toMatchObject({ debt: `${MAX_CAPACITY_UNITS - 1}` });
    },
  );

  test('a clock of the year 2200 decides as exactly as today’s', async () => {
    const { take, at } = bucketOf({ calls: perSecond(3, { burst: 2 }) }, 7_258_118_400_000_000);
    await take(2);
    expect(waited(await take(1))).toEqual({ granted: false, waitUs: 333_334 });
    at(333_333);
    expect(waited(await take(1))).toEqual({ granted: false, waitUs: 1 });
    at(333_334);
    expect(waited(await take(1))).toEqual({ granted: true, waitUs: 0 });
  });
});

describe('in the long run', () => {
  test('1 an hour: one each hour for a fortnight, and none a microsecond too early', async () => {
    const { take, at } = bucketOf({ calls: perHour(1, { burst: 1 }) });
    await take(1);
    for (let hour = 1; hour <= 14 * 24; hour++) {
      at(hour * HOUR_US - 1);
      expect(waited(await take(1))).toEqual({ granted: false, waitUs: 1 });
      at(hour * HOUR_US);
      expect(waited(await take(1))).toEqual({ granted: true, waitUs: 0 });
    }
  });

  test('1 an hour with a bucket for a year: an idle year gives 8,760 and not one more', async () => {
    const { take, at } = bucketOf({ calls: perHour(1, { burst: 8_760 }) });
    await take(8_760);
    at(YEAR_US - 1);
    expect(waited(await take(8_760))).toEqual({ granted: false, waitUs: 1 });
    expect(waited(await take(8_759))).toEqual({ granted: true, waitUs: 0 });
    at(YEAR_US);
    expect(waited(await take(1))).toEqual({ granted: true, waitUs: 0 });
    expect(waited(await take(1))).toEqual({ granted: false, waitUs: HOUR_US });
  });

  test.for([1_000_000, 999_983, 700_001])(
    'at %d a second 100,000 requests in 100 steps are granted what the rate allows, exactly',
    async (rate) => {
      const { take, at } = bucketOf({ calls: perSecond(rate, { burst: 1_000 }) });
      await take(1_000);
      let elapsedUs = 0;
      let granted = 0;
      for (let step = 0; step < 100; step++) {
        // Never so long that the bucket is full, and never a multiple of anything.
        elapsedUs += 1 + ((step * 617 + 311) % 990);
        at(elapsedUs);
        const verdicts = await Promise.all(Array.from({ length: 1_000 }, () => take(1)));
        granted += verdicts.filter((verdict) => verdict.granted).length;
        expect(granted).toBe(Number((BigInt(rate) * BigInt(elapsedUs)) / 1_000_000n));
      }
      expect(granted).toBeGreaterThan(30_000);
    },
  );
});
