import type { Job } from 'bullmq';
import { perSecond } from 'flyball';
import { governed } from 'flyball/bullmq';
import { describe, expect } from 'vitest';
import { wallClock } from '../../support/wall-clock.ts';
import {
  addJobs,
  countsOf,
  expectBound,
  expectNoError,
  inversions,
  startsPerJob,
  test,
  until,
  untilCompleted,
} from './fixture.ts';

describe.concurrent('governed()', () => {
  test('with attach() works as GovernedWorker does', wallClock, async ({ bench, queue }) => {
    const governor = bench.governor({ calls: perSecond(50, { burst: 5 }) });
    const processor = governed(governor, bench.recorded(), { cost: (job: Job) => job.data.cost });
    const worker = bench.plainWorker(queue, processor, { concurrency: 10 });
    processor.attach(worker);
    await addJobs(queue, 60, { data: { cost: 2 } });
    await untilCompleted(queue, 60);

    const { mean } = await startsPerJob(queue);
    expect(mean).toBeLessThanOrEqual(1.05);
    expect(processor.governing.granted).toBe(60);
    expect(processor.governing.deferrals).toBe(0);
    const weighted = bench.starts.map(({ atMs }) => ({ atMs, cost: 2 }));
    expectBound(weighted, 50, 5);
    const seconds = (bench.starts.at(-1)!.atMs - bench.starts[0]!.atMs) / 1_000;
    expect((120 - 5) / seconds).toBeGreaterThanOrEqual(50 * 0.95);
    expect(worker.concurrency).toBe(10);
  });

  test('without attach() gives each refused job a turn', wallClock, async ({ bench, queue, annotate }) => {
    const governor = bench.governor({ calls: perSecond(20, { burst: 1 }) });
    const processor = governed(governor, bench.recorded(), { maxHoldMs: 200 });
    bench.plainWorker(queue, processor, { concurrency: 20 });
    await addJobs(queue, 60);
    await untilCompleted(queue, 60);

    const order = bench.starts.map(({ data }) => data.n);
    const { mean, max } = await startsPerJob(queue);
    const seconds = (bench.starts.at(-1)!.atMs - bench.starts[0]!.atMs) / 1_000;
    await annotate(
      `${(59 / seconds).toFixed(1)}/s of 20/s; ${mean.toFixed(2)} starts a job, at most ${max}; ${inversions(order)} inversions`,
    );
    expect(processor.governing.deferrals).toBeGreaterThan(0);
    expectBound(bench.starts, 20, 1);
    expect(59 / seconds).toBeGreaterThanOrEqual(20 * 0.9);
    expect(max).toBeLessThanOrEqual(4);
    expect(new Set(order).size).toBe(60);
    expectNoError(bench);
  });

  test('cannot be attached to a second worker', async ({ bench, queue }) => {
    const governor = bench.governor({ calls: perSecond(20) });
    const processor = governed(governor, bench.recorded());
    const workers = [1, 2].map(() => bench.plainWorker(queue, processor, { autorun: false }));
    processor.attach(workers[0]!);
    expect(() => processor.attach(workers[1]!)).toThrow(/attached to a worker already/);
    expect(await countsOf(queue)).toEqual({});
  });

  test('can be attached after an attempt that failed', async ({ bench, queue }) => {
    const governor = bench.governor({ calls: perSecond(1_000) });
    const processor = governed(governor, bench.recorded());
    // A worker of a BullMQ that is too old, as far as attach() is concerned.
    const old = {
      name: queue.name,
      concurrency: 1,
      pause() {},
      resume() {},
      on() {},
      isRunning() {},
      isPaused() {},
      run() {},
    };
    expect(() => processor.attach(undefined as never)).toThrow(/worker: expected/);
    expect(() => processor.attach(old as never)).toThrow(/no settable Worker#concurrency/);
    const worker = bench.plainWorker(queue, processor);
    processor.attach(worker);
    await addJobs(queue, 3);
    await untilCompleted(queue, 3);
    expect(await processor.deferred()).toEqual({ count: 0, oldestMs: 0 });
  });

  test('may be attached to a worker that runs already', wallClock, async ({ bench, queue }) => {
    const governor = bench.governor({ calls: perSecond(20, { burst: 1 }) });
    const processor = governed(governor, bench.recorded());
    const worker = bench.plainWorker(queue, processor, { concurrency: 8 });
    await addJobs(queue, 40);
    await until(() => bench.starts.length >= 5, 'some jobs done');
    processor.attach(worker);
    await untilCompleted(queue, 40);
    expect(bench.starts.length).toBe(40);
    expectBound(bench.starts, 20, 1);
    expect(bench.errors).toEqual([]);
  });
});
