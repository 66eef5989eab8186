import { QueueEvents } from 'bullmq';
import { perHour, perSecond } from 'flyball';
import { describe, expect } from 'vitest';
import { wallClock } from '../../support/wall-clock.ts';
import {
  addJobs,
  countsOf,
  expectBound,
  expectNoError,
  latch,
  test,
  until,
  untilCompleted,
} from './fixture.ts';

describe.concurrent('a held job', () => {
  // glide-mq 0.15.3 (https://github.com/avifenesh/glide-mq/blob/main/CHANGELOG.md): the heartbeat began after the
  // limiter's wait, and a worker reclaimed its own waiting job.
  test('keeps its lock through a hold of five lock durations', wallClock, async ({ bench, queue }) => {
    const governor = bench.governor({ calls: { rate: 1, periodMs: 5_000, burst: 1 } });
    await governor.allow();
    const options = { lockDuration: 1_000, stalledInterval: 300, concurrency: 2 };
    const worker = bench.worker(queue, { governor, maxHoldMs: 10_000 }, options);
    const other = bench.worker(queue, { governor, maxHoldMs: 10_000 }, options);
    const stalled: string[] = [];
    for (const each of [worker, other]) each.on('stalled', (id) => stalled.push(id));
    await queue.add('held', {});
    await untilCompleted(queue, 1);

    expect(stalled).toEqual([]);
    expect(bench.starts.length).toBe(1);
    const [job] = await queue.getCompleted();
    expect(job!.attemptsStarted).toBe(1);
    expect(job!.stalledCounter).toBe(0);
    expect(worker.governing.holds + other.governing.holds).toBe(1);
    expect(bench.errors).toEqual([]);
  });

  // https://github.com/taskforcesh/bullmq/issues/1479: a job whose fetch was under way at a pause stalled.
  test(
    'never stalls, though the gate shuts and opens',
    wallClock,
    async ({ bench, queue, onTestFinished }) => {
      const governor = bench.governor({ calls: perSecond(40, { burst: 2 }) });
      const options = { lockDuration: 1_000, stalledInterval: 200, concurrency: 10 };
      const workers = [1, 2].map(() => bench.worker(queue, { governor, maxHoldMs: 100 }, options));
      const stalled: string[] = [];
      for (const worker of workers) worker.on('stalled', (id) => stalled.push(id));
      let closings = 0;
      let wasOpen = true;
      const watching = setInterval(() => {
        const open = workers.every((worker) => worker.governing.gate === 'open');
        if (wasOpen && !open) closings += 1;
        wasOpen = open;
      }, 1);
      onTestFinished(() => clearInterval(watching));
      await addJobs(queue, 120);
      for (const started of [20, 40, 60, 80]) {
        await until(() => bench.starts.length >= started, `${started} starts`);
        // A burst of someone else's calls: the wait is longer than jobs may be held.
        for (let n = 0; n < 8; n++) await governor.forceN(2);
      }
      await untilCompleted(queue, 120);

      expect(closings).toBeGreaterThanOrEqual(4);
      expect(stalled).toEqual([]);
      expect(new Set(bench.starts.map(({ id }) => id)).size).toBe(120);
      expect(bench.starts.length).toBe(120);
      expectNoError(bench);
    },
  );

  // https://github.com/taskforcesh/bullmq/issues/3289: with a limiter on, one hanging job froze the whole worker.
  test('is not kept waiting by a job that hangs', async ({ bench, queue, onTestFinished }) => {
    const governor = bench.governor({ calls: perSecond(100, { burst: 10 }) });
    const hanging = latch();
    onTestFinished(hanging.open);
    await queue.add('hanging', {});
    await addJobs(queue, 100);
    bench.worker(
      queue,
      { governor },
      { concurrency: 4, work: (job) => (job.name === 'hanging' ? hanging.opened : undefined) },
    );
    await untilCompleted(queue, 100);
    expect(await countsOf(queue)).toEqual({ active: 1, completed: 100 });
    hanging.open();
    await untilCompleted(queue, 101);
  });

  test('keeps no job waiting that its limit does not concern', async ({ bench }) => {
    const slow = bench.queue();
    const quick = bench.queue();
    const governor = bench.governor({ slow: perHour(1, { burst: 1 }), quick: perSecond(100, { burst: 10 }) });
    await governor.allow();
    await addJobs(slow, 5);
    await addJobs(quick, 50);
    bench.worker(slow, { governor, cost: { quick: 0 } });
    bench.worker(quick, { governor, cost: { slow: 0 } });
    await untilCompleted(quick, 50);
    expect(await slow.getCompletedCount()).toBe(0);
  });

  test.for([
    { what: 'of one parameter', takesSignal: false },
    { what: 'that takes the signal', takesSignal: true },
  ])(
    'gives its tokens back when it is cancelled; a processor $what',
    async ({ takesSignal }, { bench, queue }) => {
      const governor = bench.governor({ calls: perHour(3_600, { burst: 5 }) });
      for (let n = 0; n < 5; n++) await governor.forceN(5);
      const processor = takesSignal
        ? async (_job: unknown, _token?: string, _signal?: AbortSignal) => 'ran'
        : async () => 'ran';
      const worker = bench.worker(queue, { governor, maxHoldMs: 60_000 }, { processor });
      const job = await queue.add('held', {}, { attempts: 1 });
      await until(() => worker.governing.holds === 1, 'the job held');
      const [before] = await governor.peek();

      expect(worker.cancelJob(job.id!, 'not wanted any more')).toBe(true);
      await until(async () => (await queue.getFailedCount()) === 1, 'the job ended');
      const [after] = await governor.peek();
      expect(after!.granted).toBe(before!.granted - 1);
      expect(bench.starts).toEqual([]);
      expect(worker.governing.held).toBe(0);
      const failed = await queue.getJob(job.id!);
      expect(failed!.failedReason).toContain('not wanted any more');
    },
  );
});

describe.concurrent('the processor', () => {
  test('gets the job, the token and the signal, and gives the result', async ({ bench, queue }) => {
    const governor = bench.governor({ calls: perSecond(100) });
    const given: unknown[] = [];
    bench.worker(
      queue,
      { governor },
      {
        work: async (job, token, signal) => {
          given.push(job.id, token === job.token, signal instanceof AbortSignal);
          await job.updateProgress(50);
          return { n: 42 };
        },
      },
    );
    const job = await queue.add('job', {});
    await untilCompleted(queue, 1);
    expect(given).toEqual([job.id, true, true]);
    const done = await queue.getJob(job.id!);
    expect(done!.returnvalue).toEqual({ n: 42 });
    expect(done!.progress).toBe(50);
  });

  test('sees the signal fire when a running job is cancelled', async ({ bench, queue }) => {
    const governor = bench.governor({ calls: perSecond(100) });
    const worker = bench.worker(
      queue,
      { governor },
      {
        work: (_job, _token, signal) =>
          new Promise((_, reject) => signal!.addEventListener('abort', () => reject(new Error('stopped')))),
      },
    );
    const job = await queue.add('job', {});
    await until(() => worker.governing.running === 1, 'the job running');
    expect(worker.cancelJob(job.id!)).toBe(true);
    await until(async () => (await queue.getFailedCount()) === 1, 'the job failed');
    expect((await queue.getJob(job.id!))!.failedReason).toBe('stopped');
  });

  // https://github.com/sidekiq/sidekiq/issues/3943 and https://github.com/taskforcesh/bullmq/issues/1602: user code ran
  // on after, or again because of, a refusal. Here the gate stands before it.
  // https://github.com/taskforcesh/bullmq/issues/2094 and https://github.com/taskforcesh/bullmq/issues/3295: a job moved
  // without its token raised errors about a missing lock.
  test(
    'is called once per job, however often it was refused',
    wallClock,
    async ({ bench, queue, onTestFinished }) => {
      const governor = bench.governor({
        calls: perSecond(60, { burst: 3 }),
        shop: perSecond(8, { burst: 1, by: 'shop' }),
      });
      const events = new QueueEvents(queue.name, { connection: bench.connection.duplicate() });
      onTestFinished(() => events.close());
      await events.waitUntilReady();
      const told: string[] = [];
      events.on('failed', ({ jobId, failedReason }) => told.push(`${jobId} failed: ${failedReason}`));
      events.on('stalled', ({ jobId }) => told.push(`${jobId} stalled`));
      for (let n = 0; n < 100; n++) await queue.add('job', { n, shop: n % 7 });
      const workers = [1, 2].map(() =>
        bench.worker(
          queue,
          { governor, keys: (job) => ({ shop: job.data.shop }), maxHoldMs: 150 },
          { concurrency: 20 },
        ),
      );
      await untilCompleted(queue, 100);

      // https://github.com/osunyorg/admin/issues/3931 and https://github.com/NHSDigital/manage-vaccinations-in-schools/pull/2566:
      // throttling raised as failures set off alerts.
      expect(workers.reduce((sum, { governing }) => sum + governing.deferrals, 0)).toBeGreaterThan(10);
      expect(bench.starts.length).toBe(100);
      expect(new Set(bench.starts.map(({ id }) => id)).size).toBe(100);
      expect(told).toEqual([]);
      expectNoError(bench);
      const jobs = await queue.getCompleted(0, -1);
      expect(jobs.every((job) => job.attemptsMade === 1)).toBe(true);
      expectBound(bench.starts, 60, 3);
      for (let shop = 0; shop < 7; shop++) {
        const starts = bench.starts.filter(({ data }) => data.shop === shop);
        expectBound(starts, 8, 1);
      }
    },
  );
});
