import { Emitter } from '../../../core/ports/events.ts';
import type { Ioredis } from './ioredis.ts';

// Between two of them a peer that is gone without a word is not noticed; then the socket's timeout ends the connection.
const PING_EVERY_MS = 15_000;

/**
 * A connection that listens to channels, any number of them, each with any number of listeners.
 *
 * It is opened when this is made, and again whenever it is lost, until it is closed. Each new connection subscribes to all
 * channels, and tells the listeners of before (null) that they may have missed something. No error leaves this class: a
 * message that is lost costs nothing but time.
 */
export class IoredisSubscriber {
  readonly #listeners = new Emitter<Record<string, string | null>>();
  readonly #channels = new Set<string>();
  /** Channels that were subscribed to when the connection was lost. */
  #interrupted: readonly string[] = [];
  #pinging: NodeJS.Timeout | undefined;
  readonly #opened: Promise<Ioredis | undefined>;

  /** @param open - Makes the connection, which is used for nothing else; called at once. */
  constructor(open: () => Promise<Ioredis>) {
    this.#opened = open().then(
      (redis) => this.#watch(redis),
      () => undefined,
    );
  }

  /** Resolves when the server has confirmed it, or when it is left to the next connection. */
  async subscribe(channel: string, listener: (message: string | null) => void): Promise<() => Promise<void>> {
    const remove = this.#listeners.on(channel, listener);
    this.#channels.add(channel);
    // Also if somebody subscribed before: the server may not have confirmed it yet.
    await this.#once((redis) => redis.subscribe(channel));
    return async () => {
      remove();
      if (this.#listeners.count(channel) > 0 || !this.#channels.delete(channel)) return;
      await this.#once((redis) => redis.unsubscribe(channel));
      // Somebody came while the server was being told, and may have been first to be told.
      if (this.#channels.has(channel)) await this.#once((redis) => redis.subscribe(channel));
    };
  }

  async close(): Promise<void> {
    this.#listeners.clear();
    this.#channels.clear();
    const redis = await this.#opened;
    clearInterval(this.#pinging);
    redis?.disconnect();
  }

  #watch(redis: Ioredis): Ioredis {
    redis.on('error', () => {});
    redis.on('message', (channel: string, message: string) => this.#listeners.emit(channel, message));
    redis.on('close', () => {
      this.#interrupted = [...this.#channels];
    });
    redis.on('ready', () => void this.#subscribeAgain(redis));
    // A cluster listens through one of its nodes, and looks for another one itself.
    if (!redis.isCluster) {
      this.#pinging = setInterval(() => {
        if (redis.status === 'ready') redis.ping().catch(() => {});
      }, PING_EVERY_MS).unref();
    }
    return redis;
  }

  async #subscribeAgain(redis: Ioredis): Promise<void> {
    const channels = this.#interrupted.filter((channel) => this.#channels.has(channel));
    if (channels.length === 0) return;
    await redis.subscribe(...channels).catch(() => {});
    for (const channel of channels) this.#listeners.emit(channel, null);
  }

  /** Sends a command once the attempt to connect that is under way has succeeded; if it fails, not at all. */
  async #once(command: (redis: Ioredis) => Promise<unknown>): Promise<void> {
    const redis = await this.#opened;
    if (redis === undefined) return;
    await attempted(redis);
    if (redis.status === 'ready') await command(redis).catch(() => {});
  }
}

async function attempted(redis: Ioredis): Promise<void> {
  if (redis.status === 'ready' || redis.status === 'end') return;
  await new Promise<void>((resolve) => {
    const done = () => {
      for (const event of ENDS) redis.off(event, done);
      resolve();
    };
    for (const event of ENDS) redis.on(event, done);
  });
}

const ENDS = ['ready', 'close', 'end'];
