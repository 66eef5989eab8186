import { Cluster } from 'ioredis';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { parseGovernorOptions } from '../../../src/core/limits/governor-options.ts';
import type { LimitsOptions } from '../../../src/core/limits/limit.ts';
import { perHour, perSecond } from '../../../src/core/limits/rate.ts';
import { redisClient } from '../../../src/store/redis/client/connection.ts';
import { RedisStore } from '../../../src/store/redis/redis-store.ts';
import { connect, keysOf, keysWithoutTtl, redisUrl, startRedis, uniqueName } from '../../support/redis.ts';
import { callsOf, eventually, governorOf, ownServer, storeOf } from '../support/stores.ts';
import { AT_ONCE, ask, NORMAL, OR_TURN, WHENEVER } from '../support/terms.ts';

const redis = connect();

/** One of each thing that a store can be asked, so that all that it writes is written. */
async function everyOperation(store: RedisStore): Promise<void> {
  const of = (shop: string, cost = 1) => ask(cost, { shop });
  await store.acquire(of('a'), AT_ONCE);
  await store.acquire(of('b'), AT_ONCE);
  await store.acquire(of('b'), AT_ONCE);
  await store.acquire(of('b'), OR_TURN);
  await store.acquire(ask({ calls: 3, shop: 0 }), AT_ONCE);
  const reserved = await store.acquire(ask({ calls: 3, shop: 0 }), WHENEVER);
  if (reserved.granted) await store.cancel(reserved.receipt);
  await store.force(of('c', 2));
  await store.peek(of('d'), NORMAL);
  await store.acquire(ask(), AT_ONCE);
}

const limits: LimitsOptions = {
  calls: perSecond(20, { burst: 8 }),
  shop: perSecond(2, { burst: 2, by: 'shop' }),
};

describe('expiry', () => {
  test('no key but the config’s is without a TTL, whatever was asked', async () => {
    const name = uniqueName('ttl');
    const store = storeOf(redisUrl(), { name, limits });
    await everyOperation(store);
    const config = `flyball:{${name}}:config`;
    expect(await keysWithoutTtl(redis, `flyball:{${name}}:*`)).toEqual([config]);
    expect((await keysOf(redis, `flyball:{${name}}:*`)).length).toBeGreaterThanOrEqual(4);
  });

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

  test('of a bucket with fields that are missing, or that a person removed, is no error', async () => {
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
    await everyOperation(storeOf(url, { name, limits }));
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

describe('a cluster', () => {
  let cluster: Cluster;

  // One node with all slots: it answers CROSSSLOT and MOVED as a large one does.
  beforeAll(async () => {
    const server = await startRedis(['--cluster-enabled', 'yes', '--cluster-announce-ip', '127.0.0.1']);
    const admin = connect({}, server.url);
    await admin.cluster('ADDSLOTS', ...Array.from({ length: 16_384 }, (_, slot) => slot));
    await eventually(async () =>
      String(await admin.cluster('INFO')).includes('cluster_state:ok') ? true : undefined,
    );
    cluster = new Cluster([server.url]);
    await eventually(async () => (cluster.status === 'ready' ? true : undefined));
  });
  afterAll(() => cluster.disconnect());

  test('takes every call as a server does, also where keys hold braces of their own', async () => {
    const name = uniqueName('cluster');
    const store = storeOf(cluster, { name, limits });
    await everyOperation(store);
    const shops = ['{x}', '}{', '{}'];
    const verdicts = await Promise.all(
      shops.map((shop) => store.acquire(ask({ shop: 2, calls: 0 }, { shop }), AT_ONCE)),
    );
    expect(verdicts.map(({ granted }) => granted)).toEqual([true, true, true]);
    const node = cluster.nodes('master')[0]!;
    expect(await keysWithoutTtl(node, `flyball:{${name}}:*`)).toEqual([`flyball:{${name}}:config`]);
  });

  test('may lose its script cache unseen, and stays open for its owner', async () => {
    const governor = governorOf({
      name: uniqueName('cluster'),
      connection: cluster,
      limits: { calls: perHour(1, { burst: 5 }) },
    });
    let granted = 0;
    for (let call = 0; call < 8; call++) {
      if ((await governor.allow()).allowed) granted++;
      await cluster.nodes('master')[0]!.script('FLUSH');
    }
    expect(granted).toBe(5);
    await governor.close();
    expect(cluster.status).toBe('ready');
  });
});

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

describe('close', () => {
  test('waits for what was asked before, and answers it', async () => {
    const name = uniqueName('close');
    const config = parseGovernorOptions({ name, limits: { calls: perHour(1, { burst: 2_500 }) } });
    const store = new RedisStore(config, redisClient(redisUrl()));
    const asked = Array.from({ length: 2_500 }, () => store.acquire(ask(), AT_ONCE));
    const closed = store.close();
    const late = store.acquire(ask(), AT_ONCE);
    await expect(late).rejects.toMatchObject({ code: 'FLYBALL_GOVERNOR_CLOSED' });
    const verdicts = await Promise.all(asked);
    await closed;
    expect(verdicts.filter(({ granted }) => granted)).toHaveLength(2_500);
    expect(await redis.hget(`flyball:{${name}}:limit:calls`, 'granted')).toBe('2500');
  });

  test('before anything was asked opens and leaves nothing', async () => {
    const name = uniqueName('close');
    const governor = governorOf({ name, connection: redisUrl(), limits });
    await governor.close();
    expect(await keysOf(redis, `flyball:{${name}}:*`)).toEqual([]);
  });

  test('gives back what waits hold', async () => {
    const name = uniqueName('close');
    const governor = governorOf({
      name,
      connection: redisUrl(),
      limits: { calls: perHour(60, { burst: 2 }) },
    });
    await governor.waitN(2);
    const waits = Promise.allSettled([governor.wait(), governor.wait(), governor.wait()]);
    const granted = () => redis.hget(`flyball:{${name}}:limit:calls`, 'granted');
    await eventually(async () => ((await granted()) === '5' ? true : undefined));
    await governor.close();
    for (const wait of await waits)
      expect(wait).toMatchObject({ reason: { code: 'FLYBALL_GOVERNOR_CLOSED' } });
    expect(await granted()).toBe('2');
  });
});
