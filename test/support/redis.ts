import { randomBytes } from 'node:crypto';
import { Redis, type RedisOptions } from 'ioredis';
import { afterAll, inject } from 'vitest';
import { type RunningServer, serverBinary, startServer } from '../../scripts/redis.ts';
import type {} from './redis-global-setup.ts';

const clients = new Set<Redis>();
const servers = new Set<RunningServer>();

afterAll(async () => {
  for (const client of clients) client.disconnect();
  await Promise.all([...servers].map((server) => server.stop()));
});

/** The address of the Redis that all integration tests share. */
export function redisUrl(): string {
  return inject('redisUrl');
}

/** A client for it, or for `url`, closed after the test file. */
export function connect(options: Omit<RedisOptions, 'replyMapping'> = {}, url = redisUrl()): Redis {
  const client = new Redis(url, options);
  clients.add(client);
  return client;
}

/** A name no other test has: the namespace of one test in the shared Redis. */
export function uniqueName(prefix = 'test'): string {
  return `${prefix}-${randomBytes(6).toString('hex')}`;
}

/** All keys that match a glob such as `flyball:{name}:*`, in order. */
export async function keysOf(client: Redis, pattern: string): Promise<string[]> {
  const keys = new Set<string>();
  for await (const batch of client.scanStream({ match: pattern, count: 1_000 })) {
    for (const key of batch as string[]) keys.add(key);
  }
  return [...keys].sort();
}

/** Those of them that would stay for ever. */
export async function keysWithoutTtl(client: Redis, pattern: string): Promise<string[]> {
  const keys = await keysOf(client, pattern);
  const ttls = await Promise.all(keys.map((key) => client.pttl(key)));
  return keys.filter((_, index) => ttls[index] === -1);
}

/**
 * Starts a server of the test's own, to be stopped, paused or filled at will. Ended after the test file.
 *
 * @param args - More server arguments, for example `['--maxmemory', '20mb']`.
 * @param port - Default: a free one. Give the old one to bring a server back at the same address.
 */
export async function startRedis(args: readonly string[] = [], port?: number): Promise<RunningServer> {
  const server = await startServer(await serverBinary(), port === undefined ? { args } : { args, port });
  servers.add(server);
  return server;
}
