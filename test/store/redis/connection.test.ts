import { Cluster, Redis } from 'ioredis';
import { describe, expect, onTestFinished, test } from 'vitest';
import { InvalidOptionError } from '../../../src/core/errors.ts';
import { perHour } from '../../../src/core/limits/rate.ts';
import { createGovernor } from '../../../src/create-governor.ts';
import type { RedisConnection } from '../../../src/store/redis/client/connection.ts';
import { IoredisClient } from '../../../src/store/redis/client/ioredis.ts';
import type { RedisClient } from '../../../src/store/redis/client/redis-client.ts';
import { connect, keysOf, redisUrl, uniqueName } from '../../support/redis.ts';
import { eventually, governorOf, ownServer } from '../support/stores.ts';

const limits = { calls: perHour(1, { burst: 3 }) };

function refusalOf(connection: unknown): InvalidOptionError {
  try {
    createGovernor({ name: 'refused', limits, connection: connection as RedisConnection });
  } catch (error) {
    expect(error).toBeInstanceOf(InvalidOptionError);
    return error as InvalidOptionError;
  }
  throw new Error('it was accepted');
}

describe('a URL', () => {
  test('opens a connection of the governor’s own, to the database it names', async () => {
    const name = uniqueName('url');
    const governor = governorOf({ name, limits, connection: `${redisUrl()}/3` });
    expect(await governor.allowN(3)).toMatchObject({ allowed: true });
    expect(await keysOf(connect(), `flyball:{${name}}:*`)).toEqual([]);
    expect(await keysOf(connect({ db: 3 }), `flyball:{${name}}:*`)).toHaveLength(2);
  });

  test.for(['', ' ', 'redis', 'localhost:6379', 'http://127.0.0.1:6379', '127.0.0.1', '/tmp/redis.sock'])(
    'that is "%s" is refused, and shows one that is right',
    (url) => {
      const refusal = refusalOf(url);
      expect(refusal).toMatchObject({ option: 'connection' });
      expect(refusal.message).toContain('redis://127.0.0.1:6379');
    },
  );

  test('that is refused does not give its password away', () => {
    for (const url of ['http://user:hunter2@host:6379', 'user:hunter2@host', 'redis//:hunter2@host']) {
      const refusal = refusalOf(url);
      expect(`${refusal.message} ${refusal.received}`).not.toContain('hunter2');
      expect(refusal.message).toContain('host');
    }
  });
});

describe('an ioredis client', () => {
  test('stays open and as it was after the governor is closed, which leaves no connection behind', async () => {
    const { admin: redis } = await ownServer();
    const listeners = redis.listenerCount('error');
    const name = uniqueName('given');
    const governor = createGovernor({ name, limits, connection: redis });
    await governor.allow();
    const named = async () => String(await redis.client('LIST')).match(/name=flyball /g)?.length ?? 0;
    expect(await named()).toBe(1);
    await governor.close();
    expect(await eventually(async () => ((await named()) === 0 ? 0 : undefined))).toBe(0);
    expect(redis.status).toBe('ready');
    expect(await redis.ping()).toBe('PONG');
    expect(redis.listenerCount('error')).toBe(listeners);
  });

  test('gives its database and its other options to the governor, and connects nothing by being looked at', async () => {
    const name = uniqueName('lazy');
    const redis = new Redis(redisUrl(), { lazyConnect: true, db: 5 });
    const governor = governorOf({ name, limits, connection: redis });
    await governor.allow();
    expect(redis.status).toBe('wait');
    expect(await keysOf(connect({ db: 5 }), `flyball:{${name}}:*`)).toHaveLength(2);
    redis.disconnect();
  });

  test('with an offline queue, retries and resending has none of them in the governor’s connection', async () => {
    const server = await ownServer();
    const redis = new Redis(server.url, {
      lazyConnect: true,
      enableOfflineQueue: true,
      maxRetriesPerRequest: null,
      autoResendUnfulfilledCommands: true,
      enableAutoPipelining: true,
    });
    onTestFinished(() => redis.disconnect());
    const governor = governorOf({ name: uniqueName('offline'), limits, connection: redis });
    await governor.allow();
    await server.stop();
    // Answered, not kept for a server that may come back when nobody waits any more.
    await expect(governor.allow()).rejects.toMatchObject({ code: 'FLYBALL_STORE_UNAVAILABLE' });
    await expect(governor.allow()).rejects.toMatchObject({ code: 'FLYBALL_STORE_UNAVAILABLE' });
  });

  test('with keyPrefix is refused, and told what to do', async () => {
    const redis = new Redis(redisUrl(), { lazyConnect: true, keyPrefix: 'app:' });
    const cluster = new Cluster([redisUrl()], { lazyConnect: true, redisOptions: { keyPrefix: 'app:' } });
    for (const client of [redis, cluster]) {
      const { message } = refusalOf(client);
      expect(message).toContain('without keyPrefix');
      expect(message).toContain("duplicate({ keyPrefix: '' })");
      client.disconnect();
    }
    const governor = governorOf({
      name: uniqueName('prefix'),
      limits,
      connection: redis.duplicate({ keyPrefix: '' }),
    });
    expect(await governor.allow()).toMatchObject({ allowed: true });
  });
});

describe('a client of one’s own', () => {
  test('is used as it is, and closed once, with the governor', async () => {
    const inner = new IoredisClient(() => connect());
    const calls: string[] = [];
    const client: RedisClient = {
      evalsha: (...args) => {
        calls.push('evalsha');
        return inner.evalsha(...args);
      },
      eval: (...args) => {
        calls.push('eval');
        return inner.eval(...args);
      },
      close: () => {
        calls.push('close');
        return inner.close();
      },
    };
    const governor = createGovernor({ name: uniqueName('own'), limits, connection: client });
    expect(calls).toEqual([]);
    expect(await governor.allowN(3)).toMatchObject({ allowed: true });
    expect(await governor.allow()).toMatchObject({ allowed: false });
    await Promise.all([governor.close(), governor.close()]);
    expect(calls.filter((call) => call === 'close')).toHaveLength(1);
    expect(calls.at(-1)).toBe('close');
    expect(calls.filter((call) => call === 'evalsha').length).toBeGreaterThanOrEqual(3);
  });
});

describe('anything else', () => {
  const nodeRedis = { evalSha() {}, eval() {}, close() {} };
  test.for<[string, unknown]>([
    ['null', null],
    ['a port', 6379],
    ['true', true],
    ['options', { host: '127.0.0.1', port: 6379 }],
    ['a function', () => new Redis()],
    ['a promise', Promise.resolve()],
    ['half a client', { evalsha() {}, eval() {} }],
    ['a list of nodes', [{ host: '127.0.0.1', port: 6379 }]],
    ['a client of another package', nodeRedis],
  ])('such as %s is refused by name, before anything is opened', ([, connection]) => {
    const refusal = refusalOf(connection);
    expect(refusal.option).toBe('connection');
    expect(refusal.message).toMatch(/redis:\/\/.*ioredis.*evalsha/);
  });

  test('is named for what it is', () => {
    expect(refusalOf(nodeRedis).message).toContain('a node-redis client');
    expect(refusalOf({ host: '127.0.0.1' }).message).toContain('an object of Object');
  });
});
