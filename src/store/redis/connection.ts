export type RedisConnection = string;
export type RedisClient = {};
export function redisClient(_: RedisConnection): RedisClient {
  return {};
}
