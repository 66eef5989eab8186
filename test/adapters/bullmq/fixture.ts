import { setTimeout as sleep } from 'node:timers/promises';
import { type Job, type JobsOptions, type Processor, Queue, Worker } from 'bullmq';
import { type CreateGovernorOptions, createGovernor, type Governor, type Keys } from 'flyball';
import { GovernedWorker, type GovernedWorkerOptions } from 'flyball/bullmq';
import type { Redis } from 'ioredis';
import { test as base, expect, type TestContext } from 'vitest';
import { connect, redisUrl, uniqueName } from '../../support/redis.ts';

export { sleep };

/** One call of the user's processor. */
export interface Start {
  readonly id: string;
  readonly name: string;
  readonly atMs: number;
  // biome-ignore lint/suspicious/noExplicitAny: each test knows what it put there.
  readonly data: any;
  readonly attemptsStarted: number;
}

type Work = (job: Job, token?: string, signal?: AbortSignal) => unknown;
// biome-ignore lint/suspicious/noExplicitAny: BullMQ's own defaults, so that a test may read its jobs' data.
type Options = GovernedWorkerOptions<any, any, string>;
type WorkerOptions = Partial<Omit<Options, 'govern'>>;
type Govern = Options['govern'];

/**
 * What a test on BullMQ needs, each with a name of its own, and taken down when the test ends: workers closed, queues
 * obliterated, governors closed.
 */
export class Bench {
  /** Everything that workers of this bench told their 'error' event. */
  readonly errors: Error[] = [];
  /** Everything that failed, by the workers' 'failed' event. */
  readonly failed: { id: string; error: Error }[] = [];
  readonly starts: Start[] = [];
  readonly #workers: Worker[] = [];
  readonly #queues: Queue[] = [];
  readonly #governors: Governor[] = [];

  /** @param connection - BullMQ's. Default: to the Redis that all tests share. */
  constructor(
    { onTestFinished }: Pick<TestContext, 'onTestFinished'>,
    readonly connection: Redis = connect({ maxRetriesPerRequest: null }),
  ) {
    onTestFinished(async () => {
      await Promise.all(this.#workers.map((worker) => worker.close()));
      await Promise.all(this.#governors.map((governor) => governor.close()));
      for (const queue of this.#queues) {
        await queue.obliterate({ force: true });
        await queue.close();
      }
      this.connection.disconnect();
    });
  }

  queue(name = uniqueName('queue')): Queue {
    const queue = new Queue(name, { connection: this.connection });
    this.#queues.push(queue);
    return queue;
  }

  governor(limits: CreateGovernorOptions['limits'], options: Partial<CreateGovernorOptions> = {}): Governor {
    const governor = createGovernor({
      name: uniqueName('governor'),
      connection: redisUrl(),
      limits,
      ...options,
    });
    this.#governors.push(governor);
    return governor;
  }

  /**
   * A governed worker that records each start, unless it is given a `processor` of its own. Its queue is looked at every
   * second, so that closing is quick.
   */
  worker(
    queue: Pick<Queue, 'name'>,
    govern: Govern,
    options: WorkerOptions & { work?: Work; processor?: string | URL | Processor } = {},
  ): GovernedWorker {
    const { work, processor = this.recorded(work), ...rest } = options;
    const all = { connection: this.connection, drainDelay: 1, ...rest, govern };
    return this.#watched(new GovernedWorker(queue.name, processor, all));
  }

  /** BullMQ's own worker. */
  plainWorker(queue: Pick<Queue, 'name'>, processor: Processor, options: WorkerOptions = {}): Worker {
    const all = { connection: this.connection, drainDelay: 1, ...options };
    return this.#watched(new Worker(queue.name, processor, all));
  }

  /** A processor that records each of its calls, then does `work`. */
  recorded(work: Work = () => undefined): Processor {
    return async (job: Job, token?: string, signal?: AbortSignal) => {
      const { id, name, data, attemptsStarted } = job;
      this.starts.push({ id: id!, name, atMs: performance.now(), data, attemptsStarted });
      return work(job, token, signal);
    };
  }

  #watched<W extends Worker>(worker: W): W {
    worker.on('error', (error) => this.errors.push(error));
    worker.on('failed', (job, error) => this.failed.push({ id: job?.id ?? '', error }));
    this.#workers.push(worker);
    return worker;
  }

  startsOf(name: string): Start[] {
    return this.starts.filter((start) => start.name === name);
  }
}

/** A test with a bench of its own, and one queue on it. */
export const test = base.extend<{ bench: Bench; queue: Queue }>({
  bench: ({ onTestFinished }, use) => use(new Bench({ onTestFinished })),
  queue: ({ bench }, use) => use(bench.queue()),
});

/** Adds `count` jobs in one go; `data.n` numbers them from 0. */
export async function addJobs(
  queue: Queue,
  count: number,
  { name = 'job', data = {}, opts }: { name?: string; data?: object; opts?: JobsOptions } = {},
): Promise<Job[]> {
  const added: Job[] = [];
  for (let from = 0; from < count; from += 5_000) {
    const batch = Array.from({ length: Math.min(5_000, count - from) }, (_, index) => ({
      name,
      data: { ...data, n: from + index },
      ...(opts === undefined ? {} : { opts }),
    }));
    added.push(...(await queue.addBulk(batch)));
  }
  return added;
}

/** Asks again and again until `condition` holds. */
export async function until(
  condition: () => boolean | Promise<boolean>,
  what: string,
  timeoutMs = 20_000,
): Promise<void> {
  const deadline = performance.now() + timeoutMs;
  while (!(await condition())) {
    if (performance.now() > deadline) throw new Error(`not within ${timeoutMs} ms: ${what}`);
    await sleep(10);
  }
}

/** Until the queue has completed so many jobs. */
export function untilCompleted(queue: Queue, count: number, timeoutMs?: number): Promise<void> {
  return until(async () => (await queue.getCompletedCount()) >= count, `${count} jobs completed`, timeoutMs);
}

/** Jobs by state, as Redis has them; states without jobs left out. */
export async function countsOf(queue: Queue): Promise<Record<string, number>> {
  const counts = await queue.getJobCounts();
  return Object.fromEntries(Object.entries(counts).filter(([, count]) => count > 0));
}

/** Expects that no job has failed and no worker has told of an error. */
export function expectNoError({ failed, errors }: Bench): void {
  expect([failed, errors]).toEqual([[], []]);
}

/** Closes a worker that is to close without delay. */
export async function closeAtOnce(worker: Worker): Promise<void> {
  const calledMs = performance.now();
  await worker.close();
  expect(performance.now() - calledMs).toBeLessThan(1_000);
}

/** Takes each token of a key, so that its jobs are refused again and again, until `done`. */
export async function takeAll(governor: Governor, keys: Keys, done: () => Promise<boolean>): Promise<void> {
  while (!(await done())) {
    const [limit] = await governor.peek({ keys });
    if (limit!.waitMs < 100) await governor.forceN(1, { keys });
    await sleep(5);
  }
}

/** Something to wait for, and what ends the wait. */
export function latch(): { readonly opened: Promise<void>; open(): void } {
  let open = () => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { opened, open };
}

// A held job may start up to graceMs (100) after its time, and its neighbour on time; the rest is a busy machine's.
const JITTER_MS = 150;

/** Expects that over every interval at most burst + rate × length tokens were started, but for the machine's jitter. */
export function expectBound(
  starts: Parameters<typeof excessOver>[0],
  ratePerSecond: number,
  burst: number,
): void {
  const excess = excessOver(starts, ratePerSecond, burst);
  expect(excess, `tokens over ${burst} + ${ratePerSecond}/s`).toBeLessThanOrEqual(
    (ratePerSecond * JITTER_MS) / 1_000,
  );
}

/** The most tokens by which the starts exceed burst + rate × length over any interval; at most 0 if the bound was kept. */
export function excessOver(
  starts: readonly { readonly atMs: number; readonly cost?: number }[],
  ratePerSecond: number,
  burst: number,
): number {
  let worst = Number.NEGATIVE_INFINITY;
  let sum = 0;
  let lowest = Number.POSITIVE_INFINITY;
  for (const { atMs, cost = 1 } of [...starts].sort((a, b) => a.atMs - b.atMs)) {
    const drained = (atMs * ratePerSecond) / 1_000;
    lowest = Math.min(lowest, sum - drained);
    sum += cost;
    worst = Math.max(worst, sum - drained - lowest);
  }
  return worst - burst;
}

/** Pairs of neighbours out of order. */
export function inversions(numbers: readonly number[]): number {
  return numbers.filter((number, index) => index > 0 && number < numbers[index - 1]!).length;
}

export function median(numbers: readonly number[]): number {
  const sorted = [...numbers].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
}

/** Starts per job as BullMQ counted them, over all completed jobs of a queue. */
export async function startsPerJob(queue: Queue): Promise<{ mean: number; max: number }> {
  const jobs = await queue.getJobs(['completed'], 0, -1);
  const starts = jobs.map((job) => job.attemptsStarted);
  expect(starts.length, 'completed jobs to count starts of').toBeGreaterThan(0);
  return { mean: starts.reduce((a, b) => a + b, 0) / starts.length, max: Math.max(...starts) };
}
