import { describe, expect, test } from 'vitest';
import { perSecond } from '../../../src/core/limits/rate.ts';
import { type Make, MS, SECOND, started } from '../support/made.ts';

// Of 10 a second: half a second that the pause costs, and the first token.
const FIRST_US = 600 * MS;

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

    test('refuses what it is about until it ends, and then lets it resume in a ramp', async () => {
      const { store, refused, granted, ask, advanceUs } = await both();
      await store.pause(keys, 3 * SECOND);
      expect(await refused(acme)).toMatchObject({ reason: 'paused' });
      expect(await ask(other)).toMatchObject({ granted: what === 'key' });
      advanceUs(3 * SECOND);
      // Empty.
      expect(await refused(acme)).toMatchObject({ reason: 'rate', waitUs: FIRST_US });
      advanceUs(FIRST_US - 1);
      await refused(acme);
      advanceUs(1);
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
      expect(await refused(acme)).toMatchObject({ reason: 'rate', waitUs: FIRST_US });
      advanceUs(FIRST_US);
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

  test('gives no slots, since it may be ended early, and is the reason whatever else stands in the way', async () => {
    const { store, granted, ask, advanceUs } = await started(make, { limits: { shop: limits.shop } });
    const deferred = { ...acme, terms: { maxTurnUs: Number.POSITIVE_INFINITY } };
    await granted({ ...acme, cost: 5 });
    expect(await ask(deferred)).toMatchObject({ reason: 'rate', hasTurn: true });
    expect(await ask(deferred)).toMatchObject({ reason: 'line', hasTurn: true });
    await store.pause(acme.keys, 30 * SECOND);
    for (let n = 0; n < 3; n++)
      expect(await ask(deferred)).toMatchObject({ reason: 'paused', hasTurn: false });
    await store.resume(acme.keys);
    advanceUs(2 * SECOND);
    for (let n = 0; n < 3; n++) expect(await ask(deferred)).toMatchObject({ granted: true });
  });

  test('shows nothing to be had to who looks', async () => {
    const { store, sights } = await both();
    await store.pause(undefined, 3 * SECOND);
    expect((await sights(acme)).map(({ remaining }) => remaining)).toEqual([0, 0, 0, 0]);
  });

  test('of a key that shares a fair limit ends without a burst, and in a ramp', async () => {
    const fair = { calls: perSecond(100, { burst: 40, by: 'shop', fair: true }) };
    const { store, ask, advanceUs } = await started(make, { limits: fair });
    const taken = async () => {
      let count = 0;
      while ((await ask(acme)).granted) count += 1;
      return count;
    };
    await ask(acme);
    await store.pause(acme.keys, 3 * SECOND);
    advanceUs(3 * SECOND);
    expect(await taken()).toBe(0);
    const counts: number[] = [];
    for (let n = 0; n < 16; n++) {
      advanceUs(50 * MS);
      counts.push(await taken());
    }
    // 100/s × 0.8 s × 0.8 / 2, and up to a quarter more, since nobody else has any of it.
    const sum = counts.reduce((total, count) => total + count);
    expect(sum).toBeGreaterThanOrEqual(30);
    expect(sum).toBeLessThanOrEqual(45);
    expect(Math.max(...counts)).toBeLessThanOrEqual(6);
    expect(counts[0]).toBeLessThanOrEqual(1);
  });

  test('resuming what is not paused changes nothing', async () => {
    const { store, remaining, granted } = await both();
    await granted({ ...acme, cost: 2 });
    const before = await remaining(acme);
    await store.resume(undefined);
    await store.resume(acme.keys);
    expect(await remaining(acme)).toEqual(before);
  });

  test('nothing is reserved in a pause; in the ramp after it at the pace of that', async () => {
    const { store, ask, advanceUs } = await started(make, { limits: { calls: limits.calls } });
    const later = { terms: { maxWaitUs: Number.POSITIVE_INFINITY } };
    await store.pause(undefined, 3 * SECOND);
    expect(await ask(later)).toMatchObject({
      granted: false,
      reason: 'paused',
      waitUs: 3 * SECOND + FIRST_US,
    });
    advanceUs(3 * SECOND);
    const waits: number[] = [];
    for (let n = 0; n < 7; n++) waits.push((await ask(later)).waitUs);
    expect(waits).toEqual([600, 700, 800, 900, 1_000, 1_100, 1_200].map((ms) => ms * MS));
  });

  test('what was promised before a pause is recalled when the governor is resumed early', async () => {
    const { store, granted, refused } = await started(make, { limits: { calls: limits.calls } });
    const later = { cost: 5, terms: { maxWaitUs: Number.POSITIVE_INFINITY } };
    for (let n = 0; n < 5; n++) await granted(later);
    const receipt = await granted(later);
    await store.pause(undefined, 30 * SECOND);
    await store.resume(undefined);
    expect(await store.cancel(receipt)).toBe(false);
    // What may still start within a second, and a token; a pause that took no time costs nothing.
    expect((await refused()).waitUs).toBe(1_100 * MS);
  });
}
