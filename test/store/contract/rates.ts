import { describe, expect, test } from 'vitest';
import { perSecond } from '../../../src/core/limits/rate.ts';
import { type Make, MS, type Priority, SECOND, started } from '../support/made.ts';

const [HIGH, , LOW]: readonly Priority[] = [0, 1, 2];

/** What a rate limit may be besides, in any store. */
export function ratesContract(make: Make): void {
  describe('priority', () => {
    const ranked = () =>
      started(make, { limits: { calls: perSecond(10, { burst: 10, reserve: { high: 0.2, normal: 0.3 } }) } });

    test('some of the burst is kept for those above', async () => {
      const { ask } = await ranked();
      const take = async (priority: Priority) => {
        let taken = 0;
        while ((await ask({ terms: { priority } })).granted) taken++;
        return taken;
      };
      expect([await take(LOW!), await take(1), await take(HIGH!)]).toEqual([5, 3, 2]);
    });

    test('a grant ahead is given to those of high priority alone', async () => {
      const { ask } = await ranked();
      await ask({ cost: 10, terms: { priority: HIGH! } });
      const later = { maxWaitUs: SECOND };
      expect(await ask({ terms: { ...later, priority: 1 } })).toMatchObject({
        granted: false,
        reason: 'rate',
      });
      expect(await ask({ terms: { ...later, priority: HIGH! } })).toMatchObject({
        granted: true,
        waitUs: 100 * MS,
      });
    });

    test('those of high priority pass the line', async () => {
      const { ask, advanceUs } = await ranked();
      await ask({ cost: 10, terms: { priority: HIGH! } });
      await ask({ terms: { priority: 1, maxTurnUs: 60 * SECOND, turns: 'all' } });
      advanceUs(150 * MS);
      expect(await ask({ terms: { priority: 1 } })).toMatchObject({ granted: false, reason: 'line' });
      expect(await ask({ terms: { priority: HIGH! } })).toMatchObject({ granted: true });
    });
  });

  describe('a fair limit', () => {
    const fair = () =>
      started(make, {
        limits: { calls: perSecond(100, { burst: 20, by: 'tenant', fair: true, weights: { big: 3 } }) },
      });

    test('is one limit for all values', async () => {
      const { granted, sights } = await fair();
      await granted({ cost: 8, keys: { tenant: 'a' } });
      const [whole, share] = await sights({ keys: { tenant: 'b' } });
      expect(whole!.remaining).toBe(12);
      expect(share!.granted).toBe(0);
    });

    test('is shared by weight among those that want more than there is', async () => {
      const { ask, advanceUs } = await fair();
      const taken = { big: 0, small: 0 };
      for (let round = 0; round < 2_000; round++) {
        for (const tenant of ['big', 'small'] as const) {
          if ((await ask({ keys: { tenant } })).granted && round >= 1_000) taken[tenant]++;
        }
        advanceUs(5 * MS);
      }
      // Five seconds of 100/s, and the second half of them has nothing to do with how it began.
      expect(taken.big + taken.small).toBeGreaterThan(490);
      expect(taken.big / taken.small).toBeGreaterThan(2.7);
      expect(taken.big / taken.small).toBeLessThan(3.3);
    }, 30_000);

    test('is all of it for one who is alone', async () => {
      const { ask, advanceUs } = await fair();
      let taken = 0;
      for (let round = 0; round < 400; round++) {
        if ((await ask({ keys: { tenant: 'small' } })).granted && round >= 200) taken++;
        advanceUs(5 * MS);
      }
      expect(taken).toBeGreaterThanOrEqual(98);
    });

    test('names the share when that is what refuses', async () => {
      const { ask, refused } = await fair();
      for (let taken = 0; taken < 10; taken++) await ask({ keys: { tenant: 'b' } });
      while ((await ask({ keys: { tenant: 'a' } })).granted);
      expect(await refused({ keys: { tenant: 'a' } })).toMatchObject({ limit: 'calls' });
    });
  });

  describe('settle', () => {
    const calls = () => started(make, { limits: { calls: perSecond(10, { burst: 10 }) } });

    test('more than was taken is owed by whoever comes after', async () => {
      const { store, granted, refused } = await calls();
      await store.settle(await granted({ cost: 5 }), 25);
      expect(await refused()).toMatchObject({ waitUs: 1_600 * MS });
    });

    test('less gives back what has not drained since the start', async () => {
      const { store, granted, remaining, advanceUs } = await calls();
      const receipt = await granted({ cost: 8 });
      advanceUs(200 * MS);
      await store.settle(receipt, 0);
      expect(await remaining()).toEqual([10]);
      const second = await granted({ cost: 8 });
      advanceUs(600 * MS);
      await store.settle(second, 4);
      // 6 of the 8 have drained: 2 are left to give.
      expect(await remaining()).toEqual([10]);
    });

    test('the same changes nothing, and a limit that is not named stays as it is', async () => {
      const { store, granted, remaining } = await calls();
      const receipt = await granted({ cost: 5 });
      await store.settle(receipt, 5);
      await store.settle(receipt, {});
      expect(await remaining()).toEqual([5]);
    });
  });

  describe('as many as there are', () => {
    test('whole tokens, no more than asked, of each limit as many', async () => {
      const { store, request, remaining, advanceUs } = await started(make, {
        limits: {
          wide: perSecond(10, { burst: 10 }),
          narrow: perSecond(2, { burst: 4 }),
          day: { kind: 'window', max: 100, windowMs: 86_400_000 },
        },
      });
      expect(await store.atMost(request({}), 3, 1)).toBe(3);
      expect(await store.atMost(request({}), 9, 1)).toBe(1);
      expect(await store.atMost(request({}), 9, 1)).toBe(0);
      expect(await remaining()).toEqual([6, 0, 96]);
      // A token and a half: the half stays.
      advanceUs(750 * MS);
      expect(await store.atMost(request({}), 9, 1)).toBe(1);
      advanceUs(250 * MS);
      expect(await store.atMost(request({}), 9, 1)).toBe(1);
    });
  });

  describe('a cost above the burst', () => {
    const oversize = () =>
      started(make, { limits: { calls: perSecond(10, { burst: 5, oversize: 'debt' }) } });

    test('passes when the bucket is full, and leaves it owing', async () => {
      const { granted, refused, advanceUs } = await oversize();
      await granted({ cost: 50 });
      expect(await refused()).toMatchObject({ waitUs: 4_600 * MS });
      advanceUs(4_600 * MS);
      await granted();
      expect(await refused({ cost: 50 })).toMatchObject({ waitUs: 500 * MS });
    });

    test('is an error without', async () => {
      const { ask } = await started(make, { limits: { calls: perSecond(10, { burst: 5 }) } });
      await expect(ask({ cost: 6 })).rejects.toMatchObject({ code: 'FLYBALL_COST_EXCEEDS_BURST' });
    });
  });

  test('a strict limit is never above its rate in any period', async () => {
    const { ask, advanceUs } = await started(make, { limits: { calls: perSecond(20, { strict: true }) } });
    const starts: number[] = [];
    for (let ms = 0; ms < 4_000; ms += 10) {
      while ((await ask()).granted) starts.push(ms);
      advanceUs(10 * MS);
    }
    const within = (fromMs: number) => starts.filter((ms) => ms >= fromMs && ms < fromMs + 1_000).length;
    expect(Math.max(...starts.map(within))).toBeLessThanOrEqual(20);
    // The burst of 2, and 18 a second: what strictness costs.
    expect(starts.length).toBeGreaterThanOrEqual(4 * 18);
  });

  describe('a penalty', () => {
    const penal = () =>
      started(make, {
        limits: { calls: perSecond(10, { burst: 1, penalty: { afterMs: 1_000, share: 0.5, forMs: 2_000 } }) },
      });

    test('a bucket that is over its limit for long runs at a share of it, then recovers by itself', async () => {
      const { ask, sights, advanceUs } = await penal();
      const effective = async () => (await sights())[0]!.effective;
      const whole = await effective();
      // Four times what is allowed.
      for (let ms = 0; ms < 1_100; ms += 25) {
        await ask();
        advanceUs(25 * MS);
      }
      expect(await effective()).toBe(whole / 2);
      advanceUs(2_100 * MS);
      expect(await effective()).toBe(whole);
    });

    test('one that keeps to it has none', async () => {
      const { granted, sights, advanceUs } = await penal();
      const whole = (await sights())[0]!.effective;
      for (let taken = 0; taken < 30; taken++) {
        await granted();
        advanceUs(100 * MS);
      }
      expect((await sights())[0]!.effective).toBe(whole);
    });
  });

  describe('an adaptive rate', () => {
    const adaptive = () =>
      started(make, { limits: { calls: perSecond(100, { burst: 10, adaptive: { min: 1, max: 200 } }) } });
    const report = (startedUs: number) => ({
      startedUs,
      calls: 20,
      throttled: 4,
      failed: 0,
      latencySumUs: 0,
    });

    test('falls once for all calls that were granted before, and shows', async () => {
      const { store, granted, request, sights, advanceUs } = await adaptive();
      const { startUs } = await granted();
      const before = (await sights())[0]!.effective;
      await store.report(request({}), report(startUs));
      const after = (await sights())[0]!.effective;
      expect(after).toBe(before * 0.8);
      advanceUs(50 * MS);
      await store.report(request({}), report(startUs));
      expect((await sights())[0]!.effective).toBe(after);
      advanceUs(SECOND);
      const later = await granted();
      await store.report(request({}), report(later.startUs));
      expect((await sights())[0]!.effective).toBeLessThan(after);
    });

    test('is as slow as it says', async () => {
      const { store, granted, refused, request } = await adaptive();
      const { startUs } = await granted({ cost: 10 });
      await store.report(request({}), report(startUs));
      expect(await refused()).toMatchObject({ waitUs: 12_500 });
    });
  });

  test('values beyond maxKeys share one bucket', async () => {
    const { granted, remaining, advanceUs } = await started(make, {
      limits: { calls: perSecond(1, { burst: 5, by: 'shop', maxKeys: 2 }) },
    });
    for (const shop of ['a', 'b', 'c']) await granted({ cost: 2, keys: { shop } });
    expect(await remaining({ keys: { shop: 'd' } })).toEqual([3]);
    expect(await remaining({ keys: { shop: 'b' } })).toEqual([3]);
    advanceUs(4 * SECOND);
    await granted({ keys: { shop: 'c' } });
    expect(await remaining({ keys: { shop: 'd' } })).toEqual([5]);
  });
}
