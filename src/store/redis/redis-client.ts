/**
 * What a governor needs of a Redis client: an adapter of this shape brings any other client along. Keys and arguments
 * are text; a call is sent once, in the order of the calls, and rejects if its answer is not known.
 */
export interface RedisClient {
  /** EVALSHA; rejects with the server's NOSCRIPT error if the server does not have the script. */
  evalsha(sha1: string, keys: readonly string[], args: readonly string[]): Promise<unknown>;
  /** EVAL. */
  eval(source: string, keys: readonly string[], args: readonly string[]): Promise<unknown>;
  /** Called once, when no call is under way and none will follow. */
  close(): Promise<void>;
}
