import { expect, test } from 'vitest';
import { assemble } from '../../scripts/assemble-script.mjs';
import { parseLimits } from '../../src/core/limits/limit.ts';
import { acquire } from '../../src/store/redis/call/operations.ts';
import { parseReply } from '../../src/store/redis/call/reply.ts';
import { DecideCall } from '../../src/store/redis/call/write.ts';
import { configKey } from '../../src/store/redis/keys.ts';
import { connect, uniqueName } from '../support/redis.ts';

const redis = connect();
const TERMS = {
  maxWaitUs: 0,
  maxTurnUs: 0,
  turns: 'keyed',
  returning: false,
  patienceUs: 0,
  priority: 1,
  queue: false,
} as const;

async function decide(source: string, limits: Parameters<typeof parseLimits>[0], times: number) {
  const name = uniqueName('assembled');
  await redis.hset(configKey(name), { version: 1, created: 1, coldAt: 0 });
  const call = new DecideCall(name, { version: 1, created: 1, limits: parseLimits(limits) } as never, 'one');
  const operation = acquire({ cost: 1, keys: undefined, holder: 'h' }, TERMS);
  const reads = Array.from({ length: times }, () => operation(call));
  const reply = parseReply(await redis.eval(source, call.keys.length, ...call.keys, ...call.arguments()))!;
  const nowUs = reply.next();
  return reads.map((read) => read(reply, nowUs).granted);
}

test('a script assembled for rates alone decides them, and has no other kind in it', async () => {
  const { source } = assemble('decide', { kinds: ['rate'] });
  expect(await decide(source, { calls: { rate: 1, periodMs: 60_000, burst: 2 } }, 3)).toEqual([
    true,
    true,
    false,
  ]);
  expect(source).not.toMatch(/HGETALL|ZRANGE'/);
  expect(source.length).toBeLessThan(0.7 * assemble('decide').source.length);
  const concurrency = { calls: { kind: 'concurrency', max: 2, leaseMs: 1_000 } } as never;
  await expect(decide(source, concurrency, 1)).rejects.toThrow();
});

test('each script assembled twice is the same text', () => {
  expect(assemble('decide')).toEqual(assemble('decide'));
});

test('a constant that does not exist is found when the script is assembled', () => {
  const replaceIncludes = { clock: "local C = require 'constants'\nreturn { nowUs = C.NO_SUCH_US }\n" };
  expect(() => assemble('decide', { replaceIncludes })).toThrow('NO_SUCH_US');
});

test('a part to replace that the script does not have is refused', () => {
  expect(() => assemble('history', { replaceIncludes: { clock: 'return {}\n' } })).toThrow('"clock"');
});
