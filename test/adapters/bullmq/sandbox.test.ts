import { fileURLToPath } from 'node:url';
import type { Processor } from 'bullmq';
import { isInvalidOptionError, perHour, perSecond } from 'flyball';
import { GovernedWorker, governed } from 'flyball/bullmq';
import { describe, expect } from 'vitest';
import { addJobs, countsOf, test, until, untilCompleted } from './fixture.ts';

const file = new URL('./sandboxed-processor.mjs', import.meta.url);

describe.concurrent('a sandboxed processor', () => {
  test.for([
    { what: 'path', processor: fileURLToPath(file), useWorkerThreads: false },
    { what: 'URL', processor: file, useWorkerThreads: false },
    { what: 'path, in worker threads', processor: fileURLToPath(file), useWorkerThreads: true },
  ])('is governed by GovernedWorker: $what', async ({ processor, useWorkerThreads }, { bench, queue }) => {
    const governor = bench.governor({ calls: perSecond(20, { burst: 1 }) });
    const options = { processor, concurrency: 4, useWorkerThreads };
    const worker = bench.worker(queue, { governor }, options);
    await addJobs(queue, 16);
    await untilCompleted(queue, 16);

    const jobs = await queue.getCompleted(0, -1);
    const results = jobs.map((job) => job.returnvalue as { pid: number; n: number; atMs: number });
    expect(new Set(results.map(({ n }) => n)).size).toBe(16);
    expect(results.every(({ pid }) => (pid === process.pid) === useWorkerThreads)).toBe(true);
    expect(worker.governing.granted).toBe(16);
    // 15 intervals of 50 ms; the first starts of the sandboxes are slow, so only the whole can be told.
    const times = results.map(({ atMs }) => atMs);
    expect(Math.max(...times) - Math.min(...times)).toBeGreaterThanOrEqual(500);
  });

  test('may throw Throttled: its job goes back without an attempt', async ({ bench, queue }) => {
    const governor = bench.governor({ calls: perSecond(1_000) });
    const worker = bench.worker(queue, { governor }, { processor: file });
    await queue.add('job', { throttles: true });
    await untilCompleted(queue, 1);
    const [job] = await queue.getCompleted();
    expect(job!.attemptsMade).toBe(1);
    expect(job!.attemptsStarted).toBe(2);
    expect(worker.governing).toMatchObject({ throttled: 1, deferrals: 1 });
    expect(bench.failed).toEqual([]);
  });

  test('is not handed a job that is refused', async ({ bench, queue }) => {
    const governor = bench.governor({ shop: perHour(1, { burst: 1, by: 'shop' }) });
    await governor.allow({ keys: { shop: 'acme' } });
    const keys = { shop: 'acme' };
    const worker = bench.worker(queue, { governor, keys }, { processor: fileURLToPath(file) });
    await addJobs(queue, 3);
    await until(() => worker.governing.deferrals === 3, 'all jobs deferred');
    expect(await countsOf(queue)).toEqual({ delayed: 3 });
    expect(bench.failed).toEqual([]);
  });

  test('cannot be given to governed(), which names GovernedWorker', ({ bench }) => {
    const governor = bench.governor({ calls: perSecond(1) });
    let thrown: unknown;
    try {
      governed(governor, fileURLToPath(file) as unknown as Processor);
    } catch (error) {
      thrown = error;
    }
    expect(isInvalidOptionError(thrown)).toBe(true);
    expect((thrown as Error).message).toMatch(
      /processor: expected a function; for a sandboxed processor use GovernedWorker/,
    );
  });

  test('is named by GovernedWorker if it is given nothing', ({ bench }) => {
    const governor = bench.governor({ calls: perSecond(1) });
    const make = () =>
      new GovernedWorker('never', undefined as unknown as string, {
        connection: bench.connection,
        govern: { governor },
      });
    expect(make).toThrow(/processor: expected a function, or the path or URL of a sandboxed one/);
  });
});
