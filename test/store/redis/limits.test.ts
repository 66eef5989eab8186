import { describe, expect, test } from 'vitest';
import type { LimitsOptions } from '../../../src/core/limits/limit.ts';
import { perHour, perSecond } from '../../../src/core/limits/rate.ts';
import { connect, redisUrl, uniqueName } from '../../support/redis.ts';
import { governorOf, storeOf } from '../support/stores.ts';
import { AT_ONCE, ask, NORMAL, WHENEVER } from '../support/terms.ts';

const redis = connect();
const configOf = (name: string) => redis.hgetall(`flyball:{${name}}:config`);
const starts = (name: string, limits: LimitsOptions) => storeOf(redisUrl(), { name, limits });
const one = ask();

describe('200 requests at the same time', () => {
  const limits = { calls: perHour(1, { burst: 50 }) };

  test('through one governor admit exactly the burst', async () => {
    const name = uniqueName('parallel');
    const governor = governorOf({ name, connection: redisUrl(), limits });
    const decisions = await Promise.all(Array.from({ length: 200 }, () => governor.allow()));
    expect(decisions.filter(({ allowed }) => allowed)).toHaveLength(50);
    expect(await redis.hgetall(`flyball:{${name}}:limit:calls`)).toMatchObject({
      granted: '50',
      refused: '150',
    });
  });

  test('through five governors with connections of their own admit exactly the burst', async () => {
    const name = uniqueName('parallel');
    const governors = Array.from({ length: 5 }, () => governorOf({ name, connection: redisUrl(), limits }));
    const decisions = await Promise.all(
      Array.from({ length: 200 }, (_, call) => governors[call % 5]!.allow()),
    );
    expect(decisions.filter(({ allowed }) => allowed)).toHaveLength(50);
  });

  test('of several tokens each admit no more than fit, and nothing less', async () => {
    const name = uniqueName('parallel');
    const governors = Array.from({ length: 5 }, () => governorOf({ name, connection: redisUrl(), limits }));
    const decisions = await Promise.all(
      Array.from({ length: 200 }, (_, call) => governors[call % 5]!.allowN(7)),
    );
    expect(decisions.filter(({ allowed }) => allowed)).toHaveLength(7);
    expect(await governors[0]!.peek()).toMatchObject([{ remaining: 1 }]);
  });
});

describe('processes with different limits', () => {
  test('the one that starts later wins; the older takes its limits over, and they do not flap', async () => {
    const name = uniqueName('limits');
    const older = starts(name, { calls: perHour(10, { burst: 10 }) });
    await older.acquire(one, AT_ONCE);
    const newer = starts(name, { calls: perHour(20, { burst: 20 }) });
    await newer.acquire(one, AT_ONCE);
    expect(await configOf(name)).toMatchObject({ version: '2' });
    for (let call = 0; call < 30; call++) {
      await (call % 2 === 0 ? older : newer).acquire(one, AT_ONCE);
    }
    expect(await configOf(name)).toMatchObject({ version: '2' });
    expect(await older.limits()).toEqual(await newer.limits());
    expect(await older.limits()).toMatchObject([{ burst: 20 }]);
    expect(await redis.hget(`flyball:{${name}}:limit:calls`, 'granted')).toBe('20');
  });

  test('the same limits, however they were written, are no change', async () => {
    const name = uniqueName('limits');
    await starts(name, { calls: perSecond(2, { burst: 4 }) }).limits();
    const before = await configOf(name);
    await starts(name, { calls: { burst: 4, periodMs: 1_000, rate: 2, kind: 'rate' } }).limits();
    expect(await configOf(name)).toEqual(before);
  });

  test('a call made under limits that have just changed is decided under the new ones', async () => {
    const name = uniqueName('limits');
    const older = starts(name, { calls: perHour(1, { burst: 2 }) });
    await older.limits();
    await starts(name, { calls: perHour(1, { burst: 9 }) }).limits();
    // Too much under what it knows; right under what is in force.
    expect(await older.acquire(ask(9), AT_ONCE)).toMatchObject({ granted: true });
    await starts(name, { calls: perHour(1, { burst: 3 }) }).limits();
    await expect(older.acquire(ask(9), AT_ONCE)).rejects.toMatchObject({
      code: 'FLYBALL_COST_EXCEEDS_BURST',
      burst: 3,
    });
  });

  test('what was used stays used, in tokens, though the new limit counts in other units', async () => {
    const name = uniqueName('limits');
    const older = starts(name, { calls: perHour(1, { burst: 10 }) });
    await older.acquire({ ...one, cost: 10 }, AT_ONCE);
    await older.acquire({ ...one, cost: 5 }, WHENEVER);
    const newer = starts(name, { calls: perHour(7, { burst: 20 }) });
    // The five that were promised for hours later are recalled. Ten are owed of the 20, and what comes in a second.
    expect(await newer.peek(one, NORMAL)).toMatchObject([{ sight: { remaining: 9, granted: 15 } }]);
    expect(await newer.acquire({ ...one, cost: 9 }, AT_ONCE)).toMatchObject({ granted: true });
    expect(await newer.acquire(one, AT_ONCE)).toMatchObject({ granted: false });
    const { debt, unit } = await redis.hgetall(`flyball:{${name}}:limit:calls`);
    expect(Number(debt) / Number(unit)).toBeGreaterThan(18.9);
    expect(Number(debt) / Number(unit)).toBeLessThanOrEqual(19.01);
  });

  test('a smaller burst than what is owed waits for the difference, and grants nothing before', async () => {
    const name = uniqueName('limits');
    await starts(name, { calls: perHour(10, { burst: 10 }) }).acquire({ ...one, cost: 10 }, AT_ONCE);
    const newer = starts(name, { calls: perHour(10, { burst: 2 }) });
    const verdict = await newer.acquire(one, AT_ONCE);
    // 9 tokens have to drain, 6 minutes each.
    expect(verdict).toMatchObject({ granted: false, reason: 'rate' });
    expect(verdict.waitUs / 60e6).toBeGreaterThan(53.9);
    expect(verdict.waitUs / 60e6).toBeLessThanOrEqual(54);
  });

  test('limits that this version cannot read are an error, never no limit', async () => {
    const name = uniqueName('limits');
    const store = starts(name, { calls: perHour(1) });
    await store.limits();
    await redis.hset(`flyball:{${name}}:config`, { limits: '[{"kind":"future"}]', version: 2 });
    await expect(store.acquire(one, AT_ONCE)).rejects.toThrow(/cannot read: \[{"kind":"future"}\]/);
  });

  test.for(['full', 'empty'] as const)(
    'limits that were damaged are replaced by the next process that starts (cold start: %s)',
    async (coldStart) => {
      const name = uniqueName('limits');
      const limits = { calls: perHour(1, { burst: 2 }) };
      await storeOf(redisUrl(), { name, limits, coldStart }).limits();
      for (const damaged of ['rubbish', '[{}]', '[1]', '{}', '']) {
        await redis.hset(`flyball:{${name}}:config`, 'limits', damaged);
        expect(await storeOf(redisUrl(), { name, limits, coldStart }).limits()).toMatchObject([{ burst: 2 }]);
      }
    },
  );
});
