import { describe, expect, test } from 'vitest';
import type { WindowLimitOptions } from '../../../src/core/limits/window.ts';
import { type Make, MS, SECOND, started } from '../support/made.ts';

type Mode = WindowLimitOptions['mode'];

/** Windows, in any store. */
export function windowsContract(make: Make): void {
  const window = (mode: Mode, options: Partial<WindowLimitOptions> = {}) =>
    started(make, {
      limits: { calls: { kind: 'window', max: 5, windowMs: 1_000, mode, ...options } } as never,
    });

  describe.for<Mode>(['fixed', 'sliding', 'log'])('a window, %s', (mode) => {
    test('lets all of it pass at once and no more', async () => {
      const { ask, refused, remaining } = await window(mode);
      expect(await ask({ cost: 5 })).toMatchObject({ granted: true, waitUs: 0 });
      expect(await remaining()).toEqual([0]);
      expect(await refused()).toMatchObject({ limit: 'calls', reason: 'window', hasTurn: false, by: null });
    });

    test('says when there is room, to the microsecond', async () => {
      const { granted, refused, ask, advanceUs } = await window(mode);
      await granted({ cost: 3 });
      advanceUs(130 * MS);
      await granted({ cost: 2 });
      for (const cost of [1, 3, 4, 5]) {
        const { waitUs } = await refused({ cost });
        advanceUs(waitUs - 1);
        expect(await refused({ cost })).toMatchObject({ waitUs: 1 });
        advanceUs(1);
        expect(await ask({ cost })).toMatchObject({ granted: true });
        // Anew: all has left.
        advanceUs(3 * SECOND);
        await granted({ cost: 3 });
        advanceUs(130 * MS);
        await granted({ cost: 2 });
      }
    });

    test('gives no grants ahead; work that waits has its place in line', async () => {
      const { granted, refused } = await window(mode);
      await granted({ cost: 5 });
      expect(await refused({ terms: { maxWaitUs: 60 * SECOND } })).toMatchObject({ reason: 'window' });
      const slots = { terms: { maxTurnUs: 60 * SECOND, turns: 'all' as const } };
      const [first, second] = [await refused(slots), await refused(slots)];
      expect([first.hasTurn, second.hasTurn]).toEqual([true, true]);
      // A fifth of a window each, in the mean.
      expect(second.waitUs - first.waitUs).toBe(200 * MS);
    });

    test('takes what was not used out again, where it counts it, and adds what was used besides', async () => {
      const { store, granted, remaining } = await window(mode);
      const receipt = await granted({ cost: 4 });
      await store.settle(receipt, 1);
      expect(await remaining()).toEqual([mode === 'log' ? 1 : 4]);
      await store.settle(await granted({ cost: 1 }), 7);
      expect(await remaining()).toEqual([0]);
    });

    test('each value has its own', async () => {
      const { granted, remaining } = await window(mode, { by: 'shop' });
      await granted({ cost: 5, keys: { shop: 'a' } });
      expect(await remaining({ keys: { shop: 'a' } })).toEqual([0]);
      expect(await remaining({ keys: { shop: 'b' } })).toEqual([5]);
      expect(await remaining()).toEqual([5]);
    });

    test('a clock that steps back opens none again', async () => {
      const { granted, refused, advanceUs } = await window(mode);
      await granted({ cost: 5 });
      const { waitUs } = await refused();
      advanceUs(-400 * MS);
      expect(await refused()).toMatchObject({ waitUs: waitUs + 400 * MS });
    });
  });

  test('a fixed window begins with its first use and ends all at once', async () => {
    const { granted, remaining, advanceUs } = await window('fixed');
    advanceUs(700 * MS);
    await granted({ cost: 1 });
    advanceUs(999 * MS + 999);
    expect(await remaining()).toEqual([4]);
    advanceUs(1);
    expect(await remaining()).toEqual([5]);
  });

  test('an aligned one at whole multiples of its length', async () => {
    const { granted, refused, advanceUs, ask } = await window('fixed', { aligned: true });
    await granted({ cost: 5 });
    const { waitUs } = await refused();
    expect(waitUs).toBeLessThanOrEqual(SECOND);
    advanceUs(waitUs + 250 * MS);
    expect(await ask({ cost: 5 })).toMatchObject({ granted: true });
    expect(await refused()).toMatchObject({ waitUs: 750 * MS });
  });

  test('a sliding one counts the oldest cell by the share of it that is still within', async () => {
    const { granted, refused, remaining, advanceUs } = await window('sliding', { cells: 2 });
    // To the beginning of a cell of 500 ms, wherever the clock stands: there a full cell has two whole cells to go.
    await granted({ cost: 5 });
    const { waitUs } = await refused({ cost: 5 });
    advanceUs(waitUs);
    await granted({ cost: 4 });
    advanceUs(SECOND + 250 * MS);
    expect(await remaining()).toEqual([3]);
    advanceUs(250 * MS);
    expect(await remaining()).toEqual([5]);
  });

  test('a log lets each grant go exactly a window after it', async () => {
    const { granted, remaining, advanceUs } = await window('log');
    await granted({ cost: 2 });
    advanceUs(300 * MS);
    await granted({ cost: 3 });
    advanceUs(700 * MS - 1);
    expect(await remaining()).toEqual([0]);
    advanceUs(1);
    expect(await remaining()).toEqual([2]);
    advanceUs(300 * MS);
    expect(await remaining()).toEqual([5]);
  });

  test('one for all values beyond maxKeys, until it is at rest', async () => {
    const { granted, remaining, advanceUs } = await window('fixed', { by: 'shop', maxKeys: 2 });
    for (const shop of ['a', 'b', 'c']) await granted({ cost: 2, keys: { shop } });
    expect(await remaining({ keys: { shop: 'd' } })).toEqual([3]);
    await granted({ cost: 3, keys: { shop: 'd' } });
    expect(await remaining({ keys: { shop: 'c' } })).toEqual([0]);
    expect(await remaining({ keys: { shop: 'a' } })).toEqual([3]);
    advanceUs(3 * SECOND);
    await granted({ cost: 1, keys: { shop: 'c' } });
    expect(await remaining({ keys: { shop: 'd' } })).toEqual([5]);
    expect(await remaining({ keys: { shop: 'c' } })).toEqual([4]);
  });
}
