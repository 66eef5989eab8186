import type { Log, ServerBinary } from './redis/binary.ts';
import { checkRedis, supported } from './redis/check.ts';
import { debianBinary } from './redis/debian.ts';
import { dockerRedis } from './redis/docker.ts';
import { binaryOnPath } from './redis/on-path.ts';
import { startServer } from './redis/server.ts';

export type { ServerBinary } from './redis/binary.ts';
export { type RunningServer, type StartOptions, startServer } from './redis/server.ts';

/** A Redis to work with, wherever it came from. */
export interface ProvidedRedis {
  url: string;
  port: number;
  /** Where it came from, for people. */
  how: string;
  /** The server's process id, if it is a process that was started here. */
  pid?: number;
  /** Ends the server if it was started here; leaves one that was given by `REDIS_URL` alone. */
  stop(): Promise<void>;
}

export interface ProvideOptions {
  /** Told what is done, a line at a time. Default: nobody. */
  log?: Log;
  /** More server arguments. A server given by `REDIS_URL` cannot take them, so it is passed over. */
  args?: readonly string[];
}

/**
 * Provides a Redis: the one place where demo, tests, benchmarks and CI get theirs.
 *
 * In this order: `REDIS_URL`; a server on the PATH; Docker, if an engine answers; the Debian or Ubuntu
 * package, unpacked into this project's cache. All but the first are private to the caller, and end with
 * `stop()` or with this process, however it ends.
 *
 * @throws Error if `REDIS_URL` is set but not usable: what was asked for by name is not replaced in silence.
 * @throws Error that says what to install if there is no other way.
 */
export async function provideRedis(options: ProvideOptions = {}): Promise<ProvidedRedis> {
  const { log, args = [] } = options;
  const given = process.env.REDIS_URL;
  if (given && args.length === 0) return givenRedis(given);

  const ways: (() => Promise<ProvidedRedis>)[] = [
    () => processOf(binaryOnPath(), args),
    () => dockerRedis(args, log),
    () => processOf(debianBinary(log), args),
  ];
  const redis = await firstOf(ways);
  log?.(`Redis on port ${redis.port}: ${redis.how}`);
  return redis;
}

/**
 * Finds a server that can be started as a plain process, any number of times, with {@link startServer}: on
 * the PATH, else from the Debian or Ubuntu package.
 *
 * @throws Error that says what to install if there is none.
 */
export function serverBinary(options: { log?: Log } = {}): Promise<ServerBinary> {
  return firstOf([binaryOnPath, () => debianBinary(options.log)]);
}

async function firstOf<T>(ways: readonly (() => Promise<T>)[]): Promise<T> {
  const refusals: string[] = [];
  for (const way of ways) {
    try {
      return await way();
    } catch (error) {
      refusals.push((error as Error).message);
    }
  }
  throw new Error(
    `no Redis to be had: install redis-server (${supported}), start Docker, or set REDIS_URL (${refusals.join('; ')})`,
  );
}

async function givenRedis(url: string): Promise<ProvidedRedis> {
  const { version } = await checkRedis(url);
  return {
    url,
    port: Number(new URL(url).port || 6379),
    how: `REDIS_URL (${version})`,
    stop: async () => {},
  };
}

async function processOf(found: Promise<ServerBinary>, args: readonly string[]): Promise<ProvidedRedis> {
  const binary = await found;
  return { ...(await startServer(binary, { args })), how: binary.how };
}
