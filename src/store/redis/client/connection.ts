import { InvalidOptionError } from '../../../core/errors.ts';
import { IoredisClient, type IoredisLike, type IoredisModule, ownConnection } from './ioredis.ts';
import type { RedisClient } from './redis-client.ts';

export type { RedisClient } from './redis-client.ts';

/**
 * A `redis://` or `rediss://` URL; an ioredis `Redis` or `Cluster`, from which the governor opens a connection of its
 * own; or a {@link RedisClient}, which becomes the governor's.
 */
export type RedisConnection = string | IoredisLike | RedisClient;

/** @throws {@link InvalidOptionError} `FLYBALL_INVALID_OPTION` for anything else. */
export function redisClient(connection: RedisConnection): RedisClient {
  if (typeof connection === 'string') {
    const url = redisUrl(connection);
    return new IoredisClient(async () => ownConnection(fromUrl(await ioredis(url), url)));
  }
  if (isIoredis(connection)) {
    if (hasKeyPrefix(connection)) {
      throw new InvalidOptionError(
        'connection',
        "an ioredis client without keyPrefix, since processes with different ones would not share their limits (pass redis.duplicate({ keyPrefix: '' }), and tell environments apart by the governor's name)",
        'one with keyPrefix',
      );
    }
    return new IoredisClient(() => ownConnection(connection));
  }
  if (isRedisClient(connection)) return connection;
  throw new InvalidOptionError(
    'connection',
    'a redis:// or rediss:// URL, an ioredis Redis or Cluster, or an object with evalsha, eval and close',
    describe(connection),
  );
}

const PROTOCOLS = ['redis:', 'rediss:'];

function redisUrl(text: string): string {
  if (URL.canParse(text) && PROTOCOLS.includes(new URL(text).protocol)) return text;
  throw new InvalidOptionError(
    'connection',
    'a redis:// or rediss:// URL such as redis://127.0.0.1:6379',
    withoutSecret(text),
  );
}

// What stands before an @ may be a password, and errors are logged.
const withoutSecret = (url: string): string => url.replace(/^([a-z]+:\/\/)?.*@/i, '$1***@');

// Loaded only if a URL is given, so that nobody who brings another client has to install it.
async function ioredis(url: string): Promise<IoredisModule> {
  try {
    return (await import('ioredis')) as unknown as IoredisModule;
  } catch (error) {
    const missing = new InvalidOptionError(
      'connection',
      'the package "ioredis" to be installed (npm install ioredis) for a URL',
      withoutSecret(url),
    );
    missing.cause = error;
    throw missing;
  }
}

// A pattern to take the governor's own connection from; it never connects.
const fromUrl = ({ Redis }: IoredisModule, url: string): IoredisLike => new Redis(url, { lazyConnect: true });

const has = (value: unknown, ...methods: string[]): boolean =>
  typeof value === 'object' &&
  value !== null &&
  methods.every((method) => typeof (value as Record<string, unknown>)[method] === 'function');

// By its shape, since the user's copy of ioredis need not be ours.
function isIoredis(value: unknown): value is IoredisLike {
  return has(value, 'duplicate', 'evalsha', 'eval', 'quit') && has((value as IoredisLike).options);
}

const isRedisClient = (value: unknown): value is RedisClient => has(value, 'evalsha', 'eval', 'close');

function hasKeyPrefix({ options }: IoredisLike): boolean {
  const { keyPrefix, redisOptions } = options as {
    keyPrefix?: string;
    redisOptions?: { keyPrefix?: string };
  };
  return Boolean(keyPrefix) || Boolean(redisOptions?.keyPrefix);
}

function describe(value: unknown): unknown {
  if (has(value, 'evalSha')) return 'a node-redis client';
  return typeof value === 'object' && value !== null
    ? `an object of ${value.constructor?.name ?? 'no class'}`
    : value;
}
