import { perSecond } from 'flyball';
import { describe, expect } from 'vitest';
import { wallClock } from '../../support/wall-clock.ts';
import { addJobs, countsOf, latch, sleep, test, until, untilCompleted } from './fixture.ts';

describe.concurrent('what the user sees of a governed worker', () => {
  test('concurrency reads what the user set', async ({ bench, queue }) => {
    const governor = bench.governor({ calls: perSecond(50, { burst: 1 }) });
    const worker = bench.worker(queue, { governor }, { concurrency: 7 });
    await addJobs(queue, 40);
    const read = new Set<number>();
    let mostActive = 0;
    while ((await queue.getCompletedCount()) < 40) {
      read.add(worker.concurrency);
      mostActive = Math.max(mostActive, await queue.getActiveCount());
    }
    expect([...read]).toEqual([7]);
    expect(mostActive).toBeLessThanOrEqual(7);
    expect(() => {
      worker.concurrency = 0;
    }).toThrow('concurrency must be a finite number greater than 0');
    expect(worker.concurrency).toBe(7);
  });

  test('concurrency set live is followed, up and down', wallClock, async ({ bench, queue }) => {
    const governor = bench.governor({ calls: perSecond(500, { burst: 50 }) });
    const worker = bench.worker(queue, { governor }, { concurrency: 2, work: () => sleep(30) });
    await addJobs(queue, 500);
    const mostActive = async (ms: number) => {
      let most = 0;
      const untilMs = performance.now() + ms;
      while (performance.now() < untilMs) most = Math.max(most, await queue.getActiveCount());
      return most;
    };
    expect(await mostActive(300)).toBe(2);
    worker.concurrency = 12;
    expect(worker.concurrency).toBe(12);
    await until(async () => (await queue.getActiveCount()) === 12, 'twelve active jobs', 3_000);
    expect(await mostActive(200)).toBe(12);
    worker.concurrency = 3;
    await sleep(100);
    expect(await mostActive(300)).toBe(3);
    expect(bench.errors).toEqual([]);
  });

  test('a shut gate is no pause: isPaused(), isRunning() and events say so', async ({ bench, queue }) => {
    const governor = bench.governor({ calls: perSecond(20, { burst: 1 }) });
    const worker = bench.worker(queue, { governor, maxHoldMs: 100 }, { concurrency: 5 });
    const events: string[] = [];
    worker.on('paused', () => events.push('paused'));
    worker.on('resumed', () => events.push('resumed'));
    await addJobs(queue, 30);
    let closings = 0;
    const odd: string[] = [];
    const watching = setInterval(() => {
      if (worker.governing.gate === 'shut') closings += 1;
      if (worker.isPaused()) odd.push('paused');
      if (!worker.isRunning()) odd.push('not running');
    }, 2);
    for (const started of [5, 15]) {
      await until(() => bench.starts.length >= started, `${started} starts`);
      for (let n = 0; n < 10; n++) await governor.forceN(1);
    }
    await untilCompleted(queue, 30);
    clearInterval(watching);
    expect(closings).toBeGreaterThan(0);
    expect(odd).toEqual([]);
    expect(events).toEqual([]);
  });

  test.for([true, false])(
    'pause(%s) while the gate is shut holds until resume()',
    wallClock,
    async (doNotWaitActive, { bench, queue }) => {
      const governor = bench.governor({ calls: perSecond(20, { burst: 1 }) });
      const worker = bench.worker(queue, { governor, maxHoldMs: 200 }, { concurrency: 5 });
      const events: string[] = [];
      worker.on('paused', () => events.push('paused'));
      worker.on('resumed', () => events.push('resumed'));
      for (let n = 0; n < 16; n++) await governor.forceN(1);
      await addJobs(queue, 10);
      await until(() => worker.governing.gate === 'shut', 'the gate closed');

      const calledMs = performance.now();
      await worker.pause(doNotWaitActive);
      expect(performance.now() - calledMs).toBeLessThan(500);
      expect(worker.isPaused()).toBe(true);
      expect(events).toEqual(['paused']);
      // The tokens are back after 800 ms, and the gate opens; the pause does not.
      await sleep(1_200);
      expect(bench.starts).toEqual([]);
      expect(await countsOf(queue)).toEqual({ waiting: 10 });

      await worker.resume();
      expect(worker.isPaused()).toBe(false);
      await untilCompleted(queue, 10);
      expect(bench.starts.length).toBe(10);
      expect(events).toEqual(['paused', 'resumed']);
      expect(bench.errors).toEqual([]);
    },
  );

  test('a pause lets held jobs run, and fetches no more', async ({ bench, queue }) => {
    const governor = bench.governor({ calls: perSecond(20, { burst: 1 }) });
    const worker = bench.worker(queue, { governor }, { concurrency: 5 });
    await addJobs(queue, 40);
    await until(() => worker.governing.held >= 2, 'some jobs held');
    await worker.pause();
    const started = bench.starts.length;
    expect(worker.governing.held).toBe(0);
    expect(await countsOf(queue)).toEqual({ completed: started, waiting: 40 - started });
    await sleep(300);
    expect(bench.starts.length).toBe(started);
    await worker.resume();
    await untilCompleted(queue, 40);
    expect(bench.starts.length).toBe(40);
  });

  test('governing tells what it does and has done', async ({ bench, queue, onTestFinished }) => {
    const governor = bench.governor({
      calls: perSecond(50, { burst: 5 }),
      shop: { rate: 1, periodMs: 60_000, burst: 1, by: 'shop' },
    });
    const released = latch();
    onTestFinished(released.open);
    const worker = bench.worker(
      queue,
      { governor, keys: (job) => ({ shop: job.name }) },
      { concurrency: 10, work: () => released.opened },
    );
    expect(worker.governing).toMatchObject({ running: 0, held: 0, nearby: 0, gate: 'open', granted: 0 });
    for (const name of ['a', 'b', 'c', 'a', 'a']) await queue.add(name, {});
    await until(async () => (await queue.getDelayedCount()) === 2, 'two jobs deferred');
    await until(() => worker.governing.running === 3 && worker.governing.held === 0, 'all jobs decided');
    expect(worker.governing).toEqual({
      running: 3,
      held: 0,
      nearby: 0,
      target: expect.any(Number),
      gate: 'open',
      granted: 3,
      holds: expect.any(Number),
      deferrals: 2,
      returned: 0,
      dropped: 0,
      failed: 0,
      bypassed: 0,
      deferralLimited: 0,
      throttled: 0,
    });
    expect(await countsOf(queue)).toEqual({ active: 3, delayed: 2 });
    released.open();
    await untilCompleted(queue, 3);
    expect(worker.governing.running).toBe(0);
  });
});
