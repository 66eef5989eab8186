import type { Job } from 'bullmq';
import { type CreateGovernorOptions, perSecond } from 'flyball';
import { Throttled } from 'flyball/bullmq';
import { describe, expect } from 'vitest';
import { deskOf } from '../../../src/core/calls/desk.ts';
import { wallClock } from '../../support/wall-clock.ts';
import { addJobs, countsOf, expectNoError, sleep, test, until, untilCompleted } from './fixture.ts';

const limits: CreateGovernorOptions['limits'] = {
  calls: perSecond(100, { burst: 20 }),
  shop: perSecond(50, { burst: 20, by: 'shop' }),
};
const keys = (job: Job) => ({ shop: job.data.shop as string });

describe.concurrent('a pause of the whole governor', () => {
  test('leaves the jobs in the queue until it ends', wallClock, async ({ bench, queue }) => {
    const governor = bench.governor(limits);
    await governor.pause();
    await addJobs(queue, 20, { data: { shop: 'acme' } });
    const worker = bench.worker(
      queue,
      { governor, keys, maxDeferrals: 1, maxHoldMs: 200 },
      { concurrency: 4 },
    );
    await until(() => worker.governing.gate === 'shut', 'the gate is shut');
    await sleep(500);
    const { waiting = 0, active = 0, ...others } = await countsOf(queue);
    expect([waiting + active, others]).toEqual([20, {}]);
    expect(bench.starts).toEqual([]);
    expect(worker.governing.deferrals).toBe(0);

    const calledMs = performance.now();
    await governor.resume();
    await untilCompleted(queue, 20);
    expect(performance.now() - calledMs).toBeLessThan(4_000);
    expectNoError(bench);
  });
});

describe.concurrent('a pause of a key', () => {
  test.for([
    ['with no end', undefined],
    ['of a minute', 60_000],
    ['of ten', 600_000],
  ] as const)(
    '%s fails no job; all run soon after its end',
    wallClock,
    async ([, forMs], { bench, queue }) => {
      // More of them than the shop's burst: those that come back are deferred once more, each at its own time.
      const shop = perSecond(10, { burst: 1, by: 'shop' });
      const governor = bench.governor({ ...limits, shop });
      await governor.pause({ keys: { shop: 'acme' }, ...(forMs !== undefined && { forMs }) });
      await addJobs(queue, 16, { data: { shop: 'acme' } });
      const worker = bench.worker(
        queue,
        { governor, keys, maxDeferrals: 10, maxHoldMs: 300 },
        { concurrency: 50 },
      );
      await until(async () => (await countsOf(queue)).delayed === 16, 'all are deferred');
      for (const job of await queue.getDelayed()) {
        await until(async () => {
          const noted = await deskOf(governor).deferrals.find(job.queueQualifiedName, job.id!, 0);
          return noted?.count === 0;
        }, 'a deferral that does not count');
      }
      await addJobs(queue, 5, { name: 'other', data: { shop: 'other' } });
      await untilCompleted(queue, 5);
      expect(bench.starts.every(({ name }) => name === 'other')).toBe(true);
      expect(worker.governing.deferralLimited).toBe(0);

      const calledMs = performance.now();
      await governor.resume({ keys: { shop: 'acme' } });
      await untilCompleted(queue, 21);
      // They look every four seconds; then the ramp, and a second for their rate.
      expect(performance.now() - calledMs).toBeLessThan(8_000);
      expectNoError(bench);
    },
  );
});

describe.concurrent('Throttled with a header', () => {
  test.for<[string, object]>([
    ['no header', {}],
    ['a header that was missing', { retryAfter: null }],
    ['a header that cannot be read', { retryAfter: 'soon' }],
  ])('(%s) keeps its job away for a second', async ([, options], { bench, queue }) => {
    const governor = bench.governor(limits);
    let throttles = 1;
    const work = (job: Job) => {
      if (throttles-- > 0) throw new Throttled({ ...options, keys: keys(job) });
    };
    await addJobs(queue, 1, { data: { shop: 'acme' } });
    bench.worker(queue, { governor, keys }, { work });
    await untilCompleted(queue, 1);
    const [first, second] = bench.starts.map(({ atMs }) => atMs);
    expect(bench.starts).toHaveLength(2);
    expect(second! - first!).toBeGreaterThanOrEqual(950);
    expect(bench.failed).toEqual([]);
  });

  test('keeps its job away until a date, if there is one', async ({ bench, queue }) => {
    const governor = bench.governor(limits);
    let untilMs = 0;
    const work = (job: Job) => {
      if (untilMs > 0) return;
      // Dates are in whole seconds.
      untilMs = Math.ceil(Date.now() / 1_000) * 1_000 + 2_000;
      throw new Throttled({ retryAfter: new Date(untilMs).toUTCString(), keys: keys(job) });
    };
    const startedMs: number[] = [];
    await addJobs(queue, 1, { data: { shop: 'acme' } });
    bench.worker(
      queue,
      { governor, keys },
      {
        work: (job) => {
          startedMs.push(Date.now());
          return work(job);
        },
      },
    );
    await untilCompleted(queue, 1);
    expect(startedMs).toHaveLength(2);
    expect(startedMs[1]).toBeGreaterThanOrEqual(untilMs - 5);
    expect(bench.failed).toEqual([]);
  });
});
