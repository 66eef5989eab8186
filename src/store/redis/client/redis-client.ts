/**
 * What a governor needs of a Redis client: an adapter of this shape brings any other client along. Keys and arguments
 * are text; a call is sent once, in the order of the calls, and rejects if its answer is not known.
 */
export interface RedisClient {
  /** EVALSHA; rejects with the server's NOSCRIPT error if the server does not have the script. */
  evalsha(sha1: string, keys: readonly string[], args: readonly string[]): Promise<unknown>;
  /** EVAL. */
  eval(source: string, keys: readonly string[], args: readonly string[]): Promise<unknown>;
  /**
   * Optional. SUBSCRIBE, on a connection of its own that is opened with the first: resolves when the server has confirmed it,
   * or when that failed and is tried again with the next connection. Never rejects. `listener` is given each message, and
   * null when some may have been lost, since the connection was. Returns what ends the subscription.
   * Without it, changes that other processes make are seen at the next call.
   */
  subscribe?(channel: string, listener: (message: string | null) => void): Promise<() => Promise<void>>;
  /** Whether PUBLISH tells how many heard it, all over the server; a cluster's does not. Default true. */
  readonly countsListeners?: boolean;
  /** Called once, when no call is under way and none will follow. */
  close(): Promise<void>;
}
