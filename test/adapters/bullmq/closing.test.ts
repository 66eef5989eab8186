import { type CreateGovernorOptions, perHour, perSecond } from 'flyball';
import { describe, expect } from 'vitest';
import { wallClock } from '../../support/wall-clock.ts';
import { addJobs, closeAtOnce, countsOf, expectNoError, inversions, sleep, test, until } from './fixture.ts';

const dry: CreateGovernorOptions['limits'] = { calls: perHour(1, { burst: 1 }) };

describe.concurrent('close()', wallClock, () => {
  // https://github.com/taskforcesh/bullmq/issues/4163: jobs that threw DelayedError kept close() from ending.
  test.for([1, 50])(
    'returns at once under an empty bucket, every job still there (concurrency %i)',
    async (concurrency, { bench, queue }) => {
      const governor = bench.governor(dry);
      await governor.allow();
      await addJobs(queue, 1_000);
      const worker = bench.worker(queue, { governor }, { concurrency });
      await until(() => worker.governing.gate === 'shut', 'the gate closed');

      await closeAtOnce(worker);

      expect(await countsOf(queue)).toEqual({ waiting: 1_000 });
      const jobs = await queue.getWaiting(0, -1);
      expect(jobs.filter((job) => job.attemptsMade > 0)).toEqual([]);
      expect(bench.starts).toEqual([]);
      expectNoError(bench);
    },
  );

  test('returns at once under a refused key with 1,000 jobs, all still there', async ({ bench, queue }) => {
    const governor = bench.governor({ shop: perHour(1, { burst: 1, by: 'shop' }) });
    await governor.allow({ keys: { shop: 'hot' } });
    await addJobs(queue, 1_000);
    const worker = bench.worker(queue, { governor, keys: { shop: 'hot' } }, { concurrency: 20 });
    await until(() => worker.governing.deferrals > 10, 'some jobs deferred');

    await closeAtOnce(worker);

    const { waiting = 0, delayed = 0, ...others } = await countsOf(queue);
    expect(waiting + delayed).toBe(1_000);
    expect(others).toEqual({});
    const jobs = await queue.getJobs(['wait', 'delayed'], 0, -1);
    expect(jobs.filter((job) => job.attemptsMade > 0)).toEqual([]);
    expect(bench.errors).toEqual([]);
  });

  // https://github.com/SGrondin/bottleneck/issues/94: what waited for the limiter inside a job was lost with its process.
  test('puts held jobs back in order, and gives their tokens back', async ({ bench, queue }) => {
    const governor = bench.governor({ calls: perSecond(5, { burst: 1 }) });
    await addJobs(queue, 50);
    const worker = bench.worker(queue, { governor, maxHoldMs: 60_000 }, { concurrency: 4 });
    // In a quiet moment: no job is being fetched or decided.
    let quiet = 0;
    let before = '';
    await until(() => {
      const { held, holds, granted } = worker.governing;
      const now = `${held} ${holds} ${granted}`;
      quiet = held === 4 && now === before ? quiet + 1 : 0;
      before = now;
      return quiet >= 3;
    }, 'four jobs held');

    await closeAtOnce(worker);

    const started = bench.starts.length;
    expect(await countsOf(queue)).toEqual({ completed: started, waiting: 50 - started });
    const waiting = await queue.getWaiting(0, -1);
    const order = waiting.map((job) => job.data.n as number);
    expect(inversions(order)).toBe(0);
    expect([...order, ...bench.starts.map(({ data }) => data.n)].sort((x, y) => x - y)).toEqual(
      Array.from({ length: 50 }, (_, n) => n),
    );
    expect(waiting.filter((job) => job.attemptsMade > 0)).toEqual([]);
    // Four reservations reached 800 ms ahead; with them handed back, the next token is at most one away.
    const [calls] = await governor.peek();
    expect(calls!.waitMs).toBeLessThanOrEqual(200);
    // One whose time had just come can't be given back; it is lost, never granted twice.
    expect(calls!.granted).toBeLessThanOrEqual(started + 1);
  });

  test('puts jobs back that wait in the worker for a turn of their key', async ({ bench, queue }) => {
    const governor = bench.governor({
      calls: perSecond(100, { burst: 10 }),
      shop: { rate: 1, periodMs: 20_000, burst: 1, by: 'shop' },
    });
    for (const shop of ['a', 'b', 'c']) await governor.allow({ keys: { shop } });
    const worker = bench.worker(
      queue,
      { governor, keys: (job) => ({ shop: job.name }), maxHoldMs: 60_000 },
      { concurrency: 10 },
    );
    for (const name of ['a', 'b', 'c']) await queue.add(name, {});
    await until(() => worker.governing.nearby === 3, 'three jobs waiting for their slots');

    await closeAtOnce(worker);
    expect(await countsOf(queue)).toEqual({ waiting: 3 });
    expect((await queue.getWaiting()).map(({ name }) => name)).toEqual(['a', 'b', 'c']);
    expect(bench.starts).toEqual([]);
    expect(bench.errors).toEqual([]);
  });

  test('waits for jobs that run, and starts no others', async ({ bench, queue }) => {
    const governor = bench.governor({ calls: perSecond(10, { burst: 1 }) });
    await addJobs(queue, 10);
    const worker = bench.worker(queue, { governor }, { concurrency: 5, work: () => sleep(500) });
    await until(() => worker.governing.running === 1, 'one job running');

    await worker.close();
    const started = bench.starts.length;
    expect(await countsOf(queue)).toEqual({ completed: started, waiting: 10 - started });
    expect(bench.errors).toEqual([]);
  });

  test('ends run() too while the gate is shut', async ({ bench, queue }) => {
    const governor = bench.governor(dry);
    await governor.allow();
    await addJobs(queue, 10);
    const worker = bench.worker(queue, { governor }, { autorun: false });
    let ended = false;
    const running = worker.run().then(() => {
      ended = true;
    });
    await until(() => worker.governing.gate === 'shut' && worker.governing.held === 0, 'the gate closed');
    await sleep(100);
    expect(ended).toBe(false);

    await worker.close();
    await running;
    expect(await countsOf(queue)).toEqual({ waiting: 10 });
  });
});
