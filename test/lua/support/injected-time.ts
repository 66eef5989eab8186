import type { Redis } from 'ioredis';
import { assemble, luaDirectory } from '../../../scripts/assemble-script.mjs';
import type { RedisClient } from '../../../src/store/redis/client/redis-client.ts';
import * as generated from '../../../src/store/redis/scripts.generated.ts';

// Far enough for keys not to expire by the server's own clock.
const EXPIRY_SHIFT_MS = 1_000_000_000_000;

/** The time is the last argument. When a key would expire by it can be read, and is seen to by the test. */
const CLOCK = `
local function nowUs()
  return tonumber(ARGV[#ARGV])
end
local function expireAfterMs(key, ms)
  redis.call('PEXPIREAT', key, string.format('%.0f', math.floor(nowUs() / 1000) + ms + ${EXPIRY_SHIFT_MS}))
end
return { nowUs = nowUs, expireAfterMs = expireAfterMs }
`;

// A script without times is run as it is.
const variantsOf = (directory: string) =>
  new Map(
    Object.values(generated).map((script) => [
      script.sha1,
      script.source.includes('nowUs()')
        ? assemble(script.name, { directory, replaceIncludes: { clock: CLOCK } })
        : script,
    ]),
  );
const shipped = variantsOf(luaDirectory);

/**
 * Runs the scripts with another include for the clock: the time is the one given here.
 * @param directory - Where their text lies; left out: those that are shipped.
 */
export function clientWithTime(redis: Redis, nowUs: () => number, directory?: string): RedisClient {
  const variants = directory === undefined ? shipped : variantsOf(directory);
  const run = async (sha1: string, keys: readonly string[], args: readonly string[]) => {
    const { source, sha1: own } = variants.get(sha1)!;
    const all = [...keys, ...args, String(nowUs())];
    try {
      return await redis.evalsha(own, keys.length, ...all);
    } catch (error) {
      if (!(error as Error).message.startsWith('NOSCRIPT')) throw error;
      return redis.eval(source, keys.length, ...all);
    }
  };
  return {
    evalsha: run,
    eval: () => Promise.reject(new Error('the variant is known to be there')),
    close: async () => {},
  };
}

/** When a key expires, on the clock that is given to the scripts; in milliseconds. */
export async function expiriesMs(redis: Redis, keys: readonly string[]): Promise<number[]> {
  const pipeline = redis.pipeline();
  for (const key of keys) pipeline.pexpiretime(key);
  return (await pipeline.exec())!.map(([, ms]) => Number(ms) - EXPIRY_SHIFT_MS);
}
