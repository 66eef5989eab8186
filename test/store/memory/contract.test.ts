import { describe, expect, test } from 'vitest';
import { parseGovernorOptions } from '../../../src/core/limits/governor-options.ts';
import { perSecond } from '../../../src/core/limits/rate.ts';
import { MemoryStore } from '../../../src/store/memory/memory-store.ts';
import { FakeClock } from '../../../src/testing/fake-clock.ts';
import { storeContract } from '../contract/index.ts';
import type { StoreOptions } from '../support/made.ts';
import { AT_ONCE, ask, NORMAL, OR_TURN } from '../support/terms.ts';

function make(options: StoreOptions) {
  const clock = new FakeClock();
  const store = new MemoryStore(parseGovernorOptions({ name: 'memory', ...options }), clock);
  return { store, advanceUs: (us: number) => clock.block(us / 1_000) };
}

describe('the memory store', () => {
  storeContract(make);

  describe('idle keys', () => {
    const limits = { shop: perSecond(10, { burst: 5, by: 'shop' }) };
    const request = (shop: string) => ask(1, { shop });

    test('vanish a second after they are full, a few with each call', async () => {
      const { store, advanceUs } = make({ limits });
      for (let key = 0; key < 1_000; key++) await store.acquire(request(`${key}`), AT_ONCE);
      expect(store.states.size).toBe(1_000);
      advanceUs(1_200_000);
      // Some calls are spent on a round that had begun before.
      for (let call = 0; call < 510; call++) await store.acquire(request('busy'), AT_ONCE);
      expect(store.states.size).toBe(1);
    });

    test('do not pile up, however many there are', async () => {
      const { store, advanceUs } = make({ limits });
      let most = 0;
      for (let key = 0; key < 20_000; key++) {
        await store.acquire(request(`${key}`), AT_ONCE);
        advanceUs(1_000);
        most = Math.max(most, store.states.size);
      }
      // A key is needed for 0.1 s of debt and a second of grace, which is 1,100 keys here.
      expect(most).toBeLessThan(2_200);
    });

    test('stay while they owe something or may be waited for in a line', async () => {
      const { store, advanceUs } = make({ limits });
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

    test('are not made by looking, nor by being refused', async () => {
      const { store } = make({ limits: { ...limits, calls: perSecond(1, { burst: 1 }) } });
      await store.peek(request('seen'), NORMAL);
      await store.acquire(request('a'), AT_ONCE);
      expect(await store.acquire(request('b'), AT_ONCE)).toMatchObject({ granted: false });
      expect(store.states.get('shop:seen')).toBeUndefined();
      expect(store.states.get('shop:b')).toBeUndefined();
      expect(store.states.size).toBe(2);
    });
  });
});
