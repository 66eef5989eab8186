import { describe, expect, test } from 'vitest';
import { perSecond } from '../../../src/core/limits/rate.ts';
import { KEPT_US } from '../../../src/core/ports/deferrals.ts';
import { connect, keysOf, keysWithoutTtl, redisUrl, uniqueName } from '../../support/redis.ts';
import { eventually, storeOf } from '../support/stores.ts';

const redis = connect();
const limits = { calls: perSecond(10) };
const Q = 'bull:orders';

describe('keys of deferred jobs', () => {
  test('have the hash tag of their governor and a TTL that outlives the last slot by a day', async () => {
    const name = uniqueName('deferred');
    const { deferrals } = storeOf(redisUrl(), { name, limits });
    const note = (job: string, delayMs: number) =>
      deferrals.note(Q, { job, delayMs, attempt: 0, fresh: true });
    await note('far', 7_200_000);
    await note('near', 1_000);
    await deferrals.claim(Q, 1, 5_000, false);
    const keys = await keysOf(redis, `flyball:{${name}}:*`);
    expect(keys).toEqual([
      `flyball:{${name}}:deferred-since:${Q}`,
      `flyball:{${name}}:deferred-slots:${Q}`,
      `flyball:{${name}}:deferred:${Q}`,
      `flyball:{${name}}:retimed:${Q}`,
    ]);
    expect(await keysWithoutTtl(redis, `flyball:{${name}}:*`)).toEqual([]);
    const slotAndDayMs = 7_200_000 + KEPT_US / 1_000;
    for (const key of keys.slice(0, 3)) {
      const ttl = await redis.pttl(key);
      expect(ttl).toBeLessThanOrEqual(slotAndDayMs);
      expect(ttl).toBeGreaterThan(slotAndDayMs - 20_000);
    }
    await deferrals.move(Q, [{ job: 'near', delayMs: 2 * 7_200_000 }]);
    expect(await redis.pttl(keys[0]!)).toBeGreaterThan(slotAndDayMs);
  });

  test('say in plain text what is noted, and go when no job is deferred', async () => {
    const name = uniqueName('deferred');
    const { deferrals } = storeOf(redisUrl(), { name, limits });
    await deferrals.note(Q, { job: '7', delayMs: 1_500, attempt: 2, fresh: true });
    expect(await redis.hgetall(`flyball:{${name}}:deferred:${Q}`)).toEqual({ '7': '1 2 1500' });
    await deferrals.forget(Q, '7');
    expect(await keysOf(redis, `flyball:{${name}}:*`)).toEqual([]);
  });

  test('a claim lapses with its time, should the process that has it end', async () => {
    const name = uniqueName('deferred');
    const { deferrals } = storeOf(redisUrl(), { name, limits });
    expect(await deferrals.claim(Q, 4, 300, false)).toBe(true);
    expect(await deferrals.claim(Q, 4, 300, false)).toBe(false);
    await eventually(async () => ((await deferrals.claim(Q, 4, 300, false)) ? true : undefined));
  });

  test('an invalid entry that somebody wrote by hand is ignored', async () => {
    const name = uniqueName('deferred');
    const { deferrals } = storeOf(redisUrl(), { name, limits });
    await redis.hset(`flyball:{${name}}:deferred:${Q}`, '7', 'what?');
    expect(await deferrals.find(Q, '7', 0)).toBeUndefined();
    expect(await deferrals.note(Q, { job: '7', delayMs: 1, attempt: 0, fresh: false })).toMatchObject({
      count: 1,
    });
  });
});
