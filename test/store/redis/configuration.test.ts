import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { type Limits, type LimitsOptions, parseLimits } from '../../../src/core/limits/limit.ts';
import { perHour, type RateLimit } from '../../../src/core/limits/rate.ts';
import type { StoreMessage } from '../../../src/core/ports/messages.ts';
import type { RedisClient } from '../../../src/store/redis/client/redis-client.ts';
import { RedisStore } from '../../../src/store/redis/redis-store.ts';
import { registerScript } from '../../../src/store/redis/scripts.generated.ts';
import { clientWithTime } from '../../lua/support/injected-time.ts';
import { connect, keysOf, keysWithoutTtl, redisUrl, uniqueName } from '../../support/redis.ts';
import { ownServer, storeOf } from '../support/stores.ts';
import { AT_ONCE, ask } from '../support/terms.ts';

const redis = connect();
const configOf = (name: string) => redis.hgetall(`flyball:{${name}}:config`);
const one = ask();
const burstIn = (limits: Limits): number => (limits[0] as RateLimit).burst;
const burstOf = (burst: number): LimitsOptions => ({ calls: perHour(1, { burst }) });

/** A process that starts with a burst of its own, by which its limits are told apart. */
function starts(name: string, burst: number, revision?: number, url = redisUrl()) {
  const store = storeOf(url, {
    name,
    limits: burstOf(burst),
    instance: `start-${burst}`,
    ...(revision === undefined ? {} : { revision }),
  });
  return {
    store,
    inForce: async () => burstIn(await store.limits()),
    set: (set: number, who = 'anna') => store.configure({ limits: parseLimits(burstOf(set)) }, who),
  };
}

describe('an operator over code', () => {
  test('wins in all processes, in those that start later, and after all have gone', async () => {
    const name = uniqueName('operator');
    const [a, b] = [starts(name, 10), starts(name, 10)];
    expect([await a.inForce(), await b.inForce()]).toEqual([10, 10]);
    await a.set(3);
    await b.store.acquire(one, AT_ONCE);
    expect([await a.inForce(), await b.inForce()]).toEqual([3, 3]);
    await Promise.all([a.store.close(), b.store.close()]);
    const c = starts(name, 20);
    expect(await c.inForce()).toBe(3);
    expect(await configOf(name)).toMatchObject({ version: '3' });
    await c.store.reset('ben');
    expect(await c.inForce()).toBe(20);
  });

  test('two who configure at the same time, again and again: no change is lost, each version is one change', async () => {
    const name = uniqueName('race');
    const stores = [1, 2, 3].map(() => starts(name, 10).store);
    await Promise.all(stores.map((store) => store.limits()));
    await Promise.all(
      stores.flatMap((store, process) =>
        Array.from({ length: 8 }, (_, change) =>
          store.configure({ limits: parseLimits({ [`p${process}-${change}`]: perHour(1) }) }, `p${process}`),
        ),
      ),
    );
    const { version, limits, history } = await stores[0]!.configuration();
    expect(version).toBe(25);
    expect(limits).toHaveLength(25);
    expect(history.map((change) => change.version)).toEqual(Array.from({ length: 24 }, (_, at) => 25 - at));
    expect(history.every(({ what }) => what.length === 1)).toBe(true);
  });

  test('limits of an operator that were damaged are an error, never left out, until they are reset', async () => {
    const name = uniqueName('damaged');
    const running = starts(name, 10);
    await running.set(3);
    await redis.hset(`flyball:{${name}}:config`, { operator: '[{"kind":"future"}]', version: 9 });
    await expect(running.store.acquire(one, AT_ONCE)).rejects.toThrow(/cannot read: \[{"kind":"future"}\]/);
    await expect(starts(name, 10).store.limits()).rejects.toThrow(/cannot read/);
    await expect(running.set(4)).rejects.toThrow(/cannot read/);
    await starts(name, 10).store.reset('ben');
    expect(await running.inForce()).toBe(10);
    const { history } = await running.store.configuration();
    expect(history[0]).toMatchObject({
      version: 10,
      who: 'ben',
      what: ['all limits (operator): unreadable → none'],
    });
  });

  test('leaves two keys without a TTL, the config and its history', async () => {
    const name = uniqueName('ttl');
    const { set } = starts(name, 10);
    await set(3);
    const keys = [`flyball:{${name}}:config`, `flyball:{${name}}:history`];
    expect(await keysWithoutTtl(redis, `flyball:{${name}}:*`)).toEqual(keys);
    const [entry] = await redis.lrange(keys[1]!, 0, -1);
    expect(JSON.parse(entry!)).toEqual({
      version: 2,
      atUs: Number((await configOf(name)).updatedAt),
      who: 'anna',
      what: ['calls (operator): none → 1 per hour, burst 3'],
    });
  });
});

describe('revisions of code', () => {
  test.for<[string, number | undefined, number | undefined, number]>([
    ['the higher one wins', 7, 8, 20],
    ['a lower one that starts later takes what is there', 8, 7, 10],
    ['of equal ones the latest start wins', 7, 7, 20],
    ['without any the latest start wins', undefined, undefined, 20],
    ['the first that is brought wins over none', undefined, 1, 20],
    ['none never replaces one', 1, undefined, 10],
  ])('%s', async ([, first, second, inForce]) => {
    const name = uniqueName('revision');
    const older = starts(name, 10, first);
    await older.inForce();
    const newer = starts(name, 20, second);
    expect(await newer.inForce()).toBe(inForce);
    await older.store.acquire(one, AT_ONCE);
    expect(await older.inForce()).toBe(inForce);
    const changed = inForce === 20;
    const revision = String(Math.max(first ?? 0, second ?? 0));
    expect(await configOf(name)).toMatchObject({ version: changed ? '2' : '1', revision });
    expect(await redis.llen(`flyball:{${name}}:history`)).toBe(changed ? 1 : 0);
  });

  test('what is taken over writes nothing', async () => {
    const name = uniqueName('revision');
    await starts(name, 10, 8).inForce();
    const before = await configOf(name);
    await starts(name, 20, 7).inForce();
    await starts(name, 20).inForce();
    expect(await configOf(name)).toEqual(before);
    expect(await keysOf(redis, `flyball:{${name}}:*`)).toEqual([`flyball:{${name}}:config`]);
  });

  test('a higher one with the same limits is kept, so that one in between cannot win', async () => {
    const name = uniqueName('revision');
    await starts(name, 10, 7).inForce();
    const newer = starts(name, 10, 9);
    await newer.inForce();
    expect(await starts(name, 20, 8).inForce()).toBe(10);
    const { history, revision } = await newer.store.configuration();
    expect(revision).toBe(9);
    expect(history).toMatchObject([{ version: 2, who: 'start-10', what: ['revision: 7 → 9'] }]);
  });

  test('a start is in the history: what it found and what it brought', async () => {
    const name = uniqueName('revision');
    await starts(name, 10).inForce();
    const { store } = starts(name, 20, 3);
    const { history } = await store.configuration();
    expect(history).toMatchObject([
      {
        version: 2,
        who: 'start-20',
        what: ['calls (code): 1 per hour, burst 10 → 1 per hour, burst 20', 'revision: none → 3'],
      },
    ]);
  });

  test('one that runs never writes, whatever it once brought', async () => {
    const name = uniqueName('revision');
    const running = starts(name, 10, 9);
    await running.inForce();
    await redis.hset(`flyball:{${name}}:config`, { version: 5, limits: JSON.stringify(limitsText(4)) });
    await running.store.acquire(one, AT_ONCE);
    expect(await running.inForce()).toBe(4);
    expect(await configOf(name)).toMatchObject({ version: '5' });
  });
});

const limitsText = (burst: number) => [{ name: 'calls', kind: 'rate', rate: 1, periodMs: 3_600_000, burst }];

describe('a rolling restart with two different limits', () => {
  /** Replaces processes of the old program one by one, looking at what is in force after each call of any of them. */
  async function roll(revisions: readonly (number | undefined)[], crashes: boolean) {
    const name = uniqueName('rolling');
    const start = (old: boolean) => starts(name, old ? 10 : 20, revisions[old ? 0 : 1]);
    let fleet = Array.from({ length: 6 }, () => start(true));
    const sampled: number[] = [];
    const sample = async () => {
      for (const { store, inForce } of fleet) {
        await store.acquire(one, AT_ONCE);
        sampled.push(await inForce());
      }
    };
    await sample();
    for (let replaced = 0; replaced < 6; replaced++) {
      const [oldest, ...others] = fleet;
      await oldest!.store.close();
      fleet = [...others, start(false)];
      // One of the old ones that is still to be replaced ends by itself, and is started again.
      if (crashes && replaced < 4) {
        await fleet[0]!.store.close();
        fleet[0] = start(true);
      }
      await sample();
    }
    const seen = sampled.filter((burst, at) => burst !== sampled[at - 1]);
    return { seen, version: (await configOf(name)).version };
  }

  test('without revisions: the limits change once', async () => {
    expect(await roll([], false)).toEqual({ seen: [10, 20], version: '2' });
  });

  test('with revisions, and old processes that crash and start again: the limits change once', async () => {
    expect(await roll([7, 8], true)).toEqual({ seen: [10, 20], version: '2' });
    expect(await roll([undefined, 8], true)).toEqual({ seen: [10, 20], version: '2' });
  });
});

describe('starts that meet', () => {
  /** A client that lets others act before each registration reaches the server. */
  function interleaved(before: (registration: number) => Promise<void>): RedisClient {
    const inner = clientWithTime(connect(), () => Date.now() * 1_000);
    let registrations = 0;
    return {
      ...inner,
      evalsha: async (sha1, keys, args) => {
        if (sha1 === registerScript.sha1) await before(++registrations);
        return inner.evalsha(sha1, keys, args);
      },
    };
  }

  test('what the history says of a start is what it replaced, also if others came in between', async () => {
    const name = uniqueName('meet');
    await starts(name, 10).inForce();
    const client = interleaved(async (registration) => {
      if (registration === 2) await starts(name, 11).inForce();
      if (registration === 3) await starts(name, 12).set(99);
    });
    const store = new RedisStore({ name, limits: parseLimits(burstOf(20)), coldStart: 'full' }, client);
    const { history, limits, code } = await store.configuration();
    expect([burstIn(limits), burstIn(code)]).toEqual([99, 20]);
    expect(history.map(({ what }) => what)).toEqual([
      ['calls (code): 1 per hour, burst 12 → 1 per hour, burst 20'],
      ['calls (operator): none → 1 per hour, burst 99'],
      ['calls (code): 1 per hour, burst 11 → 1 per hour, burst 12'],
      ['calls (code): 1 per hour, burst 10 → 1 per hour, burst 11'],
    ]);
  });

  test('a config that is replaced all the time ends in an error, not in a loop', async () => {
    const name = uniqueName('meet');
    await starts(name, 10).inForce();
    const client = interleaved((registration) =>
      starts(name, 10 + registration)
        .inForce()
        .then(),
    );
    const store = new RedisStore({ name, limits: parseLimits(burstOf(99)), coldStart: 'full' }, client);
    await expect(store.limits()).rejects.toThrow(/changed 10 times/);
  });

  test('many at once, with two different limits, end with one of them, and each change is in the history', async () => {
    const name = uniqueName('meet');
    const fleet = Array.from({ length: 20 }, (_, index) => starts(name, index % 2 === 0 ? 10 : 20));
    await Promise.all(fleet.map(({ inForce }) => inForce()));
    for (const { store } of fleet) await store.acquire(one, AT_ONCE);
    const seen = new Set(await Promise.all(fleet.map(({ inForce }) => inForce())));
    expect(seen.size).toBe(1);
    const { version } = await configOf(name);
    expect(await redis.llen(`flyball:{${name}}:history`)).toBe(Number(version) - 1);
  });
});

describe('the data is lost', () => {
  async function server() {
    const { url, admin } = await ownServer();
    const name = uniqueName('lost');
    const config = () => admin.hgetall(`flyball:{${name}}:config`);
    return {
      name,
      admin,
      config,
      start: (burst: number, revision?: number) => starts(name, burst, revision, url),
    };
  }

  test('who writes it again writes what was in force: code’s limits, the operator’s, and the revision', async () => {
    const { admin, config, start } = await server();
    const running = start(10, 7);
    await running.set(3);
    const before = await config();
    await admin.flushall();
    expect(await running.store.acquire(one, AT_ONCE)).toMatchObject({ granted: false });
    const after = await config();
    expect(after).toMatchObject({
      limits: before.limits,
      operator: before.operator,
      revision: '7',
      version: '3',
    });
    expect(Number(after.coldAt)).toBe(Number(after.created) + 1_000_000);
    expect(await start(20, 6).inForce()).toBe(3);
    const { history } = await running.store.configuration();
    expect(history).toMatchObject([{ version: 3, who: 'start-10', what: [expect.stringContaining('lost')] }]);
  });

  test('one that starts before the others noticed cannot know of the operator; they put it back', async () => {
    const { admin, config, start } = await server();
    const running = start(10, 7);
    await running.set(3);
    await admin.flushall();
    const fresh = start(20, 6);
    expect(await fresh.inForce()).toBe(20);
    await running.store.acquire(one, AT_ONCE).catch(() => {});
    await fresh.store.acquire(one, AT_ONCE).catch(() => {});
    expect([await running.inForce(), await fresh.inForce()]).toEqual([3, 3]);
    expect(await config()).toMatchObject({
      revision: '7',
      limits: expect.stringContaining('"burst":10'),
      coldAt: expect.stringMatching(/^[1-9]\d{15}$/),
    });
  });

  test('what was reset, or set anew, after the loss is not undone by who remembers older days', async () => {
    for (const [change, expected] of [
      ['reset', 20],
      ['set', 5],
    ] as const) {
      const { admin, start } = await server();
      const running = start(10);
      await running.set(3);
      await admin.flushall();
      const fresh = start(20);
      await fresh.set(5, 'ben');
      if (change === 'reset') await fresh.store.reset('ben');
      await running.store.acquire(one, AT_ONCE).catch(() => {});
      expect([await running.inForce(), await fresh.inForce()]).toEqual([expected, expected]);
    }
  });
});

test('a process is told if what is in force is not what it brought, or if it replaced something', async () => {
  const name = uniqueName('told');
  const listening = (burst: number, revision?: number) => {
    const process = starts(name, burst, revision);
    const heard: StoreMessage[] = [];
    process.store.subscribe((message) => heard.push(message));
    return { ...process, heard };
  };
  const first = listening(10, 7);
  await first.inForce();
  expect(first.heard).toEqual([]);
  const older = listening(20, 6);
  await older.inForce();
  expect(older.heard).toMatchObject([
    { kind: 'configured', version: 1, who: 'start-10', limits: [{ burst: 10 }] },
  ]);
  const newer = listening(30, 8);
  await newer.inForce();
  expect(newer.heard).toMatchObject([{ kind: 'configured', version: 2, who: 'start-30' }]);
});

test('a burst of changes is met by a process that calls all the time without an error', async () => {
  const name = uniqueName('busy');
  const [steering, working] = [starts(name, 1_000), starts(name, 1_000)];
  await Promise.all([steering.inForce(), working.inForce()]);
  let isDone = false;
  const work = (async () => {
    while (!isDone) await working.store.acquire(one, AT_ONCE);
  })();
  // A call is made again at most ten times: at a pace at which changes do not come faster than calls.
  for (let burst = 500; burst < 540; burst++) {
    await steering.set(burst);
    await sleep(5);
  }
  isDone = true;
  await work;
  await working.store.acquire(one, AT_ONCE);
  expect(await working.inForce()).toBe(539);
  expect(await steering.inForce()).toBe(539);
});
