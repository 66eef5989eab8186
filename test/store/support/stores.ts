import type { Redis } from 'ioredis';
import { onTestFinished } from 'vitest';
import type { ColdStart } from '../../../src/core/limits/governor-options.ts';
import { parseGovernorOptions } from '../../../src/core/limits/governor-options.ts';
import type { LimitsOptions } from '../../../src/core/limits/limit.ts';
import { type CreateGovernorOptions, createGovernor } from '../../../src/create-governor.ts';
import { type RedisConnection, redisClient } from '../../../src/store/redis/client/connection.ts';
import type { RedisClient } from '../../../src/store/redis/client/redis-client.ts';
import { RedisStore } from '../../../src/store/redis/redis-store.ts';
import { clientWithTime } from '../../lua/support/injected-time.ts';
import { connect, startRedis, uniqueName } from '../../support/redis.ts';

interface StoreOptions {
  readonly name: string;
  readonly limits: LimitsOptions;
  readonly coldStart?: ColdStart;
  readonly revision?: number;
  readonly instance?: string;
}

/** A Redis store with a connection of its own, closed after the test. */
export function storeOf(
  connection: RedisConnection,
  { instance = 'test', ...options }: StoreOptions,
): RedisStore {
  const store = new RedisStore({ ...parseGovernorOptions(options), instance }, redisClient(connection));
  onTestFinished(() => store.close());
  return store;
}

/** A Redis store whose time is that of the test: it stands still unless it is moved. */
export function timedStore(
  redis: Redis,
  {
    name = uniqueName('timed'),
    instance = 'test',
    ...options
  }: Omit<StoreOptions, 'name'> & { name?: string },
  subscribe?: RedisClient['subscribe'],
) {
  let nowUs = 1_700_000_000_000_000;
  const client = { ...clientWithTime(redis, () => nowUs), ...(subscribe && { subscribe }) };
  const store = new RedisStore({ ...parseGovernorOptions({ name, ...options }), instance }, client);
  const advanceUs = (us: number): void => {
    nowUs += us;
  };
  return { store, name, advanceUs };
}

/** A governor, closed after the test. */
export function governorOf(options: CreateGovernorOptions) {
  const governor = createGovernor(options);
  onTestFinished(() => governor.close());
  return governor;
}

/**
 * A server of the test's own and a client to look at it with, both ended with the test.
 *
 * @param port - Give the old one to bring a server back at the same address.
 */
export async function ownServer(port?: number) {
  const server = await startRedis([], port);
  const admin = connect({}, server.url);
  // Whoever stops the server means to.
  admin.on('error', () => {});
  onTestFinished(async () => {
    admin.disconnect();
    await server.stop();
  });
  return { url: server.url, port: server.port, admin, stop: () => server.stop() };
}

/** How often each command was called on this server since the statistics were reset. */
export async function callsOf(redis: Redis): Promise<Record<string, number>> {
  const info = await redis.info('commandstats');
  return Object.fromEntries(
    [...info.matchAll(/cmdstat_([^:]+):calls=(\d+)/g)].map(([, name, calls]) => [name!, Number(calls)]),
  );
}

/** Asks again until `ask` gives something other than undefined; what it throws counts as "not yet". */
export async function eventually<T>(ask: () => Promise<T | undefined>, withinMs = 10_000): Promise<T> {
  const deadlineMs = performance.now() + withinMs;
  let last: unknown;
  while (performance.now() < deadlineMs) {
    try {
      const found = await ask();
      if (found !== undefined) return found;
    } catch (error) {
      last = error;
    }
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  throw new Error(`it did not come about within ${withinMs} ms`, { cause: last });
}
