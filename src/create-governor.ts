import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { Governor } from './core/governor.ts';
import { type GovernorOptions, parseGovernorOptions } from './core/limits/governor-options.ts';
import { MemoryStore } from './store/memory/memory-store.ts';
import { type RedisConnection, redisClient } from './store/redis/client/connection.ts';
import { RedisStore } from './store/redis/redis-store.ts';
import { systemClock } from './system-clock.ts';

export interface CreateGovernorOptions extends GovernorOptions {
  /**
   * Where the shared buckets live: an ioredis client or cluster (the governor opens a connection of its own from it,
   * with the same options), or a `redis://` or `rediss://` URL. Left out: in this process's memory, shared by nobody.
   */
  connection?: RedisConnection;
}

/**
 * Makes the governor of one downstream.
 *
 * Opens its connection in the background and needs no `await`: the first request waits for it. Nothing is written
 * until then. Processes that give the same `name` to the same Redis share the limits.
 *
 * @param options.name - Name of the downstream: 1 to 100 characters without spaces, control characters, colons or braces.
 * @param options.limits - At least one limit by name; see `perSecond` and its like.
 * @param options.connection - An ioredis client, a URL, or nothing for a governor of this process alone.
 * @param options.coldStart - `'full'` (default) or `'empty'`.
 * @param options.maxWaiters - The most calls that may wait in this process. Default 10,000.
 * @param options.graceMs - How late a held call may start. Default 100.
 * @param options.revision - Which edition of the limits this is; the highest ever brought wins over a later start.
 *
 * @throws {@link InvalidOptionError} `FLYBALL_INVALID_OPTION`: names the option, what was expected and what came.
 *
 * @example
 * const governor = createGovernor({
 *   name: 'shop-api',
 *   connection: 'redis://127.0.0.1:6379',
 *   limits: { calls: perSecond(100, { burst: 20 }), shop: perSecond(2, { burst: 40, by: 'shop' }) },
 * });
 * await governor.waitN(5, { keys: { shop: 'acme' } });
 */
export function createGovernor(options: CreateGovernorOptions): Governor {
  // Unique also among governors of one process, and still tells people where it is.
  const instance = `${hostname()}:${process.pid}:${randomUUID().slice(0, 8)}`;
  const config = { ...parseGovernorOptions(options, ['connection']), instance };
  const { connection } = options;
  const store =
    connection === undefined
      ? new MemoryStore(config, systemClock)
      : new RedisStore(config, redisClient(connection));
  const { name, maxWaiters, graceMs } = config;
  return new Governor({
    name,
    store,
    clock: systemClock,
    maxWaiters,
    graceMs,
    instance,
    random: Math.random,
    warn: (message) => process.emitWarning(message, 'FlyballWarning'),
  });
}
