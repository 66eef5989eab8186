import { describe, expect, test } from 'vitest';
import type { LimitsOptions } from '../../../src/core/limits/limit.ts';
import { perHour, perSecond } from '../../../src/core/limits/rate.ts';
import { connect, keysOf, redisUrl, uniqueName } from '../../support/redis.ts';
import { storeOf, timedStore } from '../support/stores.ts';
import { AT_ONCE, ask, NORMAL } from '../support/terms.ts';

const redis = connect();

describe('state that is damaged', () => {
  const one: LimitsOptions = {
    rate: perSecond(10, {
      burst: 5,
      penalty: { afterMs: 1_000, forMs: 1_000 },
      adaptive: { min: 1, max: 20 },
    }),
    fair: perSecond(10, { burst: 5, by: 'tenant', fair: true }),
    fixed: { kind: 'window', max: 5, windowMs: 60_000 },
    sliding: { kind: 'window', max: 5, windowMs: 60_000, mode: 'sliding' },
    log: { kind: 'window', max: 5, windowMs: 60_000, mode: 'log' },
    work: { kind: 'concurrency', max: 50, adaptive: { min: 1, max: 60 } },
  };

  async function used() {
    const name = uniqueName('damaged');
    const { store } = timedStore(redis, { name, limits: one });
    const ask = (holder: string) => ({ cost: 1, keys: { tenant: 'a' }, holder });
    await store.acquire(ask('first'), AT_ONCE);
    const hashes = [];
    for (const key of await keysOf(redis, `flyball:{${name}}:*`)) {
      if ((await redis.type(key)) === 'hash' && !key.endsWith(':config')) hashes.push(key);
    }
    return { store, ask, hashes };
  }

  test('any one field may be missing: it has its default', async () => {
    const { hashes } = await used();
    const names = hashes.map((key) => key.split(':').slice(2).join(':'));
    for (const [index, name] of names.entries()) {
      const { hashes: same } = await used();
      for (const field of Object.keys(await redis.hgetall(same[index]!))) {
        const { store, ask, hashes: own } = await used();
        await redis.hdel(own[index]!, field);
        const sights = await store.peek(ask(''), NORMAL);
        expect(sights.length, `${name} without ${field}`).toBe(7);
        for (const { sight } of sights) expect(Object.values(sight).every(Number.isSafeInteger)).toBe(true);
        const verdict = await store.acquire(ask('second'), AT_ONCE);
        expect(verdict, `${name} without ${field}`).toMatchObject({ granted: true });
      }
    }
  }, 60_000);

  test('several fields, or all of them, may have been removed by hand', async () => {
    const name = uniqueName('read');
    const store = storeOf(redisUrl(), { name, limits: { calls: perHour(1, { burst: 5 }) } });
    const request = ask();
    const key = `flyball:{${name}}:limit:calls`;
    await store.acquire({ ...request, cost: 5 }, AT_ONCE);
    await redis.hdel(key, 'granted', 'rate', 'unit', 'version', 'line', 'refused');
    expect(await store.acquire(request, AT_ONCE)).toMatchObject({ granted: false });
    await redis.del(key);
    expect(await store.acquire({ ...request, cost: 5 }, AT_ONCE)).toMatchObject({ granted: true });
  });

  test('entries, leases, places and members may be gone: what is left counts', async () => {
    const { store, ask, hashes } = await used();
    const prefix = hashes[0]!.slice(0, hashes[0]!.indexOf('}') + 2);
    for (const key of ['log:log', 'leases:work', 'queue:work', 'waiting:work', 'sharing:fair'])
      await redis.del(prefix + key);
    expect(await store.acquire(ask('second'), AT_ONCE)).toMatchObject({ granted: true });
    const held = (await store.peek(ask(''), NORMAL)).find(({ demand }) => demand.kind === 'concurrency')!;
    expect(held.sight.remaining).toBe(49);
  });
});
