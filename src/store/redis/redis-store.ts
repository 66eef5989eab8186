export const RedisStore: any = null;
