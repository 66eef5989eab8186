import type { Job } from 'bullmq';
import { isDeferralLimitError, perHour, perSecond } from 'flyball';
import { attemptOf, type DeferralEnd, type DeferralLimit } from 'flyball/bullmq';
import { describe, expect } from 'vitest';
import { deskOf } from '../../../src/core/calls/desk.ts';
import { wallClock } from '../../support/wall-clock.ts';
import { addJobs, sleep, takeAll, test, until, untilCompleted } from './fixture.ts';

const keys = { shop: 'acme' };
const shopOf = (job: Job) => ({ shop: job.name });
/** A token every 200 ms: a job that is deferred comes back soon. */
const often = () => ({ shop: { rate: 1, periodMs: 200, burst: 1, by: 'shop' } });

describe.concurrent('maxDeferrals', () => {
  test('fails a job for good that would be deferred once more', wallClock, async ({ bench, queue }) => {
    const governor = bench.governor(often());
    await governor.allow({ keys });
    const worker = bench.worker(queue, { governor, keys, maxHoldMs: 0, maxDeferrals: 2 });
    // Somebody else takes every token, for as long as the job comes.
    const told: { job: Job; limit: DeferralLimit & { end: DeferralEnd } }[] = [];
    worker.on('deferralLimited', (job, limit) => told.push({ job, limit }));
    await queue.add('job', {}, { attempts: 5, backoff: { type: 'fixed', delay: 10 } });
    await takeAll(governor, keys, async () => (await queue.getFailedCount()) > 0);

    const [job] = await queue.getFailed();
    expect(job!.failedReason).toMatch(/^deferred 2 times in \d+ ms and would wait \d+ ms more/);
    expect(job!.attemptsMade).toBe(1);
    expect(job!.attemptsStarted).toBe(3);
    expect(bench.starts).toEqual([]);
    const [failed] = bench.failed;
    expect(isDeferralLimitError(failed!.error.cause)).toBe(true);
    expect(failed!.error.cause).toMatchObject({ count: 2, deferredMs: expect.any(Number) });
    expect(worker.governing).toMatchObject({ deferrals: 2, deferralLimited: 1, failed: 1, dropped: 0 });
    expect(told.map(({ job: { id }, limit: { count, end } }) => ({ id, count, end }))).toEqual([
      { id: job!.id, count: 2, end: 'fail' },
    ]);
    expect(told[0]!.limit.refusal).toMatchObject({ allowed: false, limit: 'shop', keyed: true });
    expect(await worker.deferred()).toEqual({ count: 0, oldestMs: 0 });
  });

  // https://github.com/sidekiq/sidekiq/issues/6010: the count was not reset by a start, and the next refusal failed the job.
  test('counts anew after a real start', wallClock, async ({ bench, queue }) => {
    const governor = bench.governor(often());
    await governor.allow({ keys });
    const worker = bench.worker(
      queue,
      { governor, keys, maxHoldMs: 0, maxDeferrals: 1 },
      {
        work: async (job) => {
          await governor.forceN(1, { keys });
          if (attemptOf(job) < 4) throw new Error('again');
        },
      },
    );
    await queue.add('job', {}, { attempts: 4, backoff: { type: 'fixed', delay: 10 } });
    await untilCompleted(queue, 1);
    expect(worker.governing.deferrals).toBe(4);
    expect(worker.governing.deferralLimited).toBe(0);
    expect(bench.starts.length).toBe(4);
  });

  test("'drop' completes the job without a run", wallClock, async ({ bench, queue }) => {
    const governor = bench.governor(often());
    await governor.allow({ keys });
    for (let n = 0; n < 3; n++) await governor.forceN(1, { keys });
    const worker = bench.worker(queue, {
      governor,
      keys,
      maxHoldMs: 0,
      maxDeferrals: 1,
      onRefused: 'requeue',
      onDeferralLimit: 'drop',
    });
    // Requeued for 100 ms at first, since another job waits: and refused again.
    await addJobs(queue, 2);
    await untilCompleted(queue, 1);
    expect(worker.governing.deferralLimited).toBeGreaterThanOrEqual(1);
    expect(worker.governing.dropped).toBe(worker.governing.deferralLimited);
    const dropped = (await queue.getCompleted()).filter((job) => job.returnvalue === null);
    expect(dropped.length).toBeGreaterThanOrEqual(1);
    expect(bench.failed).toEqual([]);
  });

  test('a function decides job by job, and may let it wait on', wallClock, async ({ bench, queue }) => {
    const governor = bench.governor(often());
    await governor.allow({ keys });
    const limits: DeferralLimit[] = [];
    const worker = bench.worker(queue, {
      governor,
      keys,
      maxHoldMs: 0,
      maxDeferrals: 1,
      onDeferralLimit: async (_, limit) => {
        limits.push(limit);
        return limit.count < 3 ? 'delay' : 'drop';
      },
    });
    await queue.add('job', {});
    await takeAll(governor, keys, async () => (await queue.getCompletedCount()) > 0);
    expect(limits.map(({ count }) => count)).toEqual([1, 2, 3]);
    expect(limits[2]!.deferredMs).toBeGreaterThan(limits[0]!.deferredMs);
    expect(worker.governing).toMatchObject({ deferrals: 3, deferralLimited: 3, dropped: 1, failed: 0 });
    expect(bench.starts).toEqual([]);
  });

  test.for([
    ['answers nonsense', () => 'later' as 'drop', /onDeferralLimit returns: expected .* received "later"/],
    ['rejects', () => Promise.reject(new Error('policy is down')), /policy is down/],
  ] as [string, () => 'drop', RegExp][])(
    'a function that %s fails that job',
    async ([, answer, message], { bench, queue }) => {
      const governor = bench.governor({ shop: perHour(2, { burst: 1, by: 'shop' }) });
      await governor.allow({ keys });
      bench.worker(queue, { governor, keys, maxDeferredMs: 10, onDeferralLimit: answer });
      await queue.add('job', {});
      await until(async () => (await queue.getFailedCount()) === 1, 'the job failed');
      expect((await queue.getFailed())[0]!.failedReason).toMatch(message);
    },
  );
});

describe.concurrent('maxDeferredMs', () => {
  test('drops at once what could not start in time, with its turn', wallClock, async ({ bench, queue }) => {
    const governor = bench.governor({ shop: { rate: 1, periodMs: 500, burst: 1, by: 'shop' } });
    const worker = bench.worker(
      queue,
      { governor, keys, maxHoldMs: 200, maxDeferredMs: 1_800, onDeferralLimit: 'drop' },
      { concurrency: 4 },
    );
    await addJobs(queue, 50);
    await untilCompleted(queue, 50);
    // One at once, and those whose slots are at 500, 1,000 and 1,500 ms; and one that came late enough for the next slot.
    const started = bench.starts.map(({ data }) => data.n);
    expect(started.slice(0, 4)).toEqual([0, 1, 2, 3]);
    expect(started.length).toBeLessThanOrEqual(5);
    expect(worker.governing.deferralLimited).toBe(50 - started.length);
    // Nobody is in the line any more: the next is not put behind those that were dropped.
    const [shop] = await governor.peek({ keys });
    expect(shop!.lineMs).toBeLessThanOrEqual(500);
  });

  test('counts from the first deferral', wallClock, async ({ bench, queue }) => {
    const governor = bench.governor(often());
    await governor.allow({ keys });
    const limits: DeferralLimit[] = [];
    const worker = bench.worker(queue, {
      governor,
      keys,
      maxHoldMs: 0,
      maxDeferredMs: 1_000,
      onDeferralLimit: (_, limit) => {
        limits.push(limit);
        return 'drop';
      },
    });
    await queue.add('job', {});
    await takeAll(governor, keys, async () => (await queue.getCompletedCount()) > 0);
    expect(limits.length).toBe(1);
    expect(limits[0]!.count).toBe(worker.governing.deferrals);
    expect(limits[0]!.count).toBeGreaterThanOrEqual(2);
    expect(limits[0]!.deferredMs + limits[0]!.refusal!.retryAfterMs).toBeGreaterThan(1_000);
    expect(limits[0]!.deferredMs).toBeGreaterThan(500);
    expect(limits[0]!.deferredMs).toBeLessThan(1_500);
  });

  test('ignores waits for a governor-wide limit, which defers no job', async ({ bench, queue }) => {
    const governor = bench.governor({ calls: perSecond(5, { burst: 1 }) });
    for (let n = 0; n < 6; n++) await governor.forceN(1);
    const worker = bench.worker(queue, { governor, maxHoldMs: 100, maxDeferredMs: 1, maxDeferrals: 1 });
    await addJobs(queue, 4);
    await untilCompleted(queue, 4);
    expect(worker.governing.deferralLimited).toBe(0);
    expect(bench.starts.length).toBe(4);
  });
});

describe.concurrent('deferred()', () => {
  test('tells on each worker of a queue how many jobs are deferred, since when', async ({ bench, queue }) => {
    const limits = { shop: perHour(2, { burst: 1, by: 'shop' }) };
    const governor = bench.governor(limits);
    const worker = bench.worker(queue, { governor, keys: shopOf });
    const other = bench.worker(
      queue,
      { governor: bench.governor(limits, { name: governor.name }), keys: shopOf },
      { autorun: false },
    );
    expect(await worker.deferred()).toEqual({ count: 0, oldestMs: 0 });
    await addJobs(queue, 3, { name: 'a' });
    await addJobs(queue, 2, { name: 'b' });
    await until(async () => (await queue.getDelayedCount()) === 3, 'three deferred');
    await sleep(120);
    for (const told of [await worker.deferred(), await other.deferred()]) {
      expect(told.count).toBe(3);
      expect(told.oldestMs).toBeGreaterThanOrEqual(120);
      expect(told.oldestMs).toBeLessThan(5_000);
    }
  });

  test('does not count a job that was removed', async ({ bench, queue }) => {
    const governor = bench.governor({ shop: perHour(2, { burst: 1, by: 'shop' }) });
    const worker = bench.worker(queue, { governor, keys: shopOf });
    await addJobs(queue, 3, { name: 'a' });
    await until(async () => (await queue.getDelayedCount()) === 2, 'two deferred');
    expect((await worker.deferred()).count).toBe(2);
    for (const job of await queue.getDelayed()) await job.remove();
    expect(await worker.deferred()).toEqual({ count: 0, oldestMs: 0 });
  });

  test('costs nothing for jobs that are never deferred', async ({ bench, queue }) => {
    const governor = bench.governor({ calls: perSecond(1_000) });
    const asked: string[] = [];
    const { deferrals } = deskOf(governor);
    for (const name of ['note', 'find', 'forget'] as const) {
      const own = deferrals[name].bind(deferrals) as (...args: unknown[]) => Promise<never>;
      Object.assign(deferrals, {
        [name]: (...args: unknown[]) => {
          asked.push(name);
          return own(...args);
        },
      });
    }
    bench.worker(queue, { governor, maxDeferrals: 3, maxDeferredMs: 1_000 }, { concurrency: 10 });
    await addJobs(queue, 100);
    await untilCompleted(queue, 100);
    expect(asked).toEqual([]);
  });
});
