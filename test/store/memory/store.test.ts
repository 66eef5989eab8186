import { describe, expect, it } from 'vitest';
import { perSecond } from '../../../src/core/limits/rate.ts';
import { governed } from '../../core/support/governed.ts';
import { memoryStore } from '../support/memory.ts';
import { AT_ONCE, ask, NORMAL, OR_TURN } from '../support/terms.ts';

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

describe('idle keys of a memory store', () => {
  const limits = { shop: perSecond(10, { burst: 5, by: 'shop' }) };
  const request = (shop: string) => ask(1, { shop });

  it('vanish a second after they are full, a few with each call', async () => {
    const { store, advanceUs } = memoryStore({ limits });
    for (let key = 0; key < 1_000; key++) await store.acquire(request(`${key}`), AT_ONCE);
    expect(store.states.size).toBe(1_000);
    advanceUs(1_200_000);
    // Some calls are spent on a round that had begun before.
    for (let call = 0; call < 510; call++) await store.acquire(request('busy'), AT_ONCE);
    expect(store.states.size).toBe(1);
  });

  it('do not pile up, however many there are', async () => {
    const { store, advanceUs } = memoryStore({ limits });
    let most = 0;
    for (let key = 0; key < 20_000; key++) {
      await store.acquire(request(`${key}`), AT_ONCE);
      advanceUs(1_000);
      most = Math.max(most, store.states.size);
    }
    // A key is needed for 0.1 s of debt and a second of grace, which is 1,100 keys here.
    expect(most).toBeLessThan(2_200);
  });

  it('stay while they owe something or may be waited for in a line', async () => {
    const { store, advanceUs } = memoryStore({ limits });
    for (let taken = 0; taken < 5; taken++) await store.acquire(request('owing'), AT_ONCE);
    for (let deferred = 0; deferred < 3; deferred++) await store.acquire(request('owing'), OR_TURN);
    const before = store.states.get('shop:owing');
    advanceUs(1_500_000);
    for (let call = 0; call < 20; call++) await store.acquire(request('busy'), AT_ONCE);
    expect(store.states.get('shop:owing')).toEqual(before);
    advanceUs(1_000);
    for (let call = 0; call < 20; call++) await store.acquire(request('busy'), AT_ONCE);
    expect(store.states.get('shop:owing')).toBeUndefined();
  });

  it('are not made by looking, nor by being refused', async () => {
    const { store } = memoryStore({ limits: { ...limits, calls: perSecond(1, { burst: 1 }) } });
    await store.peek(request('seen'), NORMAL);
    await store.acquire(request('a'), AT_ONCE);
    expect(await store.acquire(request('b'), AT_ONCE)).toMatchObject({ granted: false });
    expect(store.states.get('shop:seen')).toBeUndefined();
    expect(store.states.get('shop:b')).toBeUndefined();
    expect(store.states.size).toBe(2);
  });
});
