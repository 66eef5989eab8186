import { DelayedError, type Worker as RealWorker, WaitingError } from 'bullmq';
import { describe, expect, type TestContext, test } from 'vitest';
import { wallClock } from '../../support/wall-clock.ts';

/** Of BullMQ's worker, what the feed and the gate use. */
type TestedWorker = Pick<
  RealWorker,
  'concurrency' | 'pause' | 'resume' | 'run' | 'close' | 'isPaused' | 'isRunning'
> & { on(event: string, listener: () => void): unknown };

interface TestedJob {
  readonly data: { readonly n: number };
  readonly attemptsMade: number;
  readonly attemptsStarted: number;
  moveToWait(token?: string): Promise<unknown>;
  moveToDelayed(atMs: number, token?: string): Promise<unknown>;
}

/** A queue of its own for one test, and workers on it; everything is taken down when the test ends. */
export interface Lab {
  worker(
    process: (job: TestedJob, token?: string) => Promise<unknown>,
    options: { concurrency?: number; autorun?: boolean },
  ): TestedWorker;
  /** Adds jobs; they are numbered from 0 in `data.n`. */
  add(count: number): Promise<void>;
  /** The numbers of the jobs that wait, the next one first. */
  waiting(): Promise<number[]>;
  /** Long enough for whatever goes on to come to rest. */
  rest(): Promise<void>;
  until(condition: () => boolean): Promise<void>;
  nowMs(): number;
}

const EVENTS = ['drained', 'paused', 'resumed', 'closing', 'closed', 'completed', 'failed'];

/** What the feed and the gate take for granted of a worker of BullMQ. */
export function workerConformance(name: string, open: (context: TestContext) => Lab): void {
  /** A worker whose jobs run until the test ends them, but those that `process` takes. */
  const opened = async (
    context: TestContext,
    { jobs = 0, ...options }: { jobs?: number; concurrency?: number; autorun?: boolean },
    process?: (job: TestedJob, token: string | undefined, lab: Lab) => Promise<unknown> | undefined,
  ) => {
    const lab = open(context);
    await lab.add(jobs);
    const started: number[] = [];
    const ends: (() => void)[] = [];
    const events: string[] = [];
    const worker = lab.worker((job, token) => {
      started.push(job.data.n);
      return process?.(job, token, lab) ?? new Promise<void>((resolve) => ends.push(resolve));
    }, options);
    for (const event of EVENTS) worker.on(event, () => events.push(event));
    /** Ends the job that has run for longest, and sees what follows. */
    const endOne = () => {
      ends.shift()!();
      return lab.rest();
    };
    context.onTestFinished(async () => {
      const closed = worker.close();
      await lab.until(() => {
        for (const end of ends.splice(0)) end();
        return events.includes('closed');
      });
      await closed;
    });
    const { concurrency = 1, autorun = true } = options;
    const full = Math.min(jobs, concurrency);
    if (autorun) await lab.until(() => (jobs === 0 ? events.includes('drained') : started.length >= full));
    await lab.rest();
    return { lab, worker, started, events, endOne };
  };
  const upTo = (count: number) => Array.from({ length: count }, (_, n) => n);

  describe.concurrent(name, wallClock, () => {
    test('fetches until its concurrency is full, and hands jobs over in the order of the queue', async (context) => {
      const { lab, started } = await opened(context, { jobs: 10, concurrency: 4 });
      expect(started).toEqual([0, 1, 2, 3]);
      expect(await lab.waiting()).toEqual([4, 5, 6, 7, 8, 9]);
    });

    test('fetches the next job when one ends', async (context) => {
      const { started, endOne } = await opened(context, { jobs: 10, concurrency: 2 });
      await endOne();
      expect(started).toEqual([0, 1, 2]);
    });

    test('does not notice a higher concurrency until a job ends', async (context) => {
      const { lab, worker, started, endOne } = await opened(context, { jobs: 10, concurrency: 2 });
      worker.concurrency = 5;
      await lab.rest();
      expect(started).toEqual([0, 1]);
      await endOne();
      expect(started).toEqual(upTo(6));
    });

    test('is woken by pause(true) and resume(): it then notices a higher concurrency while its jobs run', async (context) => {
      const { lab, worker, started } = await opened(context, { jobs: 10, concurrency: 2 });
      worker.concurrency = 5;
      void worker.pause(true);
      void worker.resume();
      await lab.rest();
      expect(started).toEqual(upTo(5));
    });

    test('with a lower concurrency lets its jobs end, and fetches again once there is room', async (context) => {
      const { worker, started, endOne } = await opened(context, { jobs: 10, concurrency: 4 });
      worker.concurrency = 2;
      await endOne();
      await endOne();
      expect(started).toEqual(upTo(4));
      await endOne();
      expect(started).toEqual(upTo(5));
    });

    test('refuses a concurrency of 0, in words that we pass on', async (context) => {
      const { worker } = await opened(context, {});
      expect(() => {
        worker.concurrency = 0;
      }).toThrow('concurrency must be a finite number greater than 0');
    });

    test('hands over jobs that it has fetched even after pause(true), and no others', async (context) => {
      let worker: TestedWorker | undefined;
      const { lab, started, ...rest } = await opened(
        context,
        { jobs: 10, concurrency: 4, autorun: false },
        async () => void worker!.pause(true),
      );
      worker = rest.worker;
      void worker.run();
      await lab.until(() => started.length >= 4);
      await lab.rest();
      expect(started).toEqual(upTo(4));
      expect(await lab.waiting()).toEqual([4, 5, 6, 7, 8, 9]);
    });

    test('hands over a job that comes after pause(true), if it was waiting for one', async (context) => {
      const { lab, worker, started } = await opened(context, {});
      await worker.pause(true);
      await lab.add(2);
      await lab.until(() => started.length > 0);
      await lab.rest();
      expect(started).toEqual([0]);
    });

    test('pause() waits for the jobs that run', async (context) => {
      const { lab, worker, events, started, endOne } = await opened(context, { jobs: 5 });
      const paused = worker.pause();
      await lab.rest();
      expect(events).toEqual([]);
      expect(worker.isPaused()).toBe(true);
      await endOne();
      await paused;
      expect(events).toEqual(['completed', 'drained', 'paused']);
      expect(started).toEqual([0]);
    });

    test('tells of a pause and of a resume once, and ignores a second pause', async (context) => {
      const { worker, events } = await opened(context, { jobs: 5 });
      await worker.resume();
      await worker.pause(true);
      await worker.pause();
      expect([worker.isPaused(), worker.isRunning()]).toEqual([true, true]);
      await worker.resume();
      expect(events).toEqual(['paused', 'resumed']);
      expect([worker.isPaused(), worker.isRunning()]).toEqual([false, true]);
    });

    test('run() ends with a pause once no job runs, and resume() calls it again', async (context) => {
      const { lab, worker, started } = await opened(context, { autorun: false });
      let runs = 0;
      const run = worker.run.bind(worker);
      worker.run = () => {
        runs += 1;
        return run();
      };
      const running = worker.run();
      await lab.rest();
      await worker.pause();
      await running;
      expect(worker.isRunning()).toBe(false);
      await worker.resume();
      expect([worker.isRunning(), runs]).toEqual([true, 2]);
      await lab.add(1);
      await lab.until(() => started.length === 1);
      await expect(run()).rejects.toThrow('Worker is already running');
    });

    test('tells once that the queue is drained, and sees the next job come', async (context) => {
      const { lab, started, events } = await opened(context, { jobs: 1, concurrency: 3 }, async () => {});
      await lab.rest();
      expect(events.filter((event) => event === 'drained')).toEqual(['drained']);
      await lab.add(1);
      await lab.until(() => started.length === 2);
      await lab.rest();
      expect(events.filter((event) => event === 'drained')).toEqual(['drained', 'drained']);
    });

    test('calls the queue drained, although jobs wait, when a job ends and it fetches no other', async (context) => {
      const { lab, worker, started, events, endOne } = await opened(context, { jobs: 5, concurrency: 3 });
      worker.concurrency = 2;
      await endOne();
      expect(events).toEqual(['completed', 'drained']);
      expect(await lab.waiting()).toEqual([3, 4]);
      await endOne();
      expect(started).toEqual([0, 1, 2, 3]);
    });

    test('moveToWait() and WaitingError put a job to the head of the queue, without an attempt', async (context) => {
      const attempts: number[][] = [];
      const { lab, started, events } = await opened(context, { jobs: 4 }, async (job, token) => {
        attempts.push([job.attemptsStarted, job.attemptsMade]);
        if (job.data.n !== 1 || job.attemptsStarted > 1) return;
        await job.moveToWait(token);
        throw new WaitingError();
      });
      await lab.until(() => started.length === 5);
      await lab.rest();
      expect(started).toEqual([0, 1, 1, 2, 3]);
      expect(attempts[2]).toEqual([2, 0]);
      expect(events).not.toContain('failed');
    });

    test('moveToDelayed() and DelayedError put a job to the tail of the queue once it is due', async (context) => {
      const { lab, started, events, endOne } = await opened(context, { jobs: 4 }, (job, token, { nowMs }) => {
        if (job.data.n !== 0 || job.attemptsStarted > 1) return undefined;
        return job.moveToDelayed(nowMs() + 20, token).then(() => {
          throw new DelayedError();
        });
      });
      expect(started).toEqual([0, 1]);
      for (let n = 0; n < 3; n++) await endOne();
      expect(started).toEqual([0, 1, 2, 3, 0]);
      expect(await lab.waiting()).toEqual([]);
      expect(events).not.toContain('failed');
    });

    test('any other error fails the job, and the next one runs', async (context) => {
      const { lab, started, events } = await opened(context, { jobs: 2 }, async ({ data }) => {
        if (data.n === 0) throw new Error('no such order');
      });
      await lab.until(() => events.includes('completed'));
      expect(started).toEqual([0, 1]);
      expect(events.filter((event) => event === 'failed')).toEqual(['failed']);
    });

    test('close() tells so at once, fetches no more, and waits for the jobs that run', async (context) => {
      const { worker, started, events, endOne } = await opened(context, { jobs: 5, concurrency: 2 });
      const closed = worker.close();
      expect(events).toEqual(['closing']);
      await endOne();
      expect(events).toEqual(['closing', 'completed', 'drained']);
      await endOne();
      await closed;
      expect(events).toEqual(['closing', 'completed', 'drained', 'completed', 'closed']);
      expect(started).toEqual([0, 1]);
    });
  });
}
