import { describe, expect, test } from 'vitest';
import { perHour } from '../../../src/core/limits/rate.ts';
import { uniqueName } from '../../support/redis.ts';
import { LIMITS, request } from '../support/every-key.ts';
import { slotOf } from '../support/made.ts';
import { callsOf, governorOf, ownServer, storeOf } from '../support/stores.ts';
import { AT_ONCE } from '../support/terms.ts';

describe('group commit', () => {
  test('500 requests of one tick travel in one or two calls', async () => {
    const { admin, governor } = await quietServer();
    const decisions = await Promise.all(Array.from({ length: 500 }, () => governor.allow()));
    expect(decisions.filter(({ allowed }) => allowed)).toHaveLength(399);
    const { evalsha, eval: evals = 0 } = await callsOf(admin);
    expect(evalsha).toBeGreaterThanOrEqual(1);
    expect(evalsha).toBeLessThanOrEqual(2);
    expect(evals).toBe(0);
  });

  test('what comes up while calls are under way waits for one of them, not for a timer', async () => {
    const { admin, governor } = await quietServer();
    const askers = Array.from({ length: 50 }, async () => {
      for (let call = 0; call < 20; call++) await governor.allow();
    });
    await Promise.all(askers);
    const { evalsha } = await callsOf(admin);
    // A thousand requests, fifty at a time: each round of them takes a call or two.
    expect(evalsha).toBeLessThanOrEqual(2 * 20 + 10);
  });

  test('a lone request goes out at once, in one command', async () => {
    const { admin, governor } = await quietServer();
    await governor.allow();
    expect((await callsOf(admin)).evalsha).toBe(1);
  });

  /** A governor that has started, on a server with no other traffic. */
  async function quietServer() {
    const { url, admin } = await ownServer();
    const governor = governorOf({
      name: uniqueName('group'),
      connection: url,
      limits: { calls: perHour(1, { burst: 400 }) },
    });
    await governor.allow();
    await admin.config('RESETSTAT');
    return { admin, governor };
  }
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
