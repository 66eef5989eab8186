import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import type { Queue } from 'bullmq';
import { perSecond } from 'flyball';
import type { Redis } from 'ioredis';
import { describe, expect, type TestContext } from 'vitest';
import { wallClock } from '../../support/wall-clock.ts';
import {
  addJobs,
  type Bench,
  countsOf,
  expectBound,
  inversions,
  sleep,
  test,
  until,
  untilCompleted,
} from './fixture.ts';

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

/**
 * Jobs that are held at the same time start by timers of their own, within milliseconds of each other: two neighbours may
 * change places. Scrambled, 200 jobs have about a hundred inversions.
 */
const A_FEW = 10;

/**
 * Expects the jobs to have started in the order of their queue. With a concurrency of one that is exact. With more of it
 * BullMQ itself hands over neighbours in either order: one comes with the end of a job, the other by a fetch of its own.
 */
async function expectInOrder({ starts }: Bench, concurrency: number, annotate: TestContext['annotate']) {
  const order = starts.filter(({ name }) => name === 'job').map(({ data }) => data.n as number);
  const found = inversions(order);
  const displaced = Math.max(...order.map((n, place) => Math.abs(n - place)));
  await annotate(
    `concurrency ${concurrency}: ${found} inversions in ${order.length}, by at most ${displaced}`,
  );
  expect(found).toBeLessThanOrEqual(concurrency === 1 ? 0 : order.length * 0.05);
  expect(displaced).toBeLessThanOrEqual(concurrency === 1 ? 0 : concurrency / 2);
}

describe.concurrent('order under a governor-wide limit', wallClock, () => {
  // https://github.com/OptimalBits/bull/issues/1053 and https://github.com/taskforcesh/bullmq/issues/1302: 200 ordered
  // jobs under a limit came out in random order.
  test.for([1, 20])('is kept with a concurrency of %i', async (concurrency, { bench, queue, annotate }) => {
    const governor = bench.governor({ calls: perSecond(100, { burst: 5 }) });
    await addJobs(queue, 200);
    bench.worker(queue, { governor }, { concurrency });
    await untilCompleted(queue, 200);

    await expectInOrder(bench, concurrency, annotate);
    expect(bench.starts.length).toBe(200);
    expectBound(bench.starts, 100, 5);
  });

  // https://github.com/taskforcesh/bullmq/issues/1915 and https://github.com/taskforcesh/bullmq/issues/1929: what was
  // refused came back scrambled.
  test.for([
    { what: 'plain jobs', opts: {}, concurrency: 1 },
    { what: 'plain jobs', opts: {}, concurrency: 20 },
    { what: 'jobs of one priority', opts: { priority: 5 }, concurrency: 1 },
    { what: 'jobs of one priority', opts: { priority: 5 }, concurrency: 20 },
  ])(
    'survives refusals: $what, concurrency $concurrency',
    async ({ opts, concurrency }, { bench, queue, annotate }) => {
      const governor = bench.governor({ calls: perSecond(100, { burst: 5 }) });
      await addJobs(queue, 200, { opts });
      const worker = bench.worker(queue, { governor, maxHoldMs: 300 }, { concurrency });
      for (const started of [20, 80, 140]) {
        await until(() => bench.starts.length >= started, `${started} starts`);
        // Someone else's calls, as often as it takes for the worker to give back what it has fetched.
        const { returned } = worker.governing;
        while (worker.governing.returned === returned && bench.starts.length < 200) {
          await Promise.all(Array.from({ length: 10 }, () => governor.forceN(5)));
          await sleep(200);
        }
      }
      await untilCompleted(queue, 200);

      expect(worker.governing.returned).toBeGreaterThan(0);
      await expectInOrder(bench, concurrency, annotate);
      expect(bench.starts.length).toBe(200);
      expect(bench.failed).toEqual([]);
    },
  );

  test('lets an urgent job pass a backlog of 5,000', async ({ bench, queue, annotate }) => {
    const governor = bench.governor({ calls: perSecond(50, { burst: 5 }) });
    await addJobs(queue, 5_000, { opts: { priority: 10 } });
    bench.worker(queue, { governor }, { concurrency: 50 });
    await until(() => bench.starts.length >= 50, 'a steady state');

    const lateMs: number[] = [];
    for (let n = 0; n < 5; n++) {
      const seen = bench.startsOf('urgent').length;
      const addedMs = performance.now();
      await queue.add('urgent', {}, { priority: 1 });
      await until(() => bench.startsOf('urgent').length > seen, 'the urgent job', 5_000);
      lateMs.push(bench.startsOf('urgent').at(-1)!.atMs - addedMs);
    }
    await annotate(`urgent jobs started after ${lateMs.map(Math.round).join(', ')} ms`);
    expect(Math.max(...lateMs)).toBeLessThanOrEqual(1_200);
    const backlog = bench.startsOf('job').map(({ data }) => data.n);
    expect(inversions(backlog)).toBeLessThanOrEqual(A_FEW);
  });
});

/** Makes copies of one job, since adding so many takes BullMQ ten seconds. */
async function fillWith(queue: Queue, connection: Redis, count: number): Promise<void> {
  const { id } = await queue.add('job', { n: 0 }, { removeOnComplete: true });
  const copy = `
    for n = ARGV[2] + 1, ARGV[3] do
      redis.call('COPY', KEYS[1] .. ARGV[1], KEYS[1] .. 'copy-' .. n)
      redis.call('LPUSH', KEYS[1] .. 'wait', 'copy-' .. n)
    end`;
  for (let from = 1; from < count; from += 10_000) {
    const to = Math.min(count, from + 10_000);
    await connection.eval(copy, 1, queue.toKey(''), id!, from, to);
  }
}

describe('a backlog of 100,000 jobs', () => {
  // https://github.com/OptimalBits/bull/issues/1110: with 100,000s waiting, the worker stopped and memory grew.
  // https://github.com/OptimalBits/bull/issues/1893: parking what must wait pinned the server.
  test('stays in the queue, and memory stays flat', wallClock, async ({ bench, queue, annotate }) => {
    const governor = bench.governor({ calls: perSecond(50, { burst: 5 }) });
    await fillWith(queue, bench.connection, 100_000);
    const worker = bench.worker(queue, { governor }, { concurrency: 50 });
    await until(() => bench.starts.length >= 25, 'a steady state');
    collectGarbage();
    const heapBefore = process.memoryUsage().heapUsed;

    const deferred: number[] = [];
    const active: number[] = [];
    const untilMs = performance.now() + 3_000;
    const seen = bench.starts.length;
    while (performance.now() < untilMs) {
      const counts = await queue.getJobCounts('delayed', 'active');
      deferred.push(counts.delayed ?? 0);
      active.push(counts.active ?? 0);
      await sleep(50);
    }
    const started = bench.starts.length - seen;
    collectGarbage();
    const grownMb = (process.memoryUsage().heapUsed - heapBefore) / 2 ** 20;
    await annotate(`heap grew by ${grownMb.toFixed(1)} MB; at most ${Math.max(...active)} active`);

    expect(Math.max(...deferred)).toBe(0);
    expect(started).toBeGreaterThanOrEqual(50 * 3 * 0.95);
    expect(started).toBeLessThanOrEqual(50 * 3 * 1.05 + 5);
    expect(grownMb).toBeLessThan(5);
    expect(worker.governing.deferrals).toBe(0);
    await worker.close();
    const { waiting } = await countsOf(queue);
    expect(waiting! + bench.starts.length).toBe(100_000);
  });
});
