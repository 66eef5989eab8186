import type { Job } from 'bullmq';
import { type Governor, InvalidOptionError, isDeferralLimitError, perHour, perSecond } from 'flyball';
import { governed, isThrottled, Throttled } from 'flyball/bullmq';
import { describe, expect } from 'vitest';
import type { FeedbackOptions } from '../../../src/core/downstream/feedback.ts';
import { wallClock } from '../../support/wall-clock.ts';
import { addJobs, expectNoError, test, until, untilCompleted } from './fixture.ts';

const anything = (value: unknown) => value as never;

/** What the governor is told; it then does what it does, or what `answer` says in its place. */
function feedbackOf(governor: Governor, answer?: () => Promise<void>): unknown[] {
  const told: unknown[] = [];
  const feedback = governor.feedback.bind(governor);
  Object.assign(governor, {
    feedback: (given: FeedbackOptions) => {
      told.push(given);
      return answer === undefined ? feedback(given) : answer();
    },
  });
  return told;
}

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
    const told = feedbackOf(governor);
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

    expect(told).toEqual(
      [1, 2].map(() => ({
        throttled: true,
        retryAfterMs: 400,
        keys: { shop: 'acme' },
        grant: expect.anything(),
      })),
    );
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
    const told = feedbackOf(governor);
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
    await until(() => worker.governing.gate === 'closed', 'the gate is shut');
    await untilCompleted(queue, 5);

    expect(told).toEqual([{ throttled: true, retryAfterMs: 1_200, grant: expect.anything() }]);
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
    await expect(processor.deferred()).rejects.toThrow(/worker: expected one given with attach\(\)/);
  });

  test('too often meets maxDeferrals: a throttled start is no real start', async ({ bench, queue }) => {
    const governor = bench.governor({ shop: perHour(1_000, { burst: 100, by: 'shop' }) });
    feedbackOf(governor, async () => {});
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

  test('is heard though the governor could not be told of it', async ({ bench, queue }) => {
    const governor = bench.governor({ calls: perSecond(1_000) });
    feedbackOf(governor, () => Promise.reject(new Error('no such attribute')));
    let throttled = false;
    bench.worker(
      queue,
      { governor },
      {
        work: () => {
          if (throttled) return;
          throttled = true;
          throw new Throttled({ retryAfterMs: 50, keys: { shpo: 'acme' } });
        },
      },
    );
    await queue.add('job', {});
    await untilCompleted(queue, 1);
    expect(bench.starts.length).toBe(2);
    expect(bench.failed).toEqual([]);
    expect(bench.errors.map(({ message }) => message)).toEqual(['no such attribute']);
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
