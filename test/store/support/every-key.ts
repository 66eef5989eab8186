import type { LimitsOptions } from '../../../src/core/limits/limit.ts';
import { perSecond } from '../../../src/core/limits/rate.ts';
import type { Request } from '../../../src/core/ports/store.ts';
import type { RedisStore } from '../../../src/store/redis/redis-store.ts';
import { MS, SECOND } from './made.ts';
import { AT_ONCE } from './terms.ts';

/** One limit of each kind there is. */
export const LIMITS: LimitsOptions = {
  calls: perSecond(50, { burst: 5, adaptive: { min: 1, max: 100 }, reserve: { high: 0.2 } }),
  shop: perSecond(50, { burst: 5, by: 'shop', maxKeys: 2, penalty: { afterMs: 1_000, forMs: 1_000 } }),
  tenant: perSecond(50, { burst: 6, by: 'tenant', fair: true }),
  fixed: { kind: 'window', max: 5, windowMs: 200 },
  sliding: { kind: 'window', max: 5, windowMs: 200, mode: 'sliding', by: 'shop', maxKeys: 2 },
  log: { kind: 'window', max: 5, windowMs: 200, mode: 'log' },
  work: { kind: 'concurrency', max: 2, leaseMs: 300, by: 'shop' },
};

export const request = (shop: string, holder: string, cost: Request['cost'] = 1): Request => ({
  cost,
  keys: { shop, tenant: shop },
  holder,
});
const TURN_TAKEN = { ...AT_ONCE, maxTurnUs: 60 * SECOND, turns: 'all', queue: true } as const;

/** Every kind of key there is: granted, refused with a place in line and in a queue, settled, paused, reported. */
export async function use(store: RedisStore): Promise<void> {
  for (const shop of ['a', 'b', 'c', '{d}']) {
    for (const holder of ['1', '2', '3', '4']) {
      const verdict = await store.acquire(request(shop, holder), TURN_TAKEN);
      if (verdict.granted) await store.settle(verdict.receipt, 2);
    }
    await store.force(request(shop, 'forced'));
    await store.acquire(
      request(shop, 'waits', { calls: 0, shop: 0, tenant: 0, fixed: 0, sliding: 0, log: 0, work: 1 }),
      TURN_TAKEN,
    );
  }
  await store.report(request('a', '1'), {
    startedUs: Number.MAX_SAFE_INTEGER,
    calls: 20,
    throttled: 2,
    failed: 0,
    latencySumUs: 0,
  });
  await store.pause({ shop: 'a' }, 100 * MS);
  await store.pause(undefined, 50 * MS);
}
