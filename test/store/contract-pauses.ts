import { describe, expect, test } from 'vitest';
import { perSecond } from '../../src/core/rate-limit.ts';
import { type Make, MS, SECOND, started } from './support/kinds-made.ts';

/** Pauses, in any store. */
export function pausesContract(make: Make): void {
  const limits = {
    calls: perSecond(10, { burst: 5 }),
    shop: perSecond(10, { burst: 5, by: 'shop' }),
    day: { kind: 'window' as const, max: 100, windowMs: 86_400_000 },
    work: { kind: 'concurrency' as const, max: 10, by: 'shop' },
  };
  const both = () => started(make, { limits });
  const acme = { keys: { shop: 'acme' }, holder: 'acme' };
  const other = { keys: { shop: 'other' }, holder: 'other' };

  describe.for(['governor', 'key'] as const)('a pause of a %s', (what) => {
    const keys = what === 'key' ? acme.keys : undefined;

    test('refuses what it is about until it ends, and then lets it resume at the rate', async () => {
      const { store, refused, granted, ask, advanceUs } = await both();
      await store.pause(keys, 3 * SECOND);
      expect(await refused(acme)).toMatchObject({ reason: 'paused' });
      expect(await ask(other)).toMatchObject({ granted: what === 'key' });
      advanceUs(3 * SECOND);
      // Empty: the first token comes a tenth of a second later.
      expect(await refused(acme)).toMatchObject({ reason: 'rate', waitUs: 100 * MS });
      advanceUs(100 * MS);
      await granted(acme);
    });

    test('the longest wins', async () => {
      const { store, sights, advanceUs } = await both();
      const pausedUs = async () => Math.max(...(await sights(acme)).map((sight) => sight.pausedUs));
      await store.pause(keys, 3 * SECOND);
      await store.pause(keys, SECOND);
      expect(await pausedUs()).toBe(3 * SECOND);
      advanceUs(SECOND);
      await store.pause(keys, 5 * SECOND);
      expect(await pausedUs()).toBe(5 * SECOND);
    });

    test('ends early when it is resumed, from empty', async () => {
      const { store, refused, granted, advanceUs } = await both();
      await store.pause(keys, 600 * SECOND);
      advanceUs(SECOND);
      await store.resume(keys);
      expect(await refused(acme)).toMatchObject({ reason: 'rate', waitUs: 100 * MS });
      advanceUs(100 * MS);
      await granted(acme);
    });

    test('without an end lasts until it is resumed', async () => {
      const { store, refused, advanceUs } = await both();
      await store.pause(keys, Number.POSITIVE_INFINITY);
      advanceUs(86_400 * SECOND);
      expect(await refused(acme)).toMatchObject({ reason: 'paused' });
      await store.resume(keys);
      expect(await refused(acme)).toMatchObject({ reason: 'rate' });
    });

    test('shows to who looks', async () => {
      const { store, sights } = await both();
      await store.pause(keys, 3 * SECOND);
      const paused = what === 'key' ? [0, 1, 0, 1] : [1, 1, 1, 1];
      expect((await sights(acme)).map(({ pausedUs }) => pausedUs)).toEqual(
        paused.map((share) => share * 3 * SECOND),
      );
    });
  });

  test('resuming what is not paused changes nothing', async () => {
    const { store, remaining, granted } = await both();
    await granted({ ...acme, cost: 2 });
    const before = await remaining(acme);
    await store.resume(undefined);
    await store.resume(acme.keys);
    expect(await remaining(acme)).toEqual(before);
  });

  test('a reservation in a pause starts after it; a long pause reserves nothing', async () => {
    const { store, ask } = await started(make, { limits: { calls: limits.calls } });
    await store.pause(undefined, 3 * SECOND);
    const later = { terms: { maxWaitUs: Number.POSITIVE_INFINITY } };
    expect(await ask(later)).toMatchObject({ granted: true, waitUs: 3 * SECOND + 100 * MS });
    await store.pause(undefined, 90 * SECOND);
    expect(await ask(later)).toMatchObject({ granted: false, reason: 'paused' });
  });

  test('what was promised for after the pause is recalled when the governor is resumed early', async () => {
    const { store, granted, refused } = await started(make, { limits: { calls: limits.calls } });
    await store.pause(undefined, 30 * SECOND);
    const receipt = await granted({ cost: 5, terms: { maxWaitUs: Number.POSITIVE_INFINITY } });
    await store.resume(undefined);
    expect(await store.cancel(receipt)).toBe(false);
    const { waitUs } = await refused();
    expect(waitUs).toBeLessThanOrEqual(1_600 * MS);
  });
}
