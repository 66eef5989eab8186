import { QueueEvents } from 'bullmq';
import { isStoreUnavailableError, perHour, perSecond } from 'flyball';
import { governed } from 'flyball/bullmq';
import { describe, expect } from 'vitest';
import { connect, startRedis } from '../../support/redis.ts';
import { wallClock } from '../../support/wall-clock.ts';
import {
  addJobs,
  Bench,
  closeAtOnce,
  countsOf,
  expectBound,
  expectNoError,
  sleep,
  test,
  until,
  untilCompleted,
} from './fixture.ts';

describe.concurrent('while the governor’s store is away', () => {
  test('no job is lost, failed or run ungoverned', wallClock, async ({ bench, queue, onTestFinished }) => {
    const store = await startRedis();
    const governor = bench.governor({ calls: perSecond(100, { burst: 5 }) }, { connection: store.url });
    const workers = [1, 2].map(() => bench.worker(queue, { governor }, { concurrency: 10 }));
    const events = new QueueEvents(queue.name, { connection: bench.connection.duplicate() });
    onTestFinished(() => events.close());
    const told: string[] = [];
    events.on('failed', () => told.push('failed'));
    events.on('stalled', () => told.push('stalled'));
    await addJobs(queue, 300);
    await until(() => bench.starts.length >= 100, 'a steady state');

    await store.stop();
    const goneMs = performance.now();
    await sleep(2_000);
    const ungoverned = bench.starts.filter(({ atMs }) => atMs > goneMs + 1_100);
    expect(ungoverned).toEqual([]);
    expect(bench.starts.length).toBeLessThan(290);
    await startRedis([], store.port);
    const backMs = performance.now();
    await until(() => bench.starts.at(-1)!.atMs > backMs, 'work goes on', 5_000);
    await untilCompleted(queue, 300);

    expect(bench.starts.length).toBe(300);
    expect(new Set(bench.starts.map(({ id }) => id)).size).toBe(300);
    expect(await countsOf(queue)).toEqual({ completed: 300 });
    const jobs = await queue.getCompleted(0, -1);
    expect(jobs.filter((job) => job.attemptsMade !== 1)).toEqual([]);
    expect(told).toEqual([]);
    expect(bench.failed).toEqual([]);
    expectBound(bench.starts, 100, 5);
    // One line per worker and interval, not one per job.
    expect(bench.errors.every(isStoreUnavailableError)).toBe(true);
    expect(bench.errors.length).toBeGreaterThanOrEqual(1);
    expect(bench.errors.length).toBeLessThanOrEqual(2);
    expect(workers.every((worker) => worker.governing.failed === 0)).toBe(true);
  });

  test('a worker that starts then waits, and closes at once', wallClock, async ({ bench, queue }) => {
    const store = await startRedis();
    await store.stop();
    await addJobs(queue, 20);
    const governor = bench.governor({ calls: perSecond(100, { burst: 5 }) }, { connection: store.url });
    const worker = bench.worker(queue, { governor }, { concurrency: 5 });
    await until(() => worker.governing.gate === 'shut', 'the gate closed');
    await sleep(200);
    await closeAtOnce(worker);
    expect(await countsOf(queue)).toEqual({ waiting: 20 });

    const again = bench.worker(queue, { governor }, { concurrency: 5 });
    await until(() => again.governing.gate === 'shut', 'the gate closed');
    await startRedis([], store.port);
    await untilCompleted(queue, 20);
    expect(bench.starts.length).toBe(20);
    expect(bench.failed).toEqual([]);
  });

  test('without attach() jobs are deferred, not failed', async ({ bench, queue }) => {
    const store = await startRedis();
    await store.stop();
    await addJobs(queue, 10);
    const governor = bench.governor({ calls: perSecond(100, { burst: 5 }) }, { connection: store.url });
    const processor = governed(governor, bench.recorded());
    bench.plainWorker(queue, processor, { concurrency: 5 });
    await until(() => processor.governing.deferrals >= 10, 'all jobs deferred');
    await startRedis([], store.port);
    await untilCompleted(queue, 10);
    expect(bench.starts.length).toBe(10);
    expectNoError(bench);
  });

  test('a governor closed under its worker leaves every job in the queue', async ({ bench, queue }) => {
    const governor = bench.governor({ calls: perSecond(50, { burst: 5 }) });
    await addJobs(queue, 100);
    const worker = bench.worker(queue, { governor }, { concurrency: 5 });
    await until(() => bench.starts.length >= 10, 'some jobs done');
    await governor.close();
    await until(() => worker.governing.gate === 'shut', 'the gate closed');
    await until(async () => (await queue.getActiveCount()) === 0, 'no job is active');
    const started = bench.starts.length;
    expect(await countsOf(queue)).toEqual({ completed: started, waiting: 100 - started });
    expect(bench.failed).toEqual([]);
    await worker.close();
  });
});

// https://github.com/ixti/sidekiq-throttled/issues/36: hundreds of jobs at 10 an hour were taken and put back each second.
test.concurrent('300 jobs that are deferred for hours cost the server next to nothing', async ({
  onTestFinished,
  annotate,
}) => {
  const server = await startRedis();
  const connection = connect({ maxRetriesPerRequest: null }, server.url);
  const bench = new Bench({ onTestFinished }, connection);
  const queue = bench.queue();
  const governor = bench.governor(
    { shop: perHour(10, { burst: 1, by: 'shop' }) },
    { connection: server.url },
  );
  await addJobs(queue, 300);
  const worker = bench.worker(queue, { governor, keys: { shop: 'acme' } }, { concurrency: 10 });
  await until(async () => (await queue.getDelayedCount()) === 299, 'all but one deferred');
  const commands = async () =>
    Number(/total_commands_processed:(\d+)/.exec(await connection.info('stats'))![1]);
  await sleep(300);
  const before = await commands();
  await sleep(3_000);
  const perJobAndMinute = (((await commands()) - before) * 20) / 299;
  await annotate(`${perJobAndMinute.toFixed(2)} commands per deferred job and minute`);
  expect(perJobAndMinute).toBeLessThan(10);
  expect(worker.governing.deferrals).toBeLessThanOrEqual(2 * 299);
});
