import { StoreUnavailableError } from '../../../core/errors.ts';
import { IoredisSubscriber } from './ioredis-subscriber.ts';
import type { RedisClient } from './redis-client.ts';

/** An ioredis `Redis` or `Cluster`, version 5 or 6, as far as it is recognised by. */
export interface IoredisLike {
  readonly status: string;
  readonly options: object;
  duplicate(...args: never[]): unknown;
  evalsha(...args: never[]): unknown;
  quit(...args: never[]): unknown;
}

/** The same, as far as it is used. */
export interface Ioredis extends IoredisLike {
  readonly isCluster?: boolean;
  on(event: string, listener: (...args: never[]) => void): unknown;
  off(event: string, listener: (...args: never[]) => void): unknown;
  duplicate(...args: unknown[]): Ioredis;
  evalsha(sha1: string, numberOfKeys: number, ...keysAndArgs: string[]): Promise<unknown>;
  eval(source: string, numberOfKeys: number, ...keysAndArgs: string[]): Promise<unknown>;
  info(section: string): Promise<unknown>;
  ping(): Promise<unknown>;
  subscribe(...channels: string[]): Promise<unknown>;
  unsubscribe(channel: string): Promise<unknown>;
  quit(): Promise<unknown>;
  disconnect(): void;
}

export interface IoredisModule {
  readonly Redis: new (url: string, options: object) => IoredisLike;
}

const LOST = ['close', 'end'];
const OLDEST = [6, 2] as const;
const QUIT_MS = 1_000;
const MAX_RETRY_MS = 2_000;

// Doubled from 20 ms up to two seconds, and spread, so that a fleet that lost one server does not return in one blow.
const retryDelayMs = (times: number): number =>
  Math.min(MAX_RETRY_MS, 20 * 2 ** Math.min(times - 1, 10)) * (0.5 + Math.random() / 2);

// Of every connection, be it to a single server or to a node of a cluster.
const CONNECTION = {
  enableAutoPipelining: false,
  enableReadyCheck: true,
  readOnly: false,
  stringNumbers: false,
  connectionName: 'flyball',
  // A call is sent once or not at all. One that is queued, or sent again after its connection was lost, is decided when
  // nobody waits for it any more, and its tokens are lost.
  maxRetriesPerRequest: 0,
  autoResendUnfulfilledCommands: false,
  // A peer that is gone without a word; the server answers within milliseconds or not at all.
  socketTimeout: 5_000,
  // A server that was demoted, or is loading its data, keeps its connections and refuses every write on them.
  reconnectOnError: (error: Error) => /\b(READONLY|LOADING|MASTERDOWN)\b/.test(error.message),
};

const SINGLE = {
  ...CONNECTION,
  lazyConnect: false,
  enableOfflineQueue: false,
  retryStrategy: retryDelayMs,
};

const CLUSTER = {
  redisOptions: CONNECTION,
  lazyConnect: false,
  enableOfflineQueue: false,
  enableAutoPipelining: false,
  scaleReads: 'master',
  // Else calls whose connection was lost are sent again, charged or not.
  retryDelayOnFailover: 0,
  clusterRetryStrategy: retryDelayMs,
};

/** A connection to the same server as `connection`, with the options that a governor needs. */
export function ownConnection(connection: IoredisLike): IoredisLike {
  const given = connection as Ioredis;
  return given.isCluster ? given.duplicate([], CLUSTER) : given.duplicate(SINGLE);
}

// Told apart in CLIENT LIST. It subscribes again itself, since ioredis leaves an error of that to nobody.
const LISTENING = { connectionName: 'flyball-events', autoResubscribe: false };

/** A connection like the governor's own, to listen on. */
const listeningConnection = (own: Ioredis): Ioredis =>
  own.isCluster ? own.duplicate([], { redisOptions: LISTENING }) : own.duplicate(LISTENING);

/**
 * One connection through ioredis, and a second one once somebody listens to a channel.
 *
 * Connecting: a call waits for the attempt under way, and fails with it. Ready: calls are sent. Lost: ioredis tries
 * again for as long as this client is open; from the first attempt that failed until one succeeds, calls made between
 * attempts fail at once with the reason.
 */
export class IoredisClient implements RedisClient {
  readonly #opened: Promise<Ioredis>;
  #usable: Ioredis | undefined;
  #checked: Promise<void> | undefined;
  #subscriber: IoredisSubscriber | undefined;
  #closed = false;
  #failedAttempts = 0;
  #lastError: unknown = new Error('the connection was closed');

  get countsListeners(): boolean {
    return this.#usable?.isCluster !== true;
  }

  /** @param open - Makes the connection; called at once. */
  constructor(open: () => IoredisLike | Promise<IoredisLike>) {
    this.#opened = Promise.resolve(open()).then((redis) => this.#watch(redis as Ioredis));
    // Whoever calls gets the error; without a call nobody needs it.
    this.#opened.catch(() => {});
  }

  async evalsha(sha1: string, keys: readonly string[], args: readonly string[]): Promise<unknown> {
    const redis = this.#readyNow() ?? (await this.#ready());
    return redis.evalsha(sha1, keys.length, ...keys, ...args);
  }

  async eval(source: string, keys: readonly string[], args: readonly string[]): Promise<unknown> {
    const redis = this.#readyNow() ?? (await this.#ready());
    return redis.eval(source, keys.length, ...keys, ...args);
  }

  async subscribe(channel: string, listener: (message: string | null) => void): Promise<() => Promise<void>> {
    if (this.#closed) return async () => {};
    this.#subscriber ??= new IoredisSubscriber(async () => listeningConnection(await this.#opened));
    return this.#subscriber.subscribe(channel, listener);
  }

  async close(): Promise<void> {
    this.#closed = true;
    await this.#subscriber?.close();
    const redis = await this.#opened.catch(() => undefined);
    if (redis === undefined || redis.status === 'end') return;
    if (redis.status !== 'ready') return redis.disconnect();
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, QUIT_MS);
    });
    await Promise.race([redis.quit().catch(() => {}), late]);
    clearTimeout(timer);
    redis.disconnect();
  }

  #readyNow(): Ioredis | undefined {
    return this.#usable?.status === 'ready' ? this.#usable : undefined;
  }

  async #ready(): Promise<Ioredis> {
    const redis = await this.#opened;
    if (redis.status !== 'ready') await this.#attempt(redis);
    this.#checked ??= refuseOldServer(redis);
    await this.#checked;
    this.#usable = redis;
    return redis;
  }

  #watch(redis: Ioredis): Ioredis {
    let wasReady = false;
    redis.on('ready', () => {
      wasReady = true;
      this.#failedAttempts = 0;
    });
    redis.on('close', () => {
      if (!wasReady) this.#failedAttempts++;
      wasReady = false;
    });
    // Also keeps the event from ending the process.
    redis.on('error', (error: unknown) => {
      this.#lastError = error;
    });
    return redis;
  }

  #attempt(redis: Ioredis): Promise<void> {
    const isBetweenAttempts = redis.status === 'reconnecting' && this.#failedAttempts > 0;
    if (isBetweenAttempts || redis.status === 'end') return Promise.reject(this.#lastError);
    return new Promise((resolve, reject) => {
      const done = (settle: () => void) => () => {
        redis.off('ready', onReady);
        for (const event of LOST) redis.off(event, onLost);
        settle();
      };
      const onReady = done(resolve);
      const onLost = done(() => reject(this.#lastError));
      redis.on('ready', onReady);
      for (const event of LOST) redis.on(event, onLost);
    });
  }
}

async function refuseOldServer(redis: Ioredis): Promise<void> {
  let info: unknown;
  try {
    info = await redis.info('server');
  } catch {
    // Some services do not let one ask; the scripts will tell.
    return;
  }
  const version = /redis_version:((\d+)\.(\d+)\S*)/.exec(String(info));
  if (version === null) return;
  const [major, minor] = [Number(version[2]), Number(version[3])];
  if (major > OLDEST[0] || (major === OLDEST[0] && minor >= OLDEST[1])) return;
  const needed = `flyball needs Redis ${OLDEST.join('.')} or newer`;
  throw new StoreUnavailableError(`${needed}; the server is ${version[1]}`);
}
