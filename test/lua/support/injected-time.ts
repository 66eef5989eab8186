import type { Redis } from 'ioredis';
import { assemble } from '../../../scripts/assemble-script.mjs';
import type { RedisClient } from '../../../src/store/redis/client/redis-client.ts';
import * as generated from '../../../src/store/redis/scripts.generated.ts';

/** State stays far longer than any test, so that only the times in it decide. */
const CLOCK = `
local function nowUs()
  return tonumber(ARGV[#ARGV])
end
local function expireAfterMs(key, ms)
  redis.call('PEXPIRE', key, string.format('%.0f', math.min(ms, 1e11) + 600000))
end
return { nowUs = nowUs, expireAfterMs = expireAfterMs }
`;

// A script without times is run as it is.
const variants = new Map(
  Object.values(generated).map((script) => [
    script.sha1,
    script.source.includes('nowUs()') ? assemble(script.name, { replaceIncludes: { clock: CLOCK } }) : script,
  ]),
);

/** Runs the shipped scripts with another include for the clock: the time is the one given here. */
export function clientWithTime(redis: Redis, nowUs: () => number): RedisClient {
  const run = (sha1: string, keys: readonly string[], args: readonly string[]) => {
    const { source } = variants.get(sha1)!;
    return redis.eval(source, keys.length, ...keys, ...args, String(nowUs()));
  };
  return {
    evalsha: run,
    eval: () => Promise.reject(new Error('the variant is known to be there')),
    close: async () => {},
  };
}
