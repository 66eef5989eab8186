import { describe, expect, test } from 'vitest';
import type { Cost, Keys } from '../../../src/core/decide/demands.ts';
import { CostExceedsBurstError, InvalidOptionError } from '../../../src/core/errors.ts';
import { perSecond } from '../../../src/core/limits/rate.ts';
import type { Store } from '../../../src/core/ports/store.ts';
import { calls, type Make, SECOND, started } from '../support/made.ts';
import { AT_ONCE, ask, NORMAL, WHENEVER } from '../support/terms.ts';

/** Invalid requests, in any store. */
export function wrongRequestsContract(make: Make): void {
  describe('a wrong request', () => {
    const options = { limits: { ...calls.limits, shop: perSecond(1, { burst: 3, by: 'shop' }) } };

    async function expectRejected(cost: unknown, keys: unknown, error: unknown) {
      const { store, remaining } = await started(make, options);
      const request = { ...ask(), cost: cost as Cost, keys: keys as Keys };
      await expect(store.acquire(request, WHENEVER)).rejects.toThrow(error as Error);
      await expect(store.force(request)).rejects.toThrow(error as Error);
      await expect(store.peek(request, NORMAL)).rejects.toThrow(error as Error);
      if (keys !== undefined) await expectKeysRejected(store, keys as Keys);
      expect(await remaining()).toEqual([5, 3]);
    }

    // Invalid keys must not mean the whole governor.
    async function expectKeysRejected(store: Store, keys: Keys) {
      await expect(store.atMost(ask(1, keys), 5, NORMAL)).rejects.toThrow(InvalidOptionError);
      await expect(store.pause(keys, SECOND)).rejects.toThrow(InvalidOptionError);
      await expect(store.resume(keys)).rejects.toThrow(InvalidOptionError);
    }

    test('with a cost above a burst is told both numbers', async () => {
      const { store } = await started(make, options);
      const asked = store.acquire(ask(4), WHENEVER);
      await expect(asked).rejects.toMatchObject({ limit: 'shop', cost: 4, burst: 3 });
      await expectRejected(4, undefined, CostExceedsBurstError);
      await expectRejected({ calls: 6, shop: 1 }, undefined, CostExceedsBurstError);
    });

    test.for<[string, unknown]>([
      ['zero', 0],
      ['negative', -1],
      ['a fraction', 0.5],
      ['NaN', Number.NaN],
      ['infinite', Number.POSITIVE_INFINITY],
      ['beyond the exact numbers', 2 ** 53],
      ['text', '1'],
      ['a bigint', 1n],
      ['null', null],
      ['missing', undefined],
      ['a list', [1]],
      ['for a limit that is not there', { callz: 1 }],
      ['negative for one limit', { calls: -1 }],
      ['a fraction for one limit', { calls: 0.5 }],
      ['text for one limit', { calls: '1' }],
      ['zero for every limit', { calls: 0, shop: 0 }],
    ])('whose cost is %s takes nothing', async ([, cost]) =>
      expectRejected(cost, undefined, InvalidOptionError),
    );

    test.for<[string, unknown]>([
      ['an empty text', { shop: '' }],
      ['a text of 257 characters', { shop: 'x'.repeat(257) }],
      ['NaN', { shop: Number.NaN }],
      ['a boolean', { shop: true }],
      ['an object', { shop: {} }],
      ['a list', { shop: ['a'] }],
    ])('with a key that is %s takes nothing', async ([, keys]) =>
      expectRejected(1, keys, InvalidOptionError),
    );

    test.for<[string, unknown]>([
      ['name an unknown attribute', { shpo: 'a' }],
      ['are a text', 'a'],
      ['are a list', ['a']],
      ['are null', null],
      ['are a promise', Promise.resolve({ shop: 'a' })],
    ])('whose keys %s takes nothing', async ([, keys]) => expectRejected(1, keys, InvalidOptionError));

    test('fails alone: those made at the same time are decided', async () => {
      const { store, remaining } = await started(make, calls);
      const results = await Promise.allSettled([2, 6, 0, 3].map((cost) => store.acquire(ask(cost), AT_ONCE)));
      expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'rejected', 'fulfilled']);
      expect(await remaining()).toEqual([0]);
    });
  });
}
