import { describe, expect, onTestFinished, test } from 'vitest';
import { parseGovernorOptions } from '../../../src/core/limits/governor-options.ts';
import type { LimitsOptions } from '../../../src/core/limits/limit.ts';
import { perSecond } from '../../../src/core/limits/rate.ts';
import type { Request } from '../../../src/core/ports/store.ts';
import { RedisStore } from '../../../src/store/redis/redis-store.ts';
import { clientWithTime } from '../../lua/support/injected-time.ts';
import { connect, keysOf, keysWithoutTtl, uniqueName } from '../../support/redis.ts';
import { slotOf } from '../support/kinds-made.ts';
import { callsOf, eventually, ownServer, storeOf } from '../support/stores.ts';
import { AT_ONCE, NORMAL } from '../support/terms.ts';

const MS = 1_000;
const SECOND = 1_000_000;
const START_US = 1_700_000_000_000_000;
const redis = connect();

const LIMITS: LimitsOptions = {
  calls: perSecond(50, { burst: 5, adaptive: { min: 1, max: 100 }, reserve: { high: 0.2 } }),
  shop: perSecond(50, { burst: 5, by: 'shop', maxKeys: 2, penalty: { afterMs: 1_000, forMs: 1_000 } }),
  tenant: perSecond(50, { burst: 6, by: 'tenant', fair: true }),
  fixed: { kind: 'window', max: 5, windowMs: 200 },
  sliding: { kind: 'window', max: 5, windowMs: 200, mode: 'sliding', by: 'shop', maxKeys: 2 },
  log: { kind: 'window', max: 5, windowMs: 200, mode: 'log' },
  work: { kind: 'concurrency', max: 2, leaseMs: 300, by: 'shop' },
};
const CONFIG = ['config', 'history'];

const request = (shop: string, holder: string, cost: Request['cost'] = 1): Request => ({
  cost,
  keys: { shop, tenant: shop },
  holder,
});
const TURN_TAKEN = { ...AT_ONCE, maxTurnUs: 60 * SECOND, turns: 'all', queue: true } as const;

/** Every kind of key there is: granted, refused with a place in line and in a queue, settled, paused, reported. */
async function use(store: RedisStore): Promise<void> {
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

describe('what limits of all kinds leave in Redis', () => {
  test('carries the hash tag, has a TTL, and can be read by people', async () => {
    const { url, admin } = await ownServer();
    await use(storeOf(url, { name: 'tagged', limits: LIMITS }));
    const keys = await keysOf(admin, '*');
    expect(keys.filter((key) => !key.startsWith('flyball:{tagged}:'))).toEqual([]);
    const places = new Set(keys.map((key) => key.split(':')[2]));
    for (const place of [
      'limit',
      'window',
      'log',
      'slots',
      'leases',
      'queue',
      'waiting',
      'share',
      'sharing',
      'keys',
    ]) {
      expect(places).toContain(place);
    }
    expect(await keysWithoutTtl(admin, '*')).toEqual(['flyball:{tagged}:config']);
    for (const key of keys) {
      if ((await admin.type(key)) !== 'hash' || key.endsWith(':config')) continue;
      for (const [field, value] of Object.entries(await admin.hgetall(key))) {
        expect(`${key} ${field} ${value}`).toMatch(/^[\x20-\x7e]+$/);
        expect(value).toMatch(/^(\d+( \S+)*)?$/);
      }
    }
  });

  test('is gone after twice the period in which nothing happens', async () => {
    const { url, admin } = await ownServer();
    const { calls, ...limits } = LIMITS;
    // An adaptive rate is kept for an hour: its expiry is looked at, not waited for.
    expect(calls).toHaveProperty('adaptive');
    await use(
      storeOf(url, { name: 'idle', limits: { calls: perSecond(50, { burst: 5 }), ...limits } }),
    ).catch(() => {});
    expect(await admin.dbsize()).toBeGreaterThan(20);
    await eventually(async () => {
      const left = await keysOf(admin, '*');
      return left.every((key) => CONFIG.some((name) => key.endsWith(`:${name}`))) ? left : undefined;
    }, 30_000);
  });

  test('an adaptive limit is remembered for an hour after it was last used', async () => {
    const { url, admin } = await ownServer();
    const store = storeOf(url, { name: 'hour', limits: { calls: LIMITS.calls! } });
    await store.acquire({ cost: 1, keys: undefined, holder: '' }, AT_ONCE);
    const ttl = await admin.pttl('flyball:{hour}:limit:calls');
    expect(ttl).toBeGreaterThan(3_590_000);
    expect(ttl).toBeLessThanOrEqual(3_601_000 + 1_000);
  });
});

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
    const store = new RedisStore(
      parseGovernorOptions({ name, limits: one }),
      clientWithTime(redis, () => START_US),
    );
    onTestFinished(() => store.close());
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

describe('size', () => {
  test('a thousand operations travel in one call, and are answered each', async () => {
    const { url, admin } = await ownServer();
    const store = storeOf(url, {
      name: 'many',
      limits: { ...LIMITS, fixed: { kind: 'window', max: 400, windowMs: 60_000 } },
    });
    await store.limits();
    await admin.config('RESETSTAT');
    const only = { calls: 0, shop: 0, tenant: 0, fixed: 1, sliding: 0, log: 0, work: 0 };
    const asked = Array.from({ length: 1_000 }, (_, index) =>
      store.acquire(request(`${index % 7}`, `${index}`, only), AT_ONCE),
    );
    const granted = (await Promise.all(asked)).filter((verdict) => verdict.granted);
    expect(granted.length).toBe(400);
    const { evalsha = 0, eval: evals = 0 } = await callsOf(admin);
    expect(evalsha + evals).toBeLessThanOrEqual(4);
  });

  test('a thousand slots, each given back by its holder', async () => {
    const { url, admin } = await ownServer();
    const store = storeOf(url, { name: 'slots', limits: { work: { kind: 'concurrency', max: 1_000 } } });
    const ask = (holder: string) => ({ cost: 1, keys: undefined, holder });
    const verdicts = await Promise.all(
      Array.from({ length: 1_001 }, (_, index) => store.acquire(ask(`${index}`), AT_ONCE)),
    );
    const receipts = verdicts.flatMap((verdict) => (verdict.granted ? [verdict.receipt] : []));
    expect(receipts.length).toBe(1_000);
    expect(new Set(receipts.map((receipt) => slotOf(receipt).fence)).size).toBe(1_000);
    const released = await Promise.all(receipts.map((receipt) => store.release(slotOf(receipt))));
    expect(released.every(Boolean)).toBe(true);
    expect(await admin.exists('flyball:{slots}:leases:work')).toBe(0);
  });

  test('a log of 100,000 entries costs a decision no more commands than an empty one', async () => {
    const { url, admin } = await ownServer();
    const max = 100_000;
    const store = storeOf(url, {
      name: 'log',
      limits: { day: { kind: 'window', max, windowMs: 86_400_000, mode: 'log' } },
    });
    const ask = { cost: 1, keys: undefined, holder: '' };
    const commandsOf = async (work: () => Promise<unknown>) => {
      await admin.config('RESETSTAT');
      await work();
      const {
        hmget = 0,
        hset = 0,
        zrange = 0,
        zadd = 0,
        zrangebyscore = 0,
        zremrangebyscore = 0,
      } = await callsOf(admin);
      return { hmget, hset, zrange, zadd, zrangebyscore, zremrangebyscore };
    };
    await store.acquire(ask, AT_ONCE);
    const early = await commandsOf(() => store.acquire(ask, AT_ONCE));
    for (let made = 2; made < max - 1; made += 5_000) {
      const round = Math.min(5_000, max - 1 - made);
      await Promise.all(Array.from({ length: round }, () => store.acquire(ask, AT_ONCE)));
    }
    expect(await admin.zcard('flyball:{log}:log:day')).toBe(max - 1);
    expect(await commandsOf(() => store.acquire(ask, AT_ONCE))).toEqual(early);
    expect(await store.acquire(ask, AT_ONCE)).toMatchObject({ granted: false, reason: 'window' });
    // What one command costs is the server's own measure: a sorted set of so many is a matter of microseconds.
    await admin.config('RESETSTAT');
    for (let asked = 0; asked < 100; asked++) await store.acquire(ask, AT_ONCE);
    const spentUs = Number(
      /cmdstat_evalsha:calls=100,usec=\d+,usec_per_call=([\d.]+)/.exec(await admin.info('commandstats'))?.[1],
    );
    expect(spentUs).toBeLessThan(5_000);
  }, 60_000);
});
