import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { Terms } from '../../../src/core/decide/ask.ts';
import { StoreUnavailableError } from '../../../src/core/errors.ts';
import { perHour, perSecond } from '../../../src/core/limits/rate.ts';
import type { RedisStore } from '../../../src/store/redis/redis-store.ts';
import { type Start, worstExcess } from '../../support/ledger.ts';
import { uniqueName } from '../../support/redis.ts';
import { eventually, governorOf, ownServer, storeOf } from '../support/stores.ts';
import { AT_ONCE, ask, WHENEVER } from '../support/terms.ts';

const one = ask();

/** Asks as fast as the store answers, until told to stop; what is granted is noted by the server's clock. */
function busy(store: RedisStore, starts: Start[], errors: unknown[], terms = AT_ONCE) {
  let stopped = false;
  const ended = (async () => {
    while (!stopped) {
      try {
        const verdict = await store.acquire(one, terms);
        if (verdict.granted) starts.push({ atUs: verdict.receipt.startUs, cost: 1 });
        if (verdict.waitUs > 0) await sleep(Math.min(verdict.waitUs / 1_000, 20));
      } catch (error) {
        errors.push(error);
        await sleep(5);
      }
    }
  })();
  return {
    stop: () => {
      stopped = true;
      return ended;
    },
  };
}

const allUnavailable = (errors: readonly unknown[]) =>
  expect(errors.filter((error) => !(error instanceof StoreUnavailableError))).toEqual([]);

describe('the script cache is lost', () => {
  test('SCRIPT FLUSH between calls is invisible: exactly the burst is granted', async () => {
    const server = await ownServer();
    const redis = server.admin;
    const governor = governorOf({
      name: uniqueName('flush'),
      connection: server.url,
      limits: { calls: perHour(1, { burst: 10 }) },
    });
    let granted = 0;
    for (let call = 0; call < 20; call++) {
      await redis.script('FLUSH');
      if ((await governor.allow()).allowed) granted++;
    }
    expect(granted).toBe(10);
  });

  test('SCRIPT FLUSH while many calls are under way loses and doubles none', async () => {
    const server = await ownServer();
    const redis = server.admin;
    const limits = { calls: perHour(1, { burst: 700 }) };
    const name = uniqueName('flush');
    const governors = [1, 2, 3].map(() => governorOf({ name, connection: server.url, limits }));
    const asked: Promise<{ allowed: boolean }>[] = [];
    for (let round = 0; round < 30; round++) {
      for (const governor of governors) for (let call = 0; call < 10; call++) asked.push(governor.allow());
      await redis.script('FLUSH');
    }
    const decisions = await Promise.all(asked);
    expect(decisions.filter(({ allowed }) => allowed)).toHaveLength(700);
    expect(await redis.hget(`flyball:{${name}}:limit:calls`, 'granted')).toBe('700');
  });
});

describe('the data is lost', () => {
  test.for<[string, Terms]>([
    ['who asks again and again', AT_ONCE],
    ['who reserves ahead', { ...AT_ONCE, maxWaitUs: 300_000 }],
  ])(
    'FLUSHALL in mid-run: the bound holds over the whole run, and the work goes on, for %s',
    async ([, terms]) => {
      const server = await ownServer();
      const name = uniqueName('flushall');
      const limits = { calls: perSecond(500, { burst: 50 }) };
      const stores = [1, 2, 3].map(() => storeOf(server.url, { name, limits }));
      const starts: Start[] = [];
      const errors: unknown[] = [];
      const workers = stores.flatMap((store) =>
        Array.from({ length: 10 }, () => busy(store, starts, errors, terms)),
      );
      const grantMore = (count: number) => {
        const granted = starts.length;
        return eventually(async () => (starts.length > granted + count ? true : undefined));
      };
      for (let flush = 0; flush < 2; flush++) {
        await grantMore(150);
        await server.admin.flushall();
      }
      await grantMore(150);
      await Promise.all(workers.map((worker) => worker.stop()));
      expect(errors).toEqual([]);
      expect(worstExcess(starts, limits.calls)).toBeLessThanOrEqual(0);
      expect(await server.admin.hgetall(`flyball:{${name}}:config`)).toMatchObject({
        version: expect.stringMatching(/^[1-9]\d*$/),
        coldAt: expect.stringMatching(/^[1-9]\d{15}$/),
        limits: expect.stringContaining('"calls"'),
      });
    },
  );

  test('what was promised before the loss starts first: new grants come after it', async () => {
    const server = await ownServer();
    const limits = { calls: perSecond(100, { burst: 5 }) };
    const store = storeOf(server.url, { name: uniqueName('flushall'), limits });
    await store.acquire({ ...one, cost: 5 }, AT_ONCE);
    let promisedUs = 0;
    for (let ahead = 0; ahead < 60; ahead++) {
      const verdict = await store.acquire({ ...one, cost: 5 }, WHENEVER);
      if (verdict.granted) promisedUs = verdict.receipt.startUs;
    }
    await server.admin.flushall();
    const after = await store.acquire(one, WHENEVER);
    const startUs = after.granted ? after.receipt.startUs : 0;
    expect(startUs).toBe(promisedUs + 10_000);
  });

  test('after FLUSHALL the config is written again, and buckets start empty, also those never seen', async () => {
    const server = await ownServer();
    const redis = server.admin;
    const name = uniqueName('flushall');
    const limits = { shop: perHour(1, { burst: 5, by: 'shop' }) };
    const governor = governorOf({ name, connection: server.url, limits });
    expect(await governor.allowN(2, { keys: { shop: 'a' } })).toMatchObject({ allowed: true });
    const before = await redis.hgetall(`flyball:{${name}}:config`);
    expect(before.coldAt).toBe('0');
    await redis.flushall();
    for (const shop of ['a', 'b']) {
      const decision = await governor.allow({ keys: { shop } });
      expect(decision).toMatchObject({ allowed: false, limit: 'shop', reason: 'rate' });
    }
    const after = await redis.hgetall(`flyball:{${name}}:config`);
    expect(after.limits).toBe(before.limits);
    expect(Number(after.created)).toBeGreaterThan(Number(before.created));
    // A second later, since any process may hold what it was promised for that long.
    expect(Number(after.coldAt)).toBe(Number(after.created) + 1_000_000);
  });

  test('what was promised ahead of the loss is not granted again after it, by whichever process', async () => {
    const server = await ownServer();
    const redis = server.admin;
    const name = uniqueName('flushall');
    const limits = { calls: perSecond(100, { burst: 10 }) };
    const [far, near, other] = [1, 2, 3].map(() => storeOf(server.url, { name, limits }));
    const starts: Start[] = [];
    const take = async (store: typeof far, count: number) => {
      const verdicts = await Promise.all(
        Array.from({ length: count }, () => store!.acquire(ask(), WHENEVER)),
      );
      for (const verdict of verdicts)
        if (verdict.granted) starts.push({ atUs: verdict.receipt.startUs, cost: 1 });
    };
    await take(other, 1);
    await take(near, 60); // held for up to a second, as jobs are
    await redis.flushall();
    await take(other, 20);
    expect(worstExcess(starts, limits.calls)).toBeLessThanOrEqual(0);
    await take(far, 400); // and one that reserved four seconds ahead is the first to notice the next loss
    await redis.flushall();
    await take(far, 20);
    await take(other, 20);
    expect(starts).toHaveLength(521);
    expect(worstExcess(starts, limits.calls)).toBeLessThanOrEqual(0);
  });

  test('a process that starts after the loss, before the others noticed it, gives no burst twice', async () => {
    const server = await ownServer();
    const redis = server.admin;
    const name = uniqueName('flushall');
    const limits = { calls: perHour(1, { burst: 5 }) };
    const old = storeOf(server.url, { name, limits });
    expect(await old.acquire({ ...one, cost: 3 }, AT_ONCE)).toMatchObject({ granted: true });
    await redis.flushall();
    const fresh = storeOf(server.url, { name, limits });
    await fresh.limits();
    // The one that knew tells the store that something was granted before.
    expect(await old.acquire(one, AT_ONCE)).toMatchObject({ granted: false });
    expect(await fresh.acquire(one, AT_ONCE)).toMatchObject({ granted: false });
  });

  test('a grant made before the loss cannot be given back to the buckets after it', async () => {
    const server = await ownServer();
    const redis = server.admin;
    const store = storeOf(server.url, {
      name: uniqueName('flushall'),
      limits: { calls: perHour(1, { burst: 1 }) },
    });
    await store.acquire(one, AT_ONCE);
    const reserved = await store.acquire(one, { ...AT_ONCE, maxWaitUs: 2 ** 50 });
    await redis.flushall();
    expect(reserved.granted && (await store.cancel(reserved.receipt))).toBe(false);
  });
});

describe('the connection is lost', () => {
  test('CLIENT KILL: fails no call for long, comes back by itself, and charges nothing twice', async () => {
    const server = await ownServer();
    const redis = server.admin;
    const name = uniqueName('kill');
    const limits = { calls: perHour(1, { burst: 100_000 }) };
    const store = storeOf(server.url, { name, limits });
    await store.limits();
    const starts: Start[] = [];
    const errors: unknown[] = [];
    const workers = [1, 2, 3, 4].map(() => busy(store, starts, errors));
    let killed = 0;
    for (let round = 0; round < 5; round++) {
      const grantedBefore = starts.length;
      await eventually(async () => (starts.length > grantedBefore ? true : undefined));
      killed += Number(await redis.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes'));
      const granted = starts.length;
      await eventually(async () => (starts.length > granted + 20 ? true : undefined));
    }
    await Promise.all(workers.map((worker) => worker.stop()));
    expect(killed).toBeGreaterThanOrEqual(5);
    allUnavailable(errors);
    // What was decided and not heard of is charged; what was heard of is charged once.
    const charged = Number(await redis.hget(`flyball:{${name}}:limit:calls`, 'granted'));
    expect(charged).toBeGreaterThanOrEqual(starts.length);
    expect(charged).toBeLessThanOrEqual(starts.length + errors.length);
  });

  test('the server ends and comes back at the same address: so does the governor, without an error on the way', async () => {
    const server = await ownServer();
    const name = uniqueName('restart');
    const limits = { calls: perSecond(200, { burst: 20 }) };
    const store = storeOf(server.url, { name, limits });
    const starts: Start[] = [];
    const errors: unknown[] = [];
    const unhandled: unknown[] = [];
    const note = (error: unknown) => unhandled.push(error);
    process.on('unhandledRejection', note);
    onTestFinished(() => void process.off('unhandledRejection', note));
    const worker = busy(store, starts, errors);
    await eventually(async () => (starts.length >= 20 ? true : undefined));
    await server.stop();
    await eventually(async () => (errors.length >= 5 ? true : undefined));
    const grantedBefore = starts.length;
    await ownServer(server.port);
    await eventually(async () => (starts.length > grantedBefore + 20 ? true : undefined));
    await worker.stop();
    allUnavailable(errors);
    expect(unhandled).toEqual([]);
    // The new server has no data, and no burst is granted for that.
    expect(worstExcess(starts, limits.calls)).toBeLessThanOrEqual(0);
  });

  test('a server that is not there yet: calls fail with the reason, and pass once it is', async () => {
    const server = await ownServer();
    await server.stop();
    const governor = governorOf({
      name: uniqueName('early'),
      connection: server.url,
      limits: { calls: perHour(1, { burst: 3 }) },
    });
    const failed = governor.allow();
    await expect(failed).rejects.toBeInstanceOf(StoreUnavailableError);
    await expect(failed).rejects.toThrow(/ECONNREFUSED/);
    await ownServer(server.port);
    const decision = await eventually(() => governor.allowN(3));
    expect(decision).toMatchObject({ allowed: true });
    expect(await governor.allow()).toMatchObject({ allowed: false });
  });

  test('a governor whose server never answers can be closed', async () => {
    const server = await ownServer();
    await server.stop();
    const limits = { calls: perHour(1) };
    const governor = governorOf({ name: uniqueName('never'), connection: server.url, limits });
    const waiting = governor.wait();
    await expect(waiting).rejects.toBeInstanceOf(StoreUnavailableError);
    await governor.close();
  });
});

test('a server demoted under a live connection: it is dropped, and used again once the server is a master', async () => {
  const server = await ownServer();
  const redis = server.admin;
  const name = uniqueName('demoted');
  const governor = governorOf({
    name,
    connection: server.url,
    limits: { calls: perHour(1, { burst: 1_000 }) },
  });
  await governor.allow();
  const idOf = async () =>
    /id=(\d+) [^\n]*name=flyball /.exec(String(await redis.call('CLIENT', 'LIST', 'TYPE', 'normal')))?.[1];
  const before = await idOf();
  expect(before).toBeDefined();
  // A master that does not exist: the data stays, and nothing can be written.
  await redis.replicaof('127.0.0.1', 1);
  const refused = governor.allow();
  await expect(refused).rejects.toBeInstanceOf(StoreUnavailableError);
  await expect(refused).rejects.toThrow(/READONLY/);
  await eventually(async () => ((await idOf()) === before ? undefined : true));
  await redis.replicaof('NO', 'ONE');
  expect(await eventually(() => governor.allow())).toMatchObject({ allowed: true });
  expect(await redis.hget(`flyball:{${name}}:limit:calls`, 'granted')).toBe('2');
});
