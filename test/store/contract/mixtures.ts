import { describe, expect, test } from 'vitest';
import { perSecond } from '../../../src/core/limits/rate.ts';
import { type Make, MS, SECOND, slotOf, started } from '../support/made.ts';

/** Limits of several kinds in one request, in any store. */
export function mixturesContract(make: Make): void {
  const limits = {
    calls: perSecond(10, { burst: 5 }),
    shop: perSecond(10, { burst: 3, by: 'shop' }),
    minute: { kind: 'window' as const, max: 6, windowMs: 60_000, mode: 'log' as const },
    work: { kind: 'concurrency' as const, max: 2 },
  };
  const mixed = () => started(make, { limits });

  describe('limits of several kinds', () => {
    test('are all charged or none is, whichever refuses', async () => {
      const { granted, refused, remaining, advanceUs, store } = await mixed();
      const first = await granted({ cost: { calls: 1, shop: 3, minute: 1, work: 1 }, holder: 'a' });
      expect(await remaining()).toEqual([4, 0, 5, 1]);
      expect(await refused({ holder: 'b' })).toMatchObject({ limit: 'shop', reason: 'rate' });
      advanceUs(400 * MS);
      await granted({ cost: { shop: 1 }, holder: 'b' });
      expect(await refused({ holder: 'c' })).toMatchObject({ limit: 'work', reason: 'concurrency' });
      expect(await remaining()).toEqual([4, 2, 4, 0]);
      await store.release(slotOf(first));
      expect(await refused({ cost: { calls: 1, shop: 0, minute: 5, work: 1 }, holder: 'c' })).toMatchObject({
        limit: 'minute',
        reason: 'window',
      });
      expect(await remaining()).toEqual([4, 2, 4, 1]);
    });

    test('wait as long as the slowest, and name it', async () => {
      const { granted, refused } = await mixed();
      await granted({ cost: { calls: 5, shop: 3, minute: 6, work: 0 } });
      expect(await refused({ holder: 'a' })).toMatchObject({ limit: 'minute', waitUs: 60 * SECOND });
    });

    test('with slots among them start now or not at all', async () => {
      const { granted, ask } = await mixed();
      await granted({ cost: 5, holder: 'a', keys: { shop: 'other' } }).catch(() =>
        granted({ cost: { calls: 5, work: 0, shop: 0 } }),
      );
      const later = { maxWaitUs: Number.POSITIVE_INFINITY };
      expect(await ask({ holder: 'b', terms: later })).toMatchObject({ granted: false, reason: 'rate' });
      expect(await ask({ cost: { work: 0 }, terms: later })).toMatchObject({ granted: true });
    });

    test('a forced grant takes of all, whatever they hold', async () => {
      const { store, request, remaining, refused } = await mixed();
      for (let forced = 0; forced < 7; forced++) {
        expect(await store.force(request({ holder: `${forced}` }))).not.toBeNull();
      }
      expect(await remaining()).toEqual([0, 0, 0, 0]);
      expect(await refused({ cost: { calls: 1, shop: 0, minute: 0, work: 0 } })).toMatchObject({
        waitUs: 300 * MS,
      });
    });

    test('a settled grant is corrected in each but for its slot', async () => {
      const { store, granted, remaining } = await mixed();
      const receipt = await granted({ cost: 2, holder: 'a' });
      await store.settle(receipt, 3);
      expect(await remaining()).toEqual([2, 0, 3, 1]);
      await store.settle(receipt, { calls: 0 });
      expect(await remaining()).toEqual([4, 0, 3, 1]);
    });

    test('a cancelled one is given back by each, as far as it can be', async () => {
      const { store, granted, remaining } = await started(make, {
        limits: { calls: limits.calls, minute: { kind: 'window', max: 9, windowMs: 60_000 } },
      });
      await granted({ cost: 5 });
      const ahead = await granted({ cost: 3, terms: { maxWaitUs: SECOND } });
      expect(await remaining()).toEqual([0, 1]);
      expect(await store.cancel(ahead)).toBe(true);
      expect(await remaining()).toEqual([0, 4]);
    });
  });
}
