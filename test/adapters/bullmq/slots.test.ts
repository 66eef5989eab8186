import type { Job } from 'bullmq';
import { type CreateGovernorOptions, type Grant, perHour, perSecond } from 'flyball';
import { type GovernedWorker, grantOf } from 'flyball/bullmq';
import { describe, expect } from 'vitest';
import { wallClock } from '../../support/wall-clock.ts';
import {
  addJobs,
  type Bench,
  closeAtOnce,
  countsOf,
  expectNoError,
  latch,
  sleep,
  test,
  until,
  untilCompleted,
} from './fixture.ts';

const slots = (max: number, leaseMs = 5_000): CreateGovernorOptions['limits'] => ({
  work: { kind: 'concurrency', max, leaseMs },
});

/** Counts in the processors themselves how many run at once. */
class Running {
  most = 0;
  readonly #now = new Map<string, number>();

  constructor(private readonly of: (job: Job) => string = () => 'all') {}

  async during(job: Job, work: () => Promise<unknown>): Promise<void> {
    const name = this.of(job);
    const now = (this.#now.get(name) ?? 0) + 1;
    this.#now.set(name, now);
    this.most = Math.max(this.most, now);
    try {
      await work();
    } finally {
      this.#now.set(name, this.#now.get(name)! - 1);
    }
  }
}

/** Slots that are free at this moment. */
const freeOf = async (governor: ReturnType<Bench['governor']>, keys = {}): Promise<number> => {
  const [limit] = await governor.peek({ keys });
  return limit!.remaining;
};

describe.concurrent('a concurrency limit over two workers', () => {
  test('is never exceeded, and no job is deferred', async ({ bench, queue }) => {
    const limits = slots(3);
    const governor = bench.governor(limits);
    const other = bench.governor(limits, { name: governor.name });
    const running = new Running();
    const work = (job: Job) => running.during(job, () => sleep(20));
    await addJobs(queue, 150);
    const workers = [governor, other].map((governor) =>
      bench.worker(queue, { governor }, { work, concurrency: 10 }),
    );
    await untilCompleted(queue, 150);
    expect(running.most).toBe(3);
    expect(bench.starts).toHaveLength(150);
    expect(new Set(bench.starts.map(({ id }) => id)).size).toBe(150);
    expect(await freeOf(governor)).toBe(3);
    expect(workers.map(({ governing }) => governing.deferrals)).toEqual([0, 0]);
    expectNoError(bench);
  });

  test('counts each key by itself', async ({ bench, queue }) => {
    const limits: CreateGovernorOptions['limits'] = {
      work: { kind: 'concurrency', max: 2, leaseMs: 5_000, by: 'shop' },
    };
    const governor = bench.governor(limits);
    const other = bench.governor(limits, { name: governor.name });
    const running = new Running((job) => job.data.shop);
    const slow = latch();
    const work = (job: Job) =>
      running.during(job, () => (job.data.shop === 'slow' ? slow.opened : sleep(10)));
    await addJobs(queue, 6, { data: { shop: 'slow' } });
    await addJobs(queue, 40, { data: { shop: 'quick' } });
    const keys = (job: Job) => ({ shop: job.data.shop as string });
    for (const each of [governor, other]) {
      bench.worker(queue, { governor: each, keys, maxHoldMs: 200 }, { work, concurrency: 8 });
    }
    const quick = () => bench.starts.filter(({ data }) => data.shop === 'quick').length;
    await until(() => quick() === 40, 'all jobs of the other key started');
    expect(bench.starts.filter(({ data }) => data.shop === 'slow')).toHaveLength(2);
    slow.open();
    await untilCompleted(queue, 46);
    expect(running.most).toBe(2);
    expect(await freeOf(governor, { shop: 'slow' })).toBe(2);
    expectNoError(bench);
  });
});

describe.concurrent('the slot of a job', () => {
  test('is given back when the processor throws', async ({ bench, queue }) => {
    const governor = bench.governor(slots(1, 60_000));
    await addJobs(queue, 5);
    const work = () => {
      throw new Error('the processor failed');
    };
    bench.worker(queue, { governor }, { work, concurrency: 3 });
    await until(() => bench.failed.length === 5, 'five jobs failed');
    expect(await freeOf(governor)).toBe(1);
  });

  test('has a fencing number that grows with each start, retries included', async ({ bench, queue }) => {
    const governor = bench.governor(slots(2));
    const fences: number[] = [];
    const work = (job: Job) => {
      fences.push(grantOf(job)!.fence!);
      if (job.attemptsMade === 0) throw new Error('once more');
    };
    await addJobs(queue, 5, { opts: { attempts: 2 } });
    bench.worker(queue, { governor }, { work, concurrency: 1 });
    await untilCompleted(queue, 5);
    expect(fences).toHaveLength(10);
    expect(fences.filter((fence, index) => index > 0 && fence <= fences[index - 1]!)).toEqual([]);
  });

  test('is renewed for as long as it runs', wallClock, async ({ bench, queue }) => {
    const governor = bench.governor(slots(1, 300));
    const running = new Running();
    const aborted: boolean[] = [];
    const work = (job: Job) =>
      running.during(job, async () => {
        await sleep(1_000);
        aborted.push(grantOf(job)!.signal.aborted);
      });
    await addJobs(queue, 2);
    bench.worker(queue, { governor }, { work, concurrency: 2 });
    await untilCompleted(queue, 2);
    expect(running.most).toBe(1);
    expect(aborted).toEqual([false, false]);
  });

  test('aborts the processor’s signals when it is lost, and fails no job', async ({ bench, queue }) => {
    const governor = bench.governor(slots(1, 600));
    let grant: Grant | undefined;
    let given: AbortSignal | undefined;
    const work = async (job: Job, _token?: string, signal?: AbortSignal) => {
      grant = grantOf(job);
      given = signal;
      await until(() => signal!.aborted && grant!.signal.aborted, 'the signals aborted');
    };
    const [job] = await addJobs(queue, 1);
    bench.worker(queue, { governor }, { work });
    await until(() => grant !== undefined, 'the job runs');
    expect(given?.aborted).toBe(false);
    // The same work, started elsewhere: a worker that was thought to be dead.
    const elsewhere = await governor.allow({ holder: `${job!.queueQualifiedName}:${job!.id}` });
    expect(elsewhere.allowed && elsewhere.fence! > grant!.fence!).toBe(true);
    await untilCompleted(queue, 1);
    // It has not given back what another holds now.
    expect(await freeOf(governor)).toBe(0);
    expect(elsewhere.allowed && (await elsewhere.release())).toBe(true);
    expect(bench.failed).toEqual([]);
  });

  test('has a fencing number of null if no limit has slots', async ({ bench, queue }) => {
    const governor = bench.governor({ calls: perSecond(100) });
    let fence: number | null | undefined;
    const work = (job: Job) => {
      fence = grantOf(job)?.fence;
    };
    const [job] = await addJobs(queue, 1);
    expect(grantOf(job!)).toBeUndefined();
    bench.worker(queue, { governor }, { work });
    await untilCompleted(queue, 1);
    expect(fence).toBeNull();
  });
});

describe.concurrent('close()', () => {
  const opened = async (bench: Bench, keyed: boolean) => {
    const queue = bench.queue();
    const governor = bench.governor({
      work: { kind: 'concurrency', max: 1, leaseMs: 60_000, ...(keyed && { by: 'shop' }) },
    });
    const keys = { shop: 'acme' };
    const holder = await governor.wait(keyed ? { keys } : {});
    await addJobs(queue, 20);
    const worker = bench.worker(
      queue,
      { governor, maxHoldMs: 60_000, ...(keyed && { keys }) },
      { concurrency: 8 },
    );
    return { queue, governor, holder, worker, keys: keyed ? keys : {} };
  };
  const inside = ({ governing: { held, nearby } }: GovernedWorker) => held + nearby;

  test.for([false, true])(
    'returns at once while jobs wait (by key: %s)',
    wallClock,
    async (keyed, { bench }) => {
      const { queue, governor, holder, worker, keys } = await opened(bench, keyed);
      await until(() => inside(worker) > 0, 'jobs wait in the worker');
      await sleep(100);

      await closeAtOnce(worker);

      const { waiting = 0, delayed = 0, ...others } = await countsOf(queue);
      expect([waiting + delayed, others]).toEqual([20, {}]);
      expect(bench.starts).toEqual([]);
      const jobs = await queue.getJobs(['wait', 'delayed'], 0, -1);
      expect(jobs.filter(({ attemptsMade }) => attemptsMade > 0)).toEqual([]);
      // Nobody stands in the queue for slots any more.
      await holder.release();
      expect(await governor.allow({ keys })).toMatchObject({ allowed: true });
      expectNoError(bench);
    },
  );

  test('waits for the jobs that run, and gives their slots back', async ({ bench, queue }) => {
    const governor = bench.governor(slots(2, 60_000));
    await addJobs(queue, 10);
    const worker = bench.worker(queue, { governor }, { work: () => sleep(300), concurrency: 4 });
    await until(() => bench.starts.length === 2, 'two jobs run');
    await worker.close();
    expect(await countsOf(queue)).toEqual({ completed: 2, waiting: 8 });
    expect(await freeOf(governor)).toBe(2);
  });
});

describe.concurrent('options that reach the governor', () => {
  test('settle corrects the cost by what the processor returned', async ({ bench, queue }) => {
    const governor = bench.governor({ calls: perHour(1_000, { burst: 1_000 }) });
    const settled: unknown[] = [];
    const govern = {
      governor,
      cost: 100,
      settle: (job: Job, result: { tokens: number }) => {
        settled.push([job.data.n, result.tokens]);
        return result.tokens;
      },
    };
    const work = ({ data }: Job) => {
      if (data.n === 2) throw new Error('the processor failed');
      return { tokens: 10 * (data.n + 1) };
    };
    await addJobs(queue, 3);
    bench.worker(queue, govern, { work, concurrency: 1 });
    await until(() => bench.failed.length === 1, 'the last job failed');
    expect(settled).toEqual([
      [0, 10],
      [1, 20],
    ]);
    expect(await governor.peek()).toMatchObject([{ remaining: 1_000 - 10 - 20 - 100 }]);
    expect(bench.errors).toEqual([]);
  });

  test.for<[string, (job: Job) => number]>([
    ['throws', (job) => job.data.missing.tokens],
    ['returns no cost', () => Number.NaN],
  ])('settle that %s is told to the error event: the job is done', async ([, settle], { bench, queue }) => {
    const governor = bench.governor({ calls: perHour(10, { burst: 10 }) });
    await addJobs(queue, 1, { opts: { attempts: 3 } });
    bench.worker(queue, { governor, settle });
    await untilCompleted(queue, 1);
    await until(() => bench.errors.length === 1, 'the error was told');
    expect(bench.starts).toHaveLength(1);
    expect(await governor.peek()).toMatchObject([{ remaining: 9 }]);
  });

  test('priority leaves what is reserved to the urgent', async ({ bench, queue }) => {
    const governor = bench.governor({
      calls: perHour(10, { burst: 10, reserve: { high: 0.3, normal: 0.3 } }),
    });
    const priority = (job: Job) => job.data.priority as 'high' | 'normal' | 'low';
    // Waiting nearby for an hour, the less urgent hold up nobody.
    await addJobs(queue, 6, { name: 'low', data: { priority: 'low' } });
    const worker = bench.worker(queue, { governor, priority, maxHoldMs: 50 }, { concurrency: 1 });
    await until(() => bench.startsOf('low').length === 4, 'the low ones that may');
    await until(() => worker.governing.gate === 'shut', 'the gate is shut');
    expect(await governor.allowAtMost(10)).toBe(3);
    expect(await governor.allowAtMost(10, { priority: 'high' })).toBe(3);
    expect(bench.startsOf('low')).toHaveLength(4);
  });
});
