import { describe, expect, onTestFinished, test } from 'vitest';
import { perHour, perSecond } from '../../../src/core/limits/rate.ts';
import { connect, keysOf, keysWithoutTtl, redisUrl, uniqueName } from '../../support/redis.ts';
import { LIMITS, use } from '../support/every-key.ts';
import { eventually, ownServer, storeOf } from '../support/stores.ts';
import { AT_ONCE, ask, OR_TURN, WHENEVER } from '../support/terms.ts';

const redis = connect();

describe('expiry', () => {
  test('the TTL of a bucket is the time until it is full and a second', async () => {
    const name = uniqueName('ttl');
    const store = storeOf(redisUrl(), { name, limits: { hour: perHour(60, { burst: 30 }) } });
    const key = `flyball:{${name}}:limit:hour`;
    for (const [taken, debtMs] of [
      [1, 60_000],
      [29, 1_800_000],
      [30, 3_600_000],
    ] as const) {
      await store.acquire(ask(taken), WHENEVER);
      const ttl = await redis.pttl(key);
      expect(ttl).toBeLessThanOrEqual(debtMs + 1_000);
      // As much as a slow test run may take.
      expect(ttl).toBeGreaterThan(debtMs - 20_000);
    }
  });

  test('refusals and slots do not keep a bucket for longer than it owes', async () => {
    const name = uniqueName('ttl');
    const store = storeOf(redisUrl(), { name, limits: { shop: perSecond(1, { burst: 1, by: 'shop' }) } });
    const request = ask(1, { shop: 'a' });
    await store.acquire(request, AT_ONCE);
    for (let refused = 0; refused < 50; refused++) {
      await store.acquire(request, refused % 2 === 0 ? OR_TURN : AT_ONCE);
    }
    const ttl = await redis.pttl(`flyball:{${name}}:limit:shop:a`);
    expect(ttl).toBeGreaterThan(0);
    expect(ttl).toBeLessThanOrEqual(2_000);
  });

  test('all but the config is gone about a second after the buckets are full', async () => {
    const name = uniqueName('ttl');
    const quick = { calls: perSecond(20, { burst: 4 }), shop: perSecond(10, { burst: 2, by: 'shop' }) };
    const store = storeOf(redisUrl(), { name, limits: quick });
    await Promise.all(['a', 'b', 'c', 'd'].map((shop) => store.acquire(ask(1, { shop }), OR_TURN)));
    const beganMs = performance.now();
    expect(await keysOf(redis, `flyball:{${name}}:*`)).toHaveLength(6);
    const left = await eventually(async () => {
      const keys = await keysOf(redis, `flyball:{${name}}:*`);
      return keys.length === 1 ? keys : undefined;
    });
    expect(left).toEqual([`flyball:{${name}}:config`]);
    // 0.2 s to be full and a second; not sooner, for the line would be forgotten too early.
    expect(performance.now() - beganMs).toBeGreaterThan(1_000);
    // Gone and full are the same.
    expect(await store.acquire(ask({ calls: 4, shop: 2 }, { shop: 'a' }), AT_ONCE)).toMatchObject({
      granted: true,
      waitUs: 0,
    });
  });
});

describe('HGETALL', () => {
  test('of a bucket says in plain numbers what it owes, since when, and how it got there', async () => {
    const name = uniqueName('read');
    const store = storeOf(redisUrl(), { name, limits: { shop: perHour(6, { burst: 3, by: 'shop' }) } });
    const request = ask(2, { shop: 'acme' });
    const key = `flyball:{${name}}:limit:shop:acme`;
    const granted = await store.acquire(request, AT_ONCE);
    const startUs = granted.granted ? granted.receipt.startUs : 0;
    // Two tokens of ten minutes each.
    const used = {
      debt: '1200000000',
      at: `${startUs}`,
      granted: '2',
      rate: '1',
      unit: '600000000',
      burst: '3',
      version: '1',
    };
    expect(await redis.hgetall(key)).toEqual(used);
    await store.acquire(request, AT_ONCE);
    expect(await redis.hgetall(key)).toEqual({ ...used, refused: '1' });
    const hasTurn = await store.acquire(request, OR_TURN);
    expect(hasTurn).toMatchObject({ granted: false, hasTurn: true });
    const { line, ...rest } = await redis.hgetall(key);
    expect(rest).toEqual({ ...used, refused: '2' });
    // The slot comes when one token has drained, and the two that wait for it take twenty minutes more.
    expect(Number(line) - startUs).toBe(1_800_000_000);
  });

  test('of the config shows the limits in force, their version, and when they came', async () => {
    const name = uniqueName('read');
    await storeOf(redisUrl(), { name, limits: { calls: perSecond(100, { burst: 20 }) } }).limits();
    const config = await redis.hgetall(`flyball:{${name}}:config`);
    expect(Object.keys(config).sort()).toEqual([
      'coldAt',
      'created',
      'limits',
      'revision',
      'updatedAt',
      'updatedBy',
      'version',
    ]);
    expect(config).toMatchObject({ version: '1', coldAt: '0' });
    expect(config.created).toMatch(/^\d{16}$/);
    expect(config.updatedAt).toBe(config.created);
    expect(JSON.parse(config.limits!)).toEqual([
      { name: 'calls', kind: 'rate', rate: 100, periodMs: 1_000, burst: 20 },
    ]);
  });
});

describe('keys', () => {
  test('each that a script touches is declared, and all of a governor share one hash tag', async () => {
    const { url, admin } = await ownServer();
    const monitor = await admin.monitor();
    onTestFinished(() => monitor.disconnect());
    const declared = new Set<string>();
    const touched = new Set<string>();
    const undeclared: string[] = [];
    let ended = false;
    monitor.on('monitor', (_time: string, args: string[], source: string) => {
      const [command = '', second = '', third = ''] = args;
      if (/^evalsha$|^eval$/i.test(command)) {
        declared.clear();
        for (const key of args.slice(3, 3 + Number(third))) declared.add(key);
      } else if (source === 'lua' && !/^time$|^publish$/i.test(command)) {
        touched.add(second);
        if (!declared.has(second)) undeclared.push(args.join(' '));
      }
      ended ||= command.toLowerCase() === 'echo' && second === 'end';
    });
    const name = uniqueName('keys');
    await use(storeOf(url, { name, limits: LIMITS }));
    await admin.echo('end');
    await eventually(async () => (ended ? true : undefined));
    expect(undeclared).toEqual([]);
    expect(touched).toContain(`flyball:{${name}}:config`);
    expect(touched).toContain(`flyball:{${name}}:limit:shop:b`);
    const tag = (key: string) => /\{(.+?)\}/.exec(key)?.[1];
    expect([...touched].filter((key) => tag(key) !== name)).toEqual([]);
    expect((await keysOf(admin, '*')).filter((key) => !touched.has(key))).toEqual([]);
  });
});

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
      return left.every((key) => /:(config|history)$/.test(key)) ? left : undefined;
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
