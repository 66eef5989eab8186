import type { Job } from 'bullmq';
import { type Cost, type Keys, perHour, perSecond } from 'flyball';
import { describe, expect } from 'vitest';
import { wallClock } from '../../support/wall-clock.ts';
import { test, until, untilCompleted } from './fixture.ts';

const limits = () => ({
  calls: perSecond(1_000, { burst: 10 }),
  shop: perSecond(500, { burst: 5, by: 'shop' }),
});
// A busy machine must not make a job miss its start: a job that asks again is counted twice.
const graceMs = 5_000;
// What a user's own JavaScript may return, whatever the types say.
const anything = (value: unknown) => value as never;
const thrower = (message: string) => () => {
  throw new Error(message);
};

describe.concurrent('a cost or keys function with an invalid result', () => {
  test.for<[string, { cost?: (job: Job) => Cost; keys?: (job: Job) => Keys }, RegExp]>([
    ['cost throws', { cost: thrower('no such column') }, /no such column/],
    ['keys throws', { keys: thrower('no such shop') }, /no such shop/],
    ['cost NaN', { cost: () => Number.NaN }, /cost: expected a whole number.*NaN/],
    ['cost Infinity', { cost: () => Number.POSITIVE_INFINITY }, /cost: expected a whole number.*Infinity/],
    ['cost negative', { cost: () => -1 }, /cost: expected a whole number.*-1/],
    ['cost 0', { cost: () => 0 }, /cost: expected a whole number.* 0/],
    ['cost fractional', { cost: () => 1.5 }, /cost: expected a whole number.*1\.5/],
    ['cost undefined', { cost: () => anything(undefined) }, /cost: expected .*undefined/],
    ['cost null', { cost: () => anything(null) }, /cost: expected .*null/],
    ['cost a string', { cost: () => anything('5') }, /cost: expected .*"5"/],
    ['cost a bigint', { cost: () => anything(5n) }, /cost: expected .*5n/],
    ['cost a list', { cost: () => anything([1]) }, /cost: expected /],
    ['cost a promise', { cost: () => anything(Promise.resolve(9)) }, /cost: expected /],
    ['cost of one limit NaN', { cost: () => ({ calls: Number.NaN }) }, /cost\.calls: expected .*NaN/],
    ['cost of one limit negative', { cost: () => ({ shop: -3 }) }, /cost\.shop: expected .*-3/],
    ['cost of an unknown limit', { cost: () => ({ cals: 2 }) }, /cost\.cals: .*did you mean "calls"/],
    ['cost of no limit', { cost: () => ({ calls: 0, shop: 0 }) }, /cost: expected at least one limit/],
    ['cost too large', { cost: () => 2 ** 60 }, /cost: expected a whole number/],
    ['cost above the burst', { cost: () => 11 }, /cost 11 exceeds the burst (10|5)/],
    ['keys of an unknown name', { keys: () => ({ shpo: 'a' }) }, /keys\.shpo: .*did you mean "shop"/],
    ['keys NaN', { keys: () => ({ shop: Number.NaN }) }, /keys\.shop: expected/],
    ['keys empty', { keys: () => ({ shop: '' }) }, /keys\.shop: expected/],
    ['keys too long', { keys: () => ({ shop: 'x'.repeat(300) }) }, /keys\.shop: expected/],
    ['keys an object', { keys: () => ({ shop: anything({}) }) }, /keys\.shop: expected/],
    ['keys a string', { keys: () => anything('acme') }, /keys: expected/],
    ['keys null', { keys: () => anything(null) }, /keys: expected/],
    ['keys a promise', { keys: () => anything(Promise.resolve({ shop: 'a' })) }, /keys: expected/],
  ])(
    'fails that job with a clear error, and no other: %s',
    async ([what, wrong, message], { bench, queue }) => {
      const governor = bench.governor(limits(), { graceMs });
      const { cost, keys } = wrong;
      bench.worker(queue, {
        governor,
        ...(cost ? { cost: (job: Job) => (job.name === 'bad' ? cost(job) : 1) } : {}),
        keys: (job: Job) => (job.name === 'bad' && keys ? keys(job) : { shop: 'acme' }),
      });
      await queue.addBulk([
        { name: 'good', data: {} },
        // What is no cost or key now will be none at a retry; what a function throws may be another thing then.
        { name: 'bad', data: {}, opts: { attempts: 3, backoff: { type: 'fixed', delay: 10 } } },
        { name: 'good', data: {} },
      ]);
      await untilCompleted(queue, 2);
      await until(async () => (await queue.getFailedCount()) === 1, 'the bad job failed');

      const [bad] = await queue.getFailed();
      expect(bad!.name).toBe('bad');
      expect(bad!.failedReason).toMatch(message);
      expect(bad!.attemptsMade).toBe(what.endsWith('throws') ? 3 : 1);
      expect(bench.startsOf('bad')).toEqual([]);
      expect(bench.startsOf('good').length).toBe(2);
      expect(bench.errors).toEqual([]);
      // Nothing was taken for the job that did not run.
      const [calls] = await governor.peek();
      expect(calls!.granted).toBeLessThanOrEqual(2);
    },
  );

  test('is asked again when the job is retried', async ({ bench, queue }) => {
    const governor = bench.governor(limits(), { graceMs });
    let asked = 0;
    bench.worker(queue, {
      governor,
      cost: () => {
        asked += 1;
        if (asked < 3) throw new Error('the price list is being loaded');
        return 2;
      },
    });
    await queue.add('job', {}, { attempts: 5 });
    await untilCompleted(queue, 1);
    const [job] = await queue.getCompleted();
    expect(asked).toBe(3);
    expect(job!.attemptsMade).toBe(3);
    expect(bench.starts.length).toBe(1);
  });
});

// https://github.com/OptimalBits/bull/issues/1035: a job of n calls was counted as one.
describe.concurrent('cost', () => {
  test('a cost above the burst fails its job at once, and names both', async ({ bench, queue }) => {
    const governor = bench.governor({ calls: perHour(100, { burst: 20 }) });
    bench.worker(queue, { governor, cost: (job) => job.data.cost });
    await queue.add('big', { cost: 21 }, { attempts: 5, backoff: { type: 'fixed', delay: 60_000 } });
    await queue.add('fits', { cost: 20 }, { attempts: 5 });
    await untilCompleted(queue, 1);
    await until(async () => (await queue.getFailedCount()) === 1, 'the big job failed');

    const [big] = await queue.getFailed();
    expect(big!.failedReason).toBe('cost 21 exceeds the burst 20 of limit "calls": it can never pass');
    expect(big!.attemptsMade).toBe(1);
    expect(big!.attemptsStarted).toBe(1);
    expect(bench.starts.map(({ name }) => name)).toEqual(['fits']);
  });

  test('a cost taken from the job’s data is what the job takes', wallClock, async ({ bench, queue }) => {
    const governor = bench.governor({ calls: perSecond(50, { burst: 5 }) }, { graceMs });
    for (let n = 0; n < 40; n++) await queue.add('job', { n, cost: 1 + (n % 5) });
    bench.worker(queue, { governor, cost: (job) => job.data.cost }, { concurrency: 10 });
    await untilCompleted(queue, 40);
    const [calls] = await governor.peek();
    expect(calls!.granted).toBe(120);
    const seconds = (bench.starts.at(-1)!.atMs - bench.starts[0]!.atMs) / 1_000;
    expect((120 - 5) / seconds).toBeLessThanOrEqual(50 * 1.03);
    expect((120 - 5) / seconds).toBeGreaterThanOrEqual(50 * 0.93);
  });
});
