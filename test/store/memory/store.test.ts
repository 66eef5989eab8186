import { describe, expect, it } from 'vitest';
import { perSecond } from '../../../src/core/limits/rate.ts';
import { governed } from '../../core/support/governed.ts';

const keys = (shop: string) => ({ keys: { shop } });

// https://github.com/sidekiq/sidekiq/issues/2607, https://github.com/redisson/redisson/issues/4007: a limiter per user leaked.
describe('buckets in memory', () => {
  it('stay few under a stream of keys that never return, however many limits have keys', async () => {
    const attributes = Array.from({ length: 8 }, (_, index) => `attribute${index}`);
    const { governor, clock, store } = governed(
      Object.fromEntries(attributes.map((by) => [by, perSecond(1_000, { by })])),
    );
    let most = 0;
    for (let n = 0; n < 3_000; n++) {
      await governor.allow({ keys: Object.fromEntries(attributes.map((by) => [by, `value-${n}`])) });
      clock.block(100);
      most = Math.max(most, store.states.size);
    }
    // Each call makes 8, and each lives for some 11 calls: a second, and until it is looked at.
    expect(most).toBeLessThan(8 * 40);
  });

  it('that vanish and those that stay decide alike', async () => {
    const { governor, clock, store } = governed({ shop: perSecond(10, { burst: 5, by: 'shop' }) });
    await governor.allowN(5, keys('acme'));
    await clock.advance(1_501);
    for (let n = 0; n < 10; n++) await governor.allow(keys('busy'));
    expect(store.states.get('shop:acme')).toBeUndefined();
    expect(await governor.allowN(5, keys('acme'))).toMatchObject({ allowed: true });
    expect(await governor.allow(keys('acme'))).toMatchObject({ allowed: false, retryAfterMs: 100 });
  });

  it('of a governor that started empty are full after they have vanished, not empty again', async () => {
    const { governor, clock, store } = governed(
      { shop: perSecond(10, { burst: 5, by: 'shop' }) },
      { coldStart: 'empty' },
    );
    await clock.advance(200);
    await governor.allow(keys('acme'));
    await clock.advance(10_000);
    for (let n = 0; n < 10; n++) await governor.allow(keys('busy'));
    expect(store.states.get('shop:acme')).toBeUndefined();
    expect(await governor.peek(keys('acme'))).toMatchObject([{ remaining: 5 }]);
  });

  it('are gone when it is closed', async () => {
    const { governor, store } = governed({ shop: perSecond(10, { by: 'shop' }) });
    await governor.allow(keys('acme'));
    await governor.close();
    expect(store.states.size).toBe(0);
  });
});
