import { describe, expect, test } from 'vitest';
import type { ConcurrencyLimitOptions } from '../../../src/core/limits/concurrency.ts';
import type { StoreMessage } from '../../../src/core/ports/messages.ts';
import { type Make, MS, SECOND, slotOf, started } from '../support/made.ts';
import { eventually } from '../support/stores.ts';

const QUEUES = { queue: true };

/** Slots, in any store. */
export function slotsContract(make: Make): void {
  const slots = (options: Partial<ConcurrencyLimitOptions> = {}) =>
    started(make, { limits: { work: { kind: 'concurrency', max: 3, leaseMs: 1_000, ...options } } });

  /** As {@link slots}, with the holders that were woken. */
  async function listening(options?: Partial<ConcurrencyLimitOptions>) {
    const made = await slots(options);
    const woken: string[] = [];
    made.store.subscribe((message: StoreMessage) => {
      if (message.kind === 'wake') woken.push(message.holder);
    });
    await made.heard?.();
    return { ...made, woken };
  }

  describe('slots', () => {
    test('as many as there are, by their weight', async () => {
      const { granted, refused, remaining } = await slots();
      await granted({ cost: { work: 2 }, holder: 'a' });
      expect(await remaining()).toEqual([1]);
      expect(await refused({ cost: { work: 2 }, holder: 'b' })).toMatchObject({
        reason: 'concurrency',
        limit: 'work',
      });
      await granted({ holder: 'c' });
      expect(await remaining()).toEqual([0]);
    });

    test('a number is tokens: it takes one slot', async () => {
      const { granted, remaining } = await slots();
      await granted({ cost: 500, holder: 'a' });
      expect(await remaining()).toEqual([2]);
    });

    test('are given back once', async () => {
      const { store, granted, remaining } = await slots();
      const slot = slotOf(await granted({ cost: { work: 3 }, holder: 'a' }));
      expect(await store.release(slot)).toBe(true);
      expect(await store.release(slot)).toBe(false);
      expect(await remaining()).toEqual([3]);
    });

    test('lapse without being renewed, and last a lease longer with', async () => {
      const { store, granted, refused, remaining, advanceUs } = await slots();
      const slot = slotOf(await granted({ cost: { work: 3 }, holder: 'a' }));
      advanceUs(600 * MS);
      expect(await store.renew(slot)).toBeGreaterThan(0);
      advanceUs(SECOND - 1);
      expect(await refused({ holder: 'b' })).toMatchObject({ waitUs: 1 });
      advanceUs(1);
      expect(await remaining()).toEqual([3]);
      expect(await store.renew(slot)).toBe(0);
      expect(await store.release(slot)).toBe(false);
    });

    test('a later holder has a higher number, and the earlier one gives back nothing of it', async () => {
      const { store, granted, remaining, advanceUs } = await slots({ max: 1 });
      const first = slotOf(await granted({ holder: 'job' }));
      advanceUs(SECOND);
      const second = slotOf(await granted({ holder: 'job' }));
      expect(second.fence).toBeGreaterThan(first.fence);
      expect(await store.release(first)).toBe(false);
      expect(await store.renew(first)).toBe(0);
      expect(await remaining()).toEqual([0]);
      expect(await store.release(second)).toBe(true);
    });

    test('numbers still grow after everything was forgotten', async () => {
      const { store, granted, advanceUs } = await slots();
      const first = slotOf(await granted({ holder: 'a' }));
      await store.release(first);
      advanceUs(3_600 * SECOND);
      expect(slotOf(await granted({ holder: 'b' })).fence).toBeGreaterThan(first.fence);
    });

    test('who holds one is let in again, and holds one', async () => {
      const { granted, remaining } = await slots({ max: 1 });
      const first = slotOf(await granted({ holder: 'job' }));
      const second = slotOf(await granted({ holder: 'job' }));
      expect(second.fence).toBeGreaterThan(first.fence);
      expect(await remaining()).toEqual([0]);
    });

    test('are the value’s own', async () => {
      const { granted, refused, remaining } = await slots({ by: 'shop', max: 1 });
      await granted({ keys: { shop: 'a' }, holder: 'a' });
      expect(await refused({ keys: { shop: 'a' }, holder: 'b' })).toMatchObject({ by: 'shop' });
      expect(await remaining({ keys: { shop: 'b' } })).toEqual([1]);
    });

    test('of a request that something else refuses are not taken', async () => {
      const { ask, remaining } = await started(make, {
        limits: {
          work: { kind: 'concurrency', max: 1 },
          calls: { rate: 1, periodMs: 1_000, burst: 1 },
          day: { kind: 'window', max: 2, windowMs: 86_400_000 },
        },
      });
      await ask({ cost: { work: 0, calls: 1, day: 0 } });
      expect(await ask({ holder: 'a', terms: QUEUES })).toMatchObject({ granted: false, reason: 'rate' });
      expect(await remaining()).toEqual([1, 0, 2]);
      // It waits for the rate, so nobody stands behind it for the slot.
      expect(await ask({ cost: { work: 1, calls: 0, day: 0 }, holder: 'b' })).toMatchObject({
        granted: true,
      });
    });
  });

  describe('the queue for slots', () => {
    test('first come, first served: nobody passes, and a heavy one is not starved', async () => {
      const { store, granted, refused, ask } = await listening();
      const held = slotOf(await granted({ cost: { work: 2 }, holder: 'a' }));
      expect(await refused({ cost: { work: 3 }, holder: 'heavy', terms: QUEUES })).toMatchObject({
        reason: 'concurrency',
      });
      // There is a slot, and it is kept for the one before.
      expect(await refused({ holder: 'light', terms: QUEUES })).toMatchObject({ reason: 'concurrency' });
      expect(await refused({ holder: 'passer' })).toMatchObject({ reason: 'concurrency' });
      await store.release(held);
      expect(await ask({ holder: 'light', terms: QUEUES })).toMatchObject({ granted: false });
      expect(await ask({ cost: { work: 3 }, holder: 'heavy', terms: QUEUES })).toMatchObject({
        granted: true,
      });
    });

    test('wakes those for whom there is room, in order, each once', async () => {
      const { store, granted, refused, woken } = await listening();
      const held = [
        slotOf(await granted({ cost: { work: 2 }, holder: 'a' })),
        slotOf(await granted({ holder: 'b' })),
      ];
      for (const holder of ['one', 'two', 'three', 'four']) await refused({ holder, terms: QUEUES });
      await store.release(held[0]!);
      await eventually(async () => (woken.length === 2 ? true : undefined));
      await store.release(held[1]!);
      await eventually(async () => (woken.length === 3 ? true : undefined));
      expect(woken).toEqual(['one', 'two', 'three']);
    });

    test('a place is given up by leaving, and lapses when nobody asks again', async () => {
      const { store, granted, refused, ask, request, advanceUs } = await listening({
        max: 1,
        leaseMs: 60_000,
      });
      const held = slotOf(await granted({ holder: 'a' }));
      await refused({ holder: 'gone', terms: QUEUES });
      await refused({ holder: 'dead', terms: QUEUES });
      await refused({ holder: 'last', terms: QUEUES });
      await store.leave(request({ holder: 'gone' }));
      advanceUs(2 * SECOND);
      await refused({ holder: 'last', terms: QUEUES });
      await store.release(held);
      expect(await ask({ holder: 'last', terms: QUEUES })).toMatchObject({ granted: false });
      advanceUs(SECOND);
      expect(await ask({ holder: 'last', terms: QUEUES })).toMatchObject({ granted: true });
    });

    test('who asks without queueing gives its place up', async () => {
      const { store, granted, refused, ask } = await slots({ max: 1 });
      const held = slotOf(await granted({ holder: 'a' }));
      await refused({ holder: 'b', terms: QUEUES });
      await refused({ holder: 'c', terms: QUEUES });
      await refused({ holder: 'b' });
      await store.release(held);
      expect(await ask({ holder: 'c', terms: QUEUES })).toMatchObject({ granted: true });
    });
  });

  describe('adaptive slots', () => {
    const adaptive = { min: 1, max: 20 };
    const report = (startedUs: number, throttled = 1) => ({
      startedUs,
      calls: 10,
      throttled,
      failed: 0,
      latencySumUs: 0,
    });

    test('are fewer after a report of calls that were too many, once for all that ran then', async () => {
      const { store, sights, request, granted } = await slots({ max: 10, adaptive });
      const { startUs } = await granted({ holder: 'a' });
      await store.report(request({}), report(startUs));
      const { effective } = (await sights())[0]!;
      expect(effective).toBeLessThan(10);
      await store.report(request({}), report(startUs));
      expect((await sights())[0]!.effective).toBe(effective);
    });

    test('fewer slots than are held: nobody is put out, and nobody is let in until enough are back', async () => {
      const { store, granted, refused, request, remaining } = await slots({
        max: 2,
        adaptive: { min: 1, max: 2 },
      });
      const held = [slotOf(await granted({ holder: 'a' })), slotOf(await granted({ holder: 'b' }))];
      const { startUs } = await granted({ holder: 'b' });
      await store.report(request({}), report(startUs, 10));
      expect(await remaining()).toEqual([0]);
      expect(await store.renew(held[0]!)).toBeGreaterThan(0);
      await store.release(held[0]!);
      expect(await refused({ holder: 'c' })).toMatchObject({ reason: 'concurrency' });
    });
  });
}
