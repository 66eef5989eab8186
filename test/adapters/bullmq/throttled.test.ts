import type { Job } from 'bullmq';
import { InvalidOptionError, isDeferralLimitError, perSecond } from 'flyball';
import { governed, isThrottled, Throttled } from 'flyball/bullmq';
import { describe, expect } from 'vitest';
import { wallClock } from '../../support/wall-clock.ts';
import { addJobs, expectNoError, test, until, untilCompleted } from './fixture.ts';

const anything = (value: unknown) => value as never;

describe('Throttled', () => {
  test('says what the downstream asked for', () => {
    const all = new Throttled({ retryAfterMs: 1_500 });
    expect(all).toMatchObject({ name: 'Throttled', retryAfterMs: 1_500 });
    expect(all.keys).toBeUndefined();
    expect(all.message).toContain('too many');
    const one = new Throttled({ retryAfterMs: 0, keys: { shop: 'acme' }, message: '429 from acme' });
    expect(one).toMatchObject({ keys: { shop: 'acme' }, message: '429 from acme' });
    expect(one).toBeInstanceOf(Error);
  });

  test.for<[string, unknown, RegExp]>([
    ['a text', '5', /options: expected a plain object/],
    ['a number of seconds', { retryAfter: 5 }, /retryAfter: expected a string/],
    ['a header that is none', { retryAfterMs: Number.NaN }, /retryAfterMs: expected .*NaN/],
    ['a negative time', { retryAfterMs: -1 }, /retryAfterMs/],
    ['for ever', { retryAfterMs: Number.POSITIVE_INFINITY }, /retryAfterMs/],
    ['a text', { retryAfterMs: '3' }, /retryAfterMs: .*"3"/],
    ['no key in keys', { retryAfterMs: 1, keys: {} }, /keys: expected at least one attribute/],
    ['keys that are none', { retryAfterMs: 1, keys: 'acme' }, /keys: expected a plain object/],
    ['a value that is none', { retryAfterMs: 1, keys: { shop: '' } }, /keys\.shop/],
    ['a message that is none', { retryAfterMs: 1, message: 5 }, /message: expected a string/],
    ['an unknown name', { retryAfterMs: 1, key: {} }, /options\.key: .*did you mean "keys"/],
  ])('refuses %s', ([, options, message]) => {
    expect(() => new Throttled(anything(options))).toThrow(InvalidOptionError);
    expect(() => new Throttled(anything(options))).toThrow(message);
  });

  test('is known to another copy of the package, and out of a sandbox', () => {
    const throttled = new Throttled({ retryAfterMs: 5, keys: { shop: 'a' } });
    expect(isThrottled(throttled)).toBe(true);
    const names = Object.getOwnPropertyNames(throttled) as (keyof Throttled)[];
    const sent = JSON.parse(JSON.stringify(Object.fromEntries(names.map((name) => [name, throttled[name]]))));
    expect(isThrottled(Object.assign(new Error(), sent))).toBe(true);
    for (const other of [undefined, null, 'Throttled', new Error('Throttled'), { flyballThrottled: true }]) {
      expect(isThrottled(other)).toBe(false);
    }
  });
});

describe.concurrent('a processor that throws Throttled', () => {
  test('for keys defers its job for that time, without an attempt', async ({ bench, queue }) => {
    const governor = bench.governor({ shop: perSecond(1_000, { burst: 100, by: 'shop' }) });
    const told: unknown[] = [];
    governor.on('paused', ({ keys }) => told.push(keys));
    let throttles = 2;
    const worker = bench.worker(
      queue,
      { governor, keys: (job) => ({ shop: job.name }) },
      {
        work: (job) => {
          if (job.name === 'acme' && throttles-- > 0) {
            throw new Throttled({ retryAfterMs: 400, keys: { shop: 'acme' } });
          }
          return job.attemptsMade;
        },
        concurrency: 3,
      },
    );
    await queue.add('acme', {}, { attempts: 2 });
    await queue.add('other', {});
    await untilCompleted(queue, 2);

    expect(told).toEqual([{ shop: 'acme' }, { shop: 'acme' }]);
    const [first, second, third] = bench.startsOf('acme').map(({ atMs }) => atMs);
    expect(second! - first!).toBeGreaterThanOrEqual(395);
    expect(third! - second!).toBeGreaterThanOrEqual(395);
    const acme = (await queue.getCompleted()).find(({ name }) => name === 'acme')!;
    expect(acme.attemptsMade).toBe(1);
    expect(acme.attemptsStarted).toBe(3);
    expect(acme.returnvalue).toBe(0);
    expect(worker.governing).toMatchObject({ throttled: 2, deferrals: 2, granted: 4, failed: 0 });
    expectNoError(bench);
  });

  test('without keys shuts the gate for that time', wallClock, async ({ bench, queue }) => {
    const governor = bench.governor({ calls: perSecond(1_000, { burst: 100 }) });
    const told: unknown[] = [];
    governor.on('paused', ({ keys }) => told.push(keys));
    let throttled = false;
    const worker = bench.worker(
      queue,
      { governor, maxHoldMs: 100 },
      {
        work: (job) => {
          if (job.data.n !== 1 || throttled) return;
          throttled = true;
          throw new Throttled({ retryAfterMs: 1_200 });
        },
        concurrency: 1,
      },
    );
    await addJobs(queue, 5);
    await until(() => worker.governing.gate === 'shut', 'the gate is shut');
    await untilCompleted(queue, 5);

    expect(told).toEqual([undefined]);
    expect(bench.starts.map(({ data }) => data.n)).toEqual([0, 1, 1, 2, 3, 4]);
    const [, first, second] = bench.starts;
    // The gate opens half of maxHoldMs early, so that nothing idles.
    expect(second!.atMs - first!.atMs).toBeGreaterThanOrEqual(1_150);
    expect(second!.atMs - first!.atMs).toBeLessThan(1_800);
    expect(worker.governing).toMatchObject({ throttled: 1, returned: 1, deferrals: 0 });
    expect((await queue.getCompleted()).every(({ attemptsMade }) => attemptsMade === 1)).toBe(true);
    expect(bench.failed).toEqual([]);
  });

  test('without attach() defers its job', async ({ bench, queue }) => {
    const governor = bench.governor({ calls: perSecond(1_000) });
    let throttled = false;
    const processor = governed(governor, async (_job: Job) => {
      if (throttled) return 'done';
      throttled = true;
      throw new Throttled({ retryAfterMs: 200 });
    });
    bench.plainWorker(queue, processor);
    await queue.add('job', {});
    await untilCompleted(queue, 1);
    expect(processor.governing).toMatchObject({ throttled: 1, deferrals: 1, returned: 0 });
    expect(bench.failed).toEqual([]);
    await expect(processor.deferred()).rejects.toThrow(/worker: expected one that was given with attach/);
  });

  test('too often meets maxDeferrals: a throttled start is no real start', async ({ bench, queue }) => {
    const governor = bench.governor({ shop: perSecond(1_000, { burst: 100, by: 'shop' }) });
    const keys = { shop: 'acme' };
    const worker = bench.worker(
      queue,
      { governor, keys, maxDeferrals: 3 },
      {
        work: () => {
          throw new Throttled({ retryAfterMs: 20, keys });
        },
      },
    );
    await queue.add('job', {}, { attempts: 4 });
    await until(async () => (await queue.getFailedCount()) === 1, 'the job failed');
    expect(bench.starts.length).toBe(4);
    expect(worker.governing).toMatchObject({ throttled: 4, deferrals: 3, deferralLimited: 1, failed: 1 });
    expect(isDeferralLimitError(bench.failed[0]!.error.cause)).toBe(true);
    expect((await queue.getFailed())[0]!.attemptsMade).toBe(1);
  });

  test('for keys that no limit has pauses the whole governor', async ({ bench, queue }) => {
    const governor = bench.governor({ calls: perSecond(1_000) });
    let pausedMs = 0;
    bench.worker(
      queue,
      { governor },
      {
        work: () => {
          if (pausedMs === 0) throw new Throttled({ retryAfterMs: 1_000, keys: { shpo: 'acme' } });
        },
      },
    );
    await queue.add('job', {});
    await until(async () => {
      pausedMs = (await governor.peek())[0]!.pausedMs;
      return pausedMs > 0;
    }, 'the pause');
    await untilCompleted(queue, 1);
    expect(bench.errors.map(({ message }) => message)).toEqual([expect.stringMatching(/shpo/)]);
    expect(bench.failed).toEqual([]);
  });
});
