import { describe, expect, test } from 'vitest';
import type { Terms } from '../../../src/core/decide/ask.ts';
import type { Receipt } from '../../../src/core/decide/verdict.ts';
import { perSecond } from '../../../src/core/limits/rate.ts';
import { calls, type Make, MS, SECOND, started } from '../support/made.ts';
import { AT_ONCE, WHENEVER } from '../support/terms.ts';

/** Grants that start later, and those that are taken back before they do, in any store. */
export function reservationsContract(make: Make): void {
  describe('reservations', () => {
    test('start one after the other at the rate', async () => {
      const { reserve } = await started(make, calls);
      const waits: number[] = [];
      for (let made = 0; made < 8; made++) waits.push((await reserve(1)).waitUs);
      expect(waits).toEqual([0, 0, 0, 0, 0, 100 * MS, 200 * MS, 300 * MS]);
    });

    test('a wait as long as allowed passes, and one that would be longer takes nothing', async () => {
      const { acquire, refusal } = await started(make, calls);
      await acquire(5);
      const within = (maxWaitUs: number): Terms => ({ ...AT_ONCE, maxWaitUs });
      expect(await refusal(1, within(100 * MS - 1))).toMatchObject({ reason: 'rate', waitUs: 100 * MS });
      expect(await acquire(1, within(100 * MS))).toMatchObject({ granted: true, waitUs: 100 * MS });
    });

    test('a receipt says when its grant starts, on the clock of all receipts', async () => {
      const { reserve, advanceUs } = await started(make, calls);
      const first = await reserve(5);
      const second = await reserve(1);
      advanceUs(50 * MS);
      const third = await reserve(1);
      expect(second.receipt.startUs - first.receipt.startUs).toBe(100 * MS);
      expect(third.receipt.startUs - first.receipt.startUs).toBe(200 * MS);
    });

    test('a key that makes a request wait reserves nothing from a limit for all', async () => {
      const { acquire, refusal, remaining } = await started(make, {
        limits: { calls: perSecond(10, { burst: 5 }), shop: perSecond(1, { burst: 1, by: 'shop' }) },
      });
      await acquire(1, AT_ONCE, { shop: 'a' });
      expect(await refusal(1, WHENEVER, { shop: 'a' })).toMatchObject({ limit: 'shop', waitUs: SECOND });
      expect(await remaining({ keys: { shop: 'b' } })).toEqual([4, 1]);
    });

    test('limits by the same key reserve together', async () => {
      const { acquire, reserve } = await started(make, {
        limits: {
          second: perSecond(1, { burst: 1, by: 'shop' }),
          half: perSecond(2, { burst: 1, by: 'shop' }),
        },
      });
      await acquire(1, AT_ONCE, { shop: 'a' });
      expect(await reserve(1, { shop: 'a' })).toMatchObject({ waitUs: SECOND });
    });
  });

  describe('cancel', () => {
    test('newest first, a batch is given back whole', async () => {
      const { store, acquire, reserve } = await started(make, calls);
      await acquire(5);
      const batch: Receipt[] = [];
      for (const cost of [1, 3, 2, 1]) batch.push((await reserve(cost)).receipt);
      for (const receipt of batch.reverse()) expect(await store.cancel(receipt)).toBe(true);
      expect(await reserve(1)).toMatchObject({ waitUs: 100 * MS });
    });

    test('after a later grant nothing is given back', async () => {
      const { store, acquire, reserve } = await started(make, calls);
      await acquire(5);
      const early = await reserve(2);
      await reserve(1);
      expect(await store.cancel(early.receipt)).toBe(false);
      expect(await reserve(1)).toMatchObject({ waitUs: 400 * MS });
    });

    test('at its start and after it a grant is spent', async () => {
      const { store, acquire, reserve, advanceUs } = await started(make, calls);
      const atOnce = await reserve(1);
      expect(await store.cancel(atOnce.receipt)).toBe(false);
      await acquire(4);
      const later = await reserve(1);
      advanceUs(100 * MS);
      expect(await store.cancel(later.receipt)).toBe(false);
      expect(await reserve(1)).toMatchObject({ waitUs: 100 * MS });
    });

    test('a second cancel of the same grant gives back nothing', async () => {
      const { store, acquire, reserve } = await started(make, calls);
      await acquire(5);
      const { receipt } = await reserve(2);
      expect(await store.cancel(receipt)).toBe(true);
      expect(await store.cancel(receipt)).toBe(false);
      expect(await reserve(1)).toMatchObject({ waitUs: 100 * MS });
    });

    test('a bucket that was moved forward to a start is moved back', async () => {
      const { store, reserve, remaining } = await started(make, {
        limits: { slow: perSecond(1, { burst: 1 }), fast: perSecond(10, { burst: 5 }) },
      });
      await reserve(1);
      const { receipt } = await reserve(1);
      expect(await remaining()).toEqual([0, 0]);
      expect(await store.cancel(receipt)).toBe(true);
      expect(await remaining()).toEqual([0, 4]);
    });

    test('each bucket answers for itself: where something was granted since, its part is lost', async () => {
      const { store, acquire, reserve, peek } = await started(make, {
        limits: { one: perSecond(10, { burst: 5 }), two: perSecond(10, { burst: 5 }) },
      });
      await acquire(5);
      const { receipt } = await reserve(1);
      await reserve({ one: 1, two: 0 });
      expect(await store.cancel(receipt)).toBe(false);
      expect((await peek()).map(({ sight }) => sight.waitUs)).toEqual([300 * MS, 100 * MS]);
    });
  });
}
