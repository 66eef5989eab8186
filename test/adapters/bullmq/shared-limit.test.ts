import { FlowProducer } from 'bullmq';
import { perSecond } from 'flyball';
import { describe, expect } from 'vitest';
import { wallClock } from '../../support/wall-clock.ts';
import {
  addJobs,
  expectBound,
  expectNoError,
  sleep,
  startsPerJob,
  test,
  until,
  untilCompleted,
} from './fixture.ts';

describe.concurrent('one governor', wallClock, () => {
  // Two queues of 5/s each with BullMQ's own limiter, which is per queue, give the downstream 10/s.
  test('holds two queues, each with a worker, to one rate', async ({ bench }) => {
    const queues = [bench.queue(), bench.queue()];
    const governor = bench.governor({ calls: perSecond(5, { burst: 1 }) });
    for (const queue of queues) {
      await addJobs(queue, 100);
      bench.worker(queue, { governor }, { concurrency: 10 });
    }
    await until(() => bench.starts.length > 0, 'the first start');
    const untilMs = bench.starts[0]!.atMs + 4_000;
    await sleep(untilMs - performance.now());

    const starts = bench.starts.filter(({ atMs }) => atMs <= untilMs);
    expect(starts.length).toBeGreaterThanOrEqual(20);
    expect(starts.length).toBeLessThanOrEqual(21);
    expectBound(starts, 5, 1);
    for (const queue of queues) expect(await queue.getCompletedCount()).toBeGreaterThan(0);
  });

  // https://github.com/OptimalBits/bull/issues/1116: six queues with six rates all ran at one slow pace.
  test('is not slowed by others: six governors keep six rates', async ({ bench }) => {
    const rates = [4, 8, 16, 32, 64, 128];
    const runs = rates.map((rate) => {
      const queue = bench.queue();
      return {
        rate,
        queue,
        name: `at-${rate}`,
        governor: bench.governor({ calls: perSecond(rate, { burst: 1 }) }),
      };
    });
    for (const { rate, queue, name } of runs) await addJobs(queue, rate * 4, { name });
    for (const { queue, governor } of runs) bench.worker(queue, { governor }, { concurrency: 20 });
    for (const { queue, rate } of runs) await untilCompleted(queue, rate * 4);

    for (const { rate, name } of runs) {
      const starts = bench.startsOf(name);
      const seconds = (starts.at(-1)!.atMs - starts[0]!.atMs) / 1_000;
      expect((starts.length - 1) / seconds, name).toBeGreaterThanOrEqual(rate * 0.95);
      expect((starts.length - 1) / seconds, name).toBeLessThanOrEqual(rate * 1.02);
    }
  });

  // https://github.com/taskforcesh/bullmq/issues/745: the children of a flow ran past the limit.
  test('limits flow children, bulk, delayed, repeated and urgent jobs alike', async ({ bench, queue }) => {
    const parents = bench.queue();
    const governor = bench.governor({ calls: perSecond(25, { burst: 2 }) });
    const worker = bench.worker(queue, { governor }, { concurrency: 10 });
    bench.worker(parents, { governor, bypass: () => 'only its children count here', onBypass: () => {} });
    const flow = new FlowProducer({ connection: bench.connection });
    await flow.add({
      name: 'parent',
      queueName: parents.name,
      children: Array.from({ length: 15 }, (_, n) => ({ name: 'child', queueName: queue.name, data: { n } })),
    });
    await flow.close();
    await addJobs(queue, 15, { name: 'bulk' });
    await addJobs(queue, 5, { name: 'delayed', opts: { delay: 300 } });
    await addJobs(queue, 5, { name: 'prioritised', opts: { priority: 3 } });
    await queue.upsertJobScheduler('each', { every: 200, limit: 5 }, { name: 'repeated' });
    await untilCompleted(queue, 45);
    await untilCompleted(parents, 1);

    expect(worker.governing.granted).toBe(45);
    expect(bench.startsOf('repeated').length).toBe(5);
    const governedStarts = bench.starts.filter(({ name }) => name !== 'parent');
    expect(governedStarts.length).toBe(45);
    expectBound(governedStarts, 25, 2);
    expectNoError(bench);
  });

  // https://github.com/celery/celery/issues/5927: 100 jobs at 10/s took 50 to 80 s, since a poll set the pace.
  test('sets the pace itself: 40 jobs at 10/s take 4 s', async ({ bench, queue }) => {
    const governor = bench.governor({ calls: perSecond(10, { burst: 1 }) });
    await addJobs(queue, 40);
    bench.worker(queue, { governor }, { concurrency: 1 });
    await untilCompleted(queue, 40);
    const seconds = (bench.starts.at(-1)!.atMs - bench.starts[0]!.atMs) / 1_000;
    expect(seconds).toBeGreaterThanOrEqual(3.8);
    expect(seconds).toBeLessThanOrEqual(4.1);
  });

  // https://github.com/OptimalBits/bull/issues/1540: 30,000 jobs at 32/s over five consumers fell to 6/s after minutes.
  // https://github.com/taskforcesh/bullmq/issues/1070 and https://github.com/taskforcesh/bullmq/issues/3087: churn made
  // the event stream grow to gigabytes.
  test('keeps five workers at the rate, and starts few jobs twice', async ({ bench, queue, annotate }) => {
    const governor = bench.governor({ calls: perSecond(32, { burst: 5 }) });
    await addJobs(queue, 5_000);
    const workers = Array.from({ length: 5 }, () => bench.worker(queue, { governor }, { concurrency: 10 }));
    await until(() => bench.starts.length >= 64, 'two seconds of work');
    const stream = `bull:${queue.name}:events`;
    const [[last]] = (await bench.connection.xrevrange(stream, '+', '-', 'COUNT', 1)) as [[string, string[]]];
    const fromMs = performance.now();
    await sleep(4_000);
    const untilMs = performance.now();
    const starts = bench.starts.filter(({ atMs }) => atMs >= fromMs && atMs <= untilMs);
    const perSecondNow = starts.length / ((untilMs - fromMs) / 1_000);
    const events = (await bench.connection.xrange(stream, `(${last}`, '+')).length;
    const { mean, max } = await startsPerJob(queue);
    await annotate(
      `${perSecondNow.toFixed(1)}/s; ${mean.toFixed(3)} starts a job, at most ${max}; ${(events / starts.length).toFixed(1)} events a job`,
    );
    expect(perSecondNow).toBeGreaterThanOrEqual(32 * 0.98 - 0.5);
    expect(perSecondNow).toBeLessThanOrEqual(32 * 1.02 + 0.5);
    expect(mean).toBeLessThanOrEqual(1.2);
    // BullMQ writes two events for a job that starts once: active and completed.
    expect(events / starts.length).toBeLessThanOrEqual(2.5);
    expect(workers.every((worker) => worker.governing.deferrals === 0)).toBe(true);
  });
});

describe('the rate', wallClock, () => {
  // https://github.com/taskforcesh/bullmq/issues/1565: a duration that was no whole number of milliseconds left the queue dead.
  test.for([
    { what: '300 a second', limit: perSecond(300, { burst: 10 }), rate: 300 },
    {
      what: '1,000 in 3 seconds, an interval of no whole number',
      limit: { rate: 1_000, periodMs: 3_000, burst: 5 },
      rate: 1_000 / 3,
    },
  ])('is met within 2 %: $what', async ({ limit, rate }, { bench, queue, annotate }) => {
    const governor = bench.governor({ calls: limit });
    const jobs = Math.round(rate * 2);
    await addJobs(queue, jobs);
    for (let n = 0; n < 2; n++) bench.worker(queue, { governor }, { concurrency: 50 });
    await untilCompleted(queue, jobs);

    const seconds = (bench.starts.at(-1)!.atMs - bench.starts[0]!.atMs) / 1_000;
    const reached = (jobs - limit.burst!) / seconds;
    await annotate(`${reached.toFixed(1)}/s of ${rate.toFixed(1)}/s`);
    expect(reached).toBeGreaterThanOrEqual(rate * 0.98);
    expect(reached).toBeLessThanOrEqual(rate * 1.02);
  });
});
