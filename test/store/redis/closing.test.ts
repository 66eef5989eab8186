import { describe, expect, test } from 'vitest';
import { parseGovernorOptions } from '../../../src/core/limits/governor-options.ts';
import { perHour, perSecond } from '../../../src/core/limits/rate.ts';
import { redisClient } from '../../../src/store/redis/client/connection.ts';
import { RedisStore } from '../../../src/store/redis/redis-store.ts';
import { connect, keysOf, redisUrl, uniqueName } from '../../support/redis.ts';
import { eventually, governorOf } from '../support/stores.ts';
import { AT_ONCE, ask } from '../support/terms.ts';

const redis = connect();
const limits = { calls: perSecond(20, { burst: 8 }) };

describe('close', () => {
  test('waits for what was asked before, and answers it', async () => {
    const name = uniqueName('close');
    const config = parseGovernorOptions({ name, limits: { calls: perHour(1, { burst: 2_500 }) } });
    const store = new RedisStore(config, redisClient(redisUrl()));
    const asked = Array.from({ length: 2_500 }, () => store.acquire(ask(), AT_ONCE));
    const closed = store.close();
    const late = store.acquire(ask(), AT_ONCE);
    await expect(late).rejects.toMatchObject({ code: 'FLYBALL_GOVERNOR_CLOSED' });
    const verdicts = await Promise.all(asked);
    await closed;
    expect(verdicts.filter(({ granted }) => granted)).toHaveLength(2_500);
    expect(await redis.hget(`flyball:{${name}}:limit:calls`, 'granted')).toBe('2500');
  });

  test('before anything was asked opens and leaves nothing', async () => {
    const name = uniqueName('close');
    const governor = governorOf({ name, connection: redisUrl(), limits });
    await governor.close();
    expect(await keysOf(redis, `flyball:{${name}}:*`)).toEqual([]);
  });

  test('gives back what waits hold', async () => {
    const name = uniqueName('close');
    const governor = governorOf({
      name,
      connection: redisUrl(),
      limits: { calls: perHour(60, { burst: 2 }) },
    });
    await governor.waitN(2);
    const waits = Promise.allSettled([governor.wait(), governor.wait(), governor.wait()]);
    const granted = () => redis.hget(`flyball:{${name}}:limit:calls`, 'granted');
    await eventually(async () => ((await granted()) === '5' ? true : undefined));
    await governor.close();
    for (const wait of await waits)
      expect(wait).toMatchObject({ reason: { code: 'FLYBALL_GOVERNOR_CLOSED' } });
    expect(await granted()).toBe('2');
  });
});
