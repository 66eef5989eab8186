import { FlowProducer, QueueEvents } from 'bullmq';
import { perSecond } from 'flyball';
import { attemptOf } from 'flyball/bullmq';
import { describe, expect } from 'vitest';
import { wallClock } from '../../support/wall-clock.ts';
import {
  addJobs,
  expectBound,
  expectNoError,
  inversions,
  median,
  sleep,
  startsPerJob,
  takeAll,
  test,
  untilCompleted,
} from './fixture.ts';

describe.concurrent('a deferred job', () => {
  // https://github.com/taskforcesh/bullmq/issues/1627 and https://github.com/taskforcesh/bullmq/issues/1656: delayed jobs
  // were picked up at the next poll, seconds later, or never.
  test('is back within 150 ms of its turn', wallClock, async ({ bench, queue, annotate }) => {
    // The second job of each key has its slot 1,500 ms after the first's start: further than it would be held for.
    const governor = bench.governor({ shop: { rate: 1, periodMs: 1_500, burst: 1, by: 'shop' } });
    const worker = bench.worker(
      queue,
      { governor, keys: (job) => ({ shop: job.name }) },
      { concurrency: 10 },
    );
    const names = Array.from({ length: 20 }, (_, n) => `shop-${n}`);
    for (const name of names) {
      await addJobs(queue, 2, { name });
      await sleep(37);
    }
    await untilCompleted(queue, 40);

    const lateMs = names.map((name) => {
      const [first, second] = bench.startsOf(name);
      return second!.atMs - first!.atMs - 1_500;
    });
    await annotate(
      `late by a median of ${median(lateMs).toFixed(0)} ms, at most ${Math.max(...lateMs).toFixed(0)} ms`,
    );
    expect(worker.governing.deferrals).toBe(20);
    expect(Math.min(...lateMs)).toBeGreaterThan(-5);
    expect(Math.max(...lateMs)).toBeLessThanOrEqual(150);
    expect((await startsPerJob(queue)).max).toBe(2);
  });

  // https://github.com/inngest/inngest/pull/2528: what came back had lost its key and was charged to the wrong bucket.
  test('is charged in full to the same bucket when it is back', wallClock, async ({ bench, queue }) => {
    const governor = bench.governor({ shop: { rate: 4, periodMs: 2_000, burst: 4, by: 'shop' } });
    const asked: unknown[] = [];
    bench.worker(queue, {
      governor,
      maxHoldMs: 0,
      cost: (job) => job.data.cost,
      keys: (job) => {
        asked.push(job.id);
        return { shop: job.data.shop };
      },
    });
    const [, second] = await queue.addBulk([
      { name: 'first', data: { shop: 'acme', cost: 4 } },
      { name: 'second', data: { shop: 'acme', cost: 2 } },
    ]);
    await untilCompleted(queue, 2);

    expect(asked.filter((id) => id === second!.id).length).toBeGreaterThanOrEqual(2);
    const [acme] = await governor.peek({ keys: { shop: 'acme' } });
    const [nobody] = await governor.peek();
    expect(acme!.granted).toBe(6);
    expect(nobody!.granted).toBe(0);
    expect(bench.starts[1]!.atMs - bench.starts[0]!.atMs).toBeGreaterThanOrEqual(900);
  });

  // https://github.com/activepieces/activepieces/issues/9349: limited jobs were copied to a second queue under the same id,
  // and lost. Here a job stays where it is.
  test(
    'keeps its data, options, attempts and parent',
    wallClock,
    async ({ bench, queue, onTestFinished }) => {
      const parents = bench.queue();
      const governor = bench.governor({ shop: perSecond(20, { burst: 1, by: 'shop' }) });
      const events = new QueueEvents(queue.name, { connection: bench.connection.duplicate() });
      onTestFinished(() => events.close());
      await events.waitUntilReady();
      const told: string[] = [];
      for (const event of ['failed', 'stalled', 'retries-exhausted', 'duplicated', 'removed'] as const) {
        events.on(event, () => told.push(event));
      }
      const keys = { shop: 'acme' };
      await governor.forceN(1, { keys });
      await governor.forceN(1, { keys });

      const flow = new FlowProducer({ connection: bench.connection });
      const tree = await flow.add({
        name: 'parent',
        queueName: parents.name,
        children: [
          {
            name: 'child',
            queueName: queue.name,
            data: { list: [1, 2, 3], text: 'ü' },
            opts: {
              priority: 7,
              attempts: 3,
              backoff: { type: 'exponential', delay: 60_000 },
              jobId: 'mine',
              keepLogs: 10,
              stackTraceLimit: 4,
            },
          },
        ],
      });
      const child = tree.children![0]!.job;
      const stored = async (id: string) => JSON.parse(JSON.stringify(await queue.getJob(id)));
      const before = await stored(child.id!);
      let after: Record<string, unknown> | undefined;
      let attempt = 0;
      const worker = bench.worker(
        queue,
        { governor, keys, maxHoldMs: 0 },
        {
          work: async (job) => {
            attempt = attemptOf(job);
            after = await stored(job.id!);
          },
        },
      );
      await takeAll(governor, keys, async () => worker.governing.deferrals >= 10);
      await untilCompleted(queue, 1);
      await flow.close();

      const kept = (job: Record<string, unknown>) => {
        const { attemptsStarted, processedOn, processedBy, ...rest } = job;
        return rest;
      };
      expect(worker.governing.deferrals).toBeGreaterThanOrEqual(10);
      expect(after!.attemptsStarted).toBe(worker.governing.deferrals + 1);
      expect(kept(after!)).toEqual(kept(before));
      // https://github.com/taskforcesh/bullmq/issues/3000: who picks a step by attemptsStarted skips one with each refusal.
      expect(attempt).toBe(1);
      expect(bench.starts.length).toBe(1);
      expect(told).toEqual([]);
      expectNoError(bench);
      expect((await parents.getWaitingCount()) + (await parents.getActiveCount())).toBe(1);
    },
  );

  test('comes back in the order of its key', wallClock, async ({ bench, queue, annotate }) => {
    const governor = bench.governor({ shop: perSecond(10, { burst: 1, by: 'shop' }) });
    await addJobs(queue, 30);
    bench.worker(queue, { governor, keys: { shop: 'acme' } }, { concurrency: 30 });
    await untilCompleted(queue, 30);

    const order = bench.starts.map(({ data }) => data.n);
    await annotate(`${inversions(order)} inversions; ${JSON.stringify(await startsPerJob(queue))} starts`);
    expectBound(bench.starts, 10, 1);
    const seconds = (bench.starts.at(-1)!.atMs - bench.starts[0]!.atMs) / 1_000;
    expect(29 / seconds).toBeGreaterThanOrEqual(10 * 0.9);
    expect(inversions(order)).toBeLessThanOrEqual(3);
    expect((await startsPerJob(queue)).max).toBeLessThanOrEqual(4);
  });
});
