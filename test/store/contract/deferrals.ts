import { describe, expect, test } from 'vitest';
import { GovernorClosedError } from '../../../src/core/errors.ts';
import { perSecond } from '../../../src/core/limits/rate.ts';
import { KEPT_US, type NewDeferral } from '../../../src/core/ports/deferrals.ts';
import type { Made, StoreOptions } from '../support/made.ts';

const SECOND = 1_000_000;
const Q = 'bull:orders';

/** What every store does with deferred jobs. `make` gives one that nothing has happened to yet. */
export function deferralsContract(make: (options: StoreOptions) => Made): void {
  function started() {
    const { store, advanceUs } = make({ limits: { calls: perSecond(10) } });
    const { deferrals } = store;
    const note = (job: string, more: Partial<NewDeferral> = {}, queue = Q) =>
      deferrals.note(queue, { job, delayMs: 1_000, attempt: 0, fresh: false, ...more });
    const slots = async () => (await deferrals.list(Q, 0, 1_000)).map(({ job }) => job);
    return { store, deferrals, advanceUs, note, slots };
  }

  describe('deferred jobs', () => {
    test('are counted from their first deferral on, each by itself', async () => {
      const { deferrals, note, advanceUs } = started();
      const first = await note('a');
      expect(first).toMatchObject({ count: 1, ageUs: 0 });
      advanceUs(3 * SECOND);
      expect(await note('b')).toMatchObject({ count: 1, ageUs: 0 });
      expect(await note('a')).toEqual({ count: 2, firstUs: first.firstUs, ageUs: 3 * SECOND });
      advanceUs(SECOND);
      expect(await deferrals.find(Q, 'a', 0)).toEqual({
        count: 2,
        firstUs: first.firstUs,
        ageUs: 4 * SECOND,
      });
      expect(await deferrals.find(Q, 'never', 0)).toBeUndefined();
    });

    test('count for nothing if they are excused, nor does the time until their slot', async () => {
      const { deferrals, note, advanceUs } = started();
      expect(await note('a', { excused: true, delayMs: 4_000 })).toMatchObject({ count: 0, ageUs: 0 });
      advanceUs(4 * SECOND);
      const first = await note('a');
      expect(first).toMatchObject({ count: 1, ageUs: 0 });
      advanceUs(SECOND);
      await note('a', { excused: true, delayMs: 4_000 });
      advanceUs(5 * SECOND);
      expect(await deferrals.find(Q, 'a', 0)).toEqual({
        count: 1,
        firstUs: first.firstUs + 4 * SECOND,
        ageUs: 2 * SECOND,
      });
      // Ended early: not younger than new.
      await note('b', { excused: true, delayMs: 4_000 });
      expect(await deferrals.find(Q, 'b', 0)).toMatchObject({ count: 0, ageUs: 0 });
    });

    test('are those of one queue, whatever their names are', async () => {
      const { deferrals, note } = started();
      await note('a');
      await note('a', {}, 'bull:mails');
      await note('a b:{c}"', {}, 'other:orders');
      expect(await deferrals.forget('bull:mails', 'a')).toMatchObject({ count: 1 });
      expect(await deferrals.oldest(Q)).toMatchObject({ count: 1 });
      expect(await deferrals.find('other:orders', 'a b:{c}"', 0)).toMatchObject({ count: 1 });
    });

    test('are forgotten when they start, and begin anew', async () => {
      const { deferrals, note, advanceUs } = started();
      const { firstUs } = await note('a');
      await note('a');
      advanceUs(SECOND);
      expect(await deferrals.forget(Q, 'a')).toEqual({ count: 2, firstUs, ageUs: SECOND });
      expect(await deferrals.forget(Q, 'a')).toBeUndefined();
      expect(await deferrals.find(Q, 'a', 0)).toBeUndefined();
      expect(await deferrals.oldest(Q)).toEqual({ count: 0 });
      expect(await note('a')).toMatchObject({ count: 1, ageUs: 0 });
    });

    test('go on where they were if their start does not count', async () => {
      const { deferrals, note, advanceUs } = started();
      await note('a');
      const before = await deferrals.forget(Q, 'a');
      advanceUs(SECOND);
      expect(await note('a', { before })).toEqual({ count: 2, firstUs: before!.firstUs, ageUs: SECOND });
    });

    test('begin anew after an attempt that nobody could tell of, and under an id that is given again', async () => {
      const { deferrals, note } = started();
      await note('a');
      await note('a');
      expect(await deferrals.find(Q, 'a', 1)).toBeUndefined();
      expect(await note('a', { attempt: 1 })).toMatchObject({ count: 1 });
      expect(await note('a', { attempt: 1 })).toMatchObject({ count: 2 });
      expect(await note('a', { attempt: 1, fresh: true })).toMatchObject({ count: 1 });
    });

    test('have one that has been deferred for longest', async () => {
      const { deferrals, note, advanceUs } = started();
      expect(await deferrals.oldest(Q)).toEqual({ count: 0 });
      await note('old', { delayMs: 9_000 });
      advanceUs(SECOND);
      await note('young', { delayMs: 1_000 });
      await note('old');
      advanceUs(SECOND);
      expect(await deferrals.oldest(Q)).toEqual({ count: 2, oldest: { job: 'old', ageUs: 2 * SECOND } });
      await deferrals.forget(Q, 'old');
      expect(await deferrals.oldest(Q)).toEqual({ count: 1, oldest: { job: 'young', ageUs: SECOND } });
    });

    test('a clock that steps back makes nobody younger than nothing', async () => {
      const { deferrals, note, advanceUs } = started();
      await note('a');
      advanceUs(-5 * SECOND);
      expect(await note('a')).toMatchObject({ count: 2, ageUs: 0 });
      expect((await deferrals.oldest(Q)).oldest).toEqual({ job: 'a', ageUs: 0 });
    });

    test('that never came back are dropped a day after their slots, and no others', async () => {
      const { deferrals, note, advanceUs } = started();
      for (let lost = 0; lost < 15; lost++) await note(`lost-${lost}`, { delayMs: 2_000 });
      await note('far', { delayMs: KEPT_US / 1_000 + 10_000 });
      advanceUs(KEPT_US + SECOND);
      await note('new');
      expect(await deferrals.oldest(Q)).toMatchObject({ count: 17 });
      advanceUs(SECOND);
      await note('new');
      await note('new');
      await note('new');
      expect((await deferrals.list(Q, 0, 100)).map(({ job }) => job)).toEqual(['new', 'far']);
    });
  });

  describe('slots of deferred jobs', () => {
    test('are listed in order, page by page, each once', async () => {
      const { deferrals, note, advanceUs } = started();
      const expected: string[] = [];
      for (let job = 0; job < 25; job++) {
        advanceUs(1);
        await note(`${job}`, { delayMs: 25 - job, attempt: job });
        expected.unshift(`${job}`);
      }
      const listed: string[] = [];
      for (let afterUs = 0; ; ) {
        const page = await deferrals.list(Q, afterUs, 10);
        if (page.length === 0) break;
        for (const { job, delayMs, attempt } of page) {
          expect({ delayMs, attempt }).toEqual({ delayMs: 25 - Number(job), attempt: Number(job) });
          listed.push(job);
        }
        afterUs = page.at(-1)!.turnUs;
      }
      expect(listed).toEqual(expected);
    });

    test('that are equal come together, so that none is lost between pages', async () => {
      const { deferrals, note } = started();
      for (const job of ['c', 'a', 'b', 'd']) await note(job);
      await note('later', { delayMs: 2_000 });
      const page = await deferrals.list(Q, 0, 2);
      expect(page.map(({ job }) => job)).toEqual(['a', 'b', 'c', 'd']);
      expect((await deferrals.list(Q, page.at(-1)!.turnUs, 2)).map(({ job }) => job)).toEqual(['later']);
    });

    test('are moved for those that are still deferred', async () => {
      const { deferrals, note, slots } = started();
      for (const job of ['a', 'b', 'c']) await note(job);
      await note('a');
      await deferrals.forget(Q, 'b');
      await deferrals.move(Q, [
        { job: 'a', delayMs: 5_000 },
        { job: 'b', delayMs: 4_000 },
        { job: 'c', delayMs: 3_000 },
      ]);
      expect(await slots()).toEqual(['c', 'a']);
      expect((await deferrals.list(Q, 0, 9)).map(({ delayMs }) => delayMs)).toEqual([3_000, 5_000]);
      expect(await deferrals.find(Q, 'a', 0)).toMatchObject({ count: 2 });
      await deferrals.move(Q, []);
    });
  });

  describe('a claim of the re-timing', () => {
    test('is given once for each version', async () => {
      const { deferrals } = started();
      expect(await deferrals.claim(Q, 2, 60_000, false)).toBe(true);
      expect(await deferrals.claim(Q, 2, 60_000, false)).toBe(false);
      expect(await deferrals.claim('bull:mails', 2, 60_000, false)).toBe(true);
      expect(await deferrals.claim(Q, 3, 60_000, false)).toBe(true);
      // Who is told late, or was at work on the version before.
      expect(await deferrals.claim(Q, 2, 60_000, true)).toBe(false);
      expect(await deferrals.claim(Q, 3, 60_000, true)).toBe(true);
    });
  });

  test('a closed store says so', async () => {
    const { store, deferrals, note } = started();
    await store.close();
    await expect(note('a')).rejects.toThrow(GovernorClosedError);
    await expect(deferrals.forget(Q, 'a')).rejects.toThrow(GovernorClosedError);
    await expect(deferrals.oldest(Q)).rejects.toThrow(GovernorClosedError);
  });
}
