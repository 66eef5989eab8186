import { UnrecoverableError } from 'bullmq';
import { perSecond } from 'flyball';
import { attemptOf } from 'flyball/bullmq';
import { describe, expect } from 'vitest';
import { wallClock } from '../../support/wall-clock.ts';
import { test, until, untilCompleted } from './fixture.ts';

const limits = () => ({ shop: { rate: 1, periodMs: 400, burst: 1, by: 'shop' } });
const keys = { shop: 'acme' };

describe.concurrent('failures and deferrals', () => {
  // https://github.com/bensheldon/good_job/issues/1353: under a limit of 12 a minute a refused job came back three hours
  // later, by the backoff meant for failures.
  test('a deferral never uses the backoff, a retry always does', wallClock, async ({ bench, queue }) => {
    const governor = bench.governor(limits());
    await governor.allow({ keys });
    const worker = bench.worker(
      queue,
      { governor, keys, maxHoldMs: 0 },
      {
        work: (job) => {
          if (attemptOf(job) < 3) throw new Error(`attempt ${attemptOf(job)}`);
          return attemptOf(job);
        },
      },
    );
    const addedMs = performance.now();
    await queue.add('job', {}, { attempts: 3, backoff: { type: 'fixed', delay: 1_000 } });
    await untilCompleted(queue, 1);

    const [first, second, third] = bench.starts.map(({ atMs }) => atMs);
    // Deferred first, by its slot: 400 ms of debt, nowhere near the backoff.
    expect(worker.governing.deferrals).toBeGreaterThanOrEqual(1);
    expect(first! - addedMs).toBeGreaterThanOrEqual(350);
    expect(first! - addedMs).toBeLessThan(700);
    for (const waitedMs of [second! - first!, third! - second!]) {
      expect(waitedMs).toBeGreaterThanOrEqual(900);
      expect(waitedMs).toBeLessThan(1_300);
    }
    const [job] = await queue.getCompleted();
    expect(job!.attemptsMade).toBe(3);
    expect(job!.returnvalue).toBe(3);
    expect(bench.starts.length).toBe(3);
  });

  // https://github.com/taskforcesh/bullmq/issues/1571: each refusal counted as an attempt, past the maximum, for ever.
  // https://github.com/sidekiq/sidekiq/issues/6010: a refusal after a retry counted as a failure.
  // https://github.com/santiment/sanbase2/pull/4429: a job was put off 500 times.
  test('refusals between retries use up no attempt', async ({ bench, queue }) => {
    const governor = bench.governor(limits());
    const attempts: number[] = [];
    const worker = bench.worker(
      queue,
      { governor, keys, maxHoldMs: 0 },
      {
        work: async (job) => {
          attempts.push(attemptOf(job));
          // Someone else takes what would have been the retry's token.
          await governor.forceN(1, { keys });
          if (attempts.length < 4) throw new Error('again');
        },
      },
    );
    await queue.add('job', {}, { attempts: 4, backoff: { type: 'fixed', delay: 10 } });
    await untilCompleted(queue, 1);

    expect(attempts).toEqual([1, 2, 3, 4]);
    expect(worker.governing.deferrals).toBeGreaterThanOrEqual(3);
    const [job] = await queue.getCompleted();
    expect(job!.attemptsMade).toBe(4);
    expect(job!.attemptsStarted).toBe(4 + worker.governing.deferrals);
    expect(bench.failed.length).toBe(3);
  });

  // https://github.com/laravel/framework/pull/59618: who fails before it calls out has still started. Its tokens are
  // spent, since the gate cannot know; the next attempt takes its own.
  test('each attempt that runs takes its cost, once', async ({ bench, queue }) => {
    const governor = bench.governor({ calls: perSecond(1, { burst: 20 }) });
    bench.worker(
      queue,
      { governor, cost: 3 },
      {
        work: (job) => {
          if (attemptOf(job) < 3) throw new Error('again');
        },
      },
    );
    await queue.add('job', {}, { attempts: 5 });
    await queue.add('gives up', {}, { attempts: 5 });
    await untilCompleted(queue, 2);
    const [calls] = await governor.peek();
    expect(calls!.granted).toBe(2 * 3 * 3);
  });

  test('errors of the processor reach BullMQ as they are', async ({ bench, queue }) => {
    const governor = bench.governor({ calls: perSecond(100) });
    bench.worker(
      queue,
      { governor },
      {
        work: () => {
          throw new UnrecoverableError('no such order');
        },
      },
    );
    await queue.add('job', {}, { attempts: 5 });
    await until(async () => (await queue.getFailedCount()) === 1, 'the job failed');
    const [job] = await queue.getFailed();
    expect(job!.attemptsMade).toBe(1);
    expect(job!.failedReason).toBe('no such order');
  });
});
