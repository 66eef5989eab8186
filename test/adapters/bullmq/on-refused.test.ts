import { isInvalidOptionError, perHour, perSecond, type Refusal } from 'flyball';
import { GovernedWorker, type OnRefused } from 'flyball/bullmq';
import { describe, expect } from 'vitest';
import { wallClock } from '../../support/wall-clock.ts';
import { addJobs, countsOf, expectNoError, sleep, test, until, untilCompleted } from './fixture.ts';

const limits = () => ({ shop: perHour(2, { burst: 1, by: 'shop' }) });
const byName = (job: { name: string }) => ({ shop: job.name });

describe.concurrent('onRefused', () => {
  test("'fail' fails a refused job with a RefusedError, which is an attempt", async ({ bench, queue }) => {
    const governor = bench.governor(limits());
    await governor.allow({ keys: { shop: 'closed' } });
    const worker = bench.worker(queue, { governor, keys: byName, onRefused: 'fail' });
    await queue.add('closed', {}, { attempts: 2, backoff: { type: 'fixed', delay: 50 } });
    await queue.add('open', {});
    await until(async () => (await queue.getFailedCount()) === 1, 'the job failed');
    await untilCompleted(queue, 1);

    const [job] = await queue.getFailed();
    expect(job!.attemptsMade).toBe(2);
    expect(job!.attemptsStarted).toBe(2);
    expect(job!.failedReason).toMatch(/^refused by limit "shop"; room in \d+ ms$/);
    expect(bench.failed.map(({ error }) => error.name)).toEqual(['RefusedError', 'RefusedError']);
    expect(bench.starts.map(({ name }) => name)).toEqual(['open']);
    expect(worker.governing.failed).toBe(2);
    expect(worker.governing.deferrals).toBe(0);
  });

  test("'drop' completes a refused job without running it", async ({ bench, queue }) => {
    const governor = bench.governor(limits());
    const worker = bench.worker(queue, { governor, keys: byName, onRefused: 'drop' });
    await addJobs(queue, 5, { name: 'closed' });
    await untilCompleted(queue, 5);

    expect(bench.starts.length).toBe(1);
    expect(worker.governing.dropped).toBe(4);
    expect((await queue.getCompleted()).every((job) => job.returnvalue === null)).toBe(true);
    const [shop] = await governor.peek({ keys: { shop: 'closed' } });
    expect(shop!.granted).toBe(1);
  });

  test("'drop' holds for a governor-wide limit too, after the hold", async ({ bench, queue }) => {
    const governor = bench.governor({ calls: perSecond(5, { burst: 1 }) });
    const worker = bench.worker(queue, { governor, onRefused: 'drop', maxHoldMs: 500 }, { concurrency: 1 });
    // Someone else's calls, three seconds' worth.
    for (let n = 0; n < 15; n++) await governor.forceN(1);
    await addJobs(queue, 3);
    await untilCompleted(queue, 3);
    expect(worker.governing.dropped).toBe(3);
    expect(bench.starts).toEqual([]);
    expect(worker.governing.gate).toBe('open');
  });

  test("'requeue' lets the others run first, with few starts", wallClock, async ({ bench, queue }) => {
    const governor = bench.governor({ shop: { rate: 1, periodMs: 3_000, burst: 1, by: 'shop' } });
    // Before it is asked: the reply may be read some time after the tokens were taken.
    const askedMs = performance.now();
    await governor.allow({ keys: { shop: 'closed' } });
    const worker = bench.worker(
      queue,
      { governor, keys: byName, onRefused: 'requeue', maxHoldMs: 0 },
      { work: () => sleep(10) },
    );
    await queue.add('closed', {});
    for (let n = 0; n < 100; n++) await queue.add(`open-${n}`, {});
    await untilCompleted(queue, 101);

    expect(bench.starts.at(-1)!.name).toBe('closed');
    expect(bench.starts.at(-1)!.atMs - askedMs).toBeGreaterThanOrEqual(2_999);
    expect(bench.starts.at(-1)!.atMs - askedMs).toBeLessThan(3_700);
    expect(worker.governing.deferrals).toBeGreaterThan(0);
    const job = (await queue.getCompleted(0, -1)).find(({ name }) => name === 'closed');
    // Three seconds of a hot loop would be some 4,000 starts.
    expect(job!.attemptsStarted).toBeLessThanOrEqual(10);
    expect(job!.attemptsMade).toBe(1);
    expectNoError(bench);
  });

  test("'requeue' of many jobs of one key costs few starts", wallClock, async ({ bench, queue }) => {
    const governor = bench.governor(limits());
    await governor.allow({ keys: { shop: 'closed' } });
    const worker = bench.worker(
      queue,
      { governor, keys: byName, onRefused: 'requeue' },
      { concurrency: 10, work: () => sleep(5) },
    );
    await addJobs(queue, 20, { name: 'closed' });
    for (let n = 0; n < 300; n++) await queue.add(`open-${n}`, {});
    await untilCompleted(queue, 300);
    await sleep(1_000);
    expect(worker.governing.deferrals).toBeLessThanOrEqual(20 * 8);
    expect(await countsOf(queue)).toEqual({ completed: 300, delayed: 20 });
  });

  test('a function decides job by job, and may take its time', async ({ bench, queue }) => {
    const governor = bench.governor(limits());
    for (const shop of ['delay', 'fail', 'drop']) await governor.allow({ keys: { shop } });
    const told: [string, Refusal][] = [];
    const onRefused: OnRefused<{ name: string }> = async (job, refusal) => {
      told.push([job.name, refusal]);
      await sleep(1);
      return job.name as 'delay' | 'fail' | 'drop';
    };
    bench.worker(queue, { governor, keys: byName, onRefused }, { concurrency: 3 });
    for (const name of ['delay', 'fail', 'drop']) await queue.add(name, {});
    await until(async () => {
      const { delayed, failed, completed } = await countsOf(queue);
      return delayed === 1 && failed === 1 && completed === 1;
    }, 'one of each');

    expect(bench.starts).toEqual([]);
    expect(told.map(([name]) => name).sort()).toEqual(['delay', 'drop', 'fail']);
    for (const [, refusal] of told) {
      expect(refusal).toMatchObject({ allowed: false, limit: 'shop', keyed: true });
      expect(refusal.retryAfterMs).toBeGreaterThan(1_000_000);
    }
    const [delayed] = await queue.getDelayed();
    const inMs = delayed!.processedOn! + delayed!.delay - Date.now();
    expect(inMs).toBeGreaterThan(1_700_000);
    expect(inMs).toBeLessThanOrEqual(1_800_000);
  });

  test('a function may answer without a promise', async ({ bench, queue }) => {
    const governor = bench.governor(limits());
    await governor.allow({ keys: { shop: 'a' } });
    bench.worker(queue, { governor, keys: byName, onRefused: () => 'drop' });
    await queue.add('a', {});
    await untilCompleted(queue, 1);
    expect(bench.starts).toEqual([]);
  });

  test.for([
    [
      'answers nonsense',
      () => 'later' as 'delay',
      /onRefused returns: expected 'delay', 'requeue', 'fail', 'drop', received "later"/,
    ],
    ['answers nothing', () => undefined as unknown as 'delay', /onRefused returns: .*undefined/],
    [
      'throws',
      () => {
        throw new Error('policy is down');
      },
      /policy is down/,
    ],
    ['rejects', () => Promise.reject(new Error('policy is down')), /policy is down/],
  ] as [string, OnRefused<unknown>, RegExp][])(
    'a function that %s fails that job only',
    async ([, onRefused, message], { bench, queue }) => {
      const governor = bench.governor(limits());
      await governor.allow({ keys: { shop: 'closed' } });
      bench.worker(queue, { governor, keys: byName, onRefused });
      await queue.add('closed', {});
      await queue.add('open', {});
      await untilCompleted(queue, 1);
      await until(async () => (await queue.getFailedCount()) === 1, 'the job failed');
      expect((await queue.getFailed())[0]!.failedReason).toMatch(message);
      expect(bench.starts.map(({ name }) => name)).toEqual(['open']);
    },
  );

  test('invalid options are refused when the worker is made', ({ bench }) => {
    const governor = bench.governor(limits());
    const make = (govern: object) =>
      new GovernedWorker('never', async () => {}, {
        connection: bench.connection,
        govern: { governor, ...govern },
      });
    for (const wrong of [
      { onRefused: 'retry' },
      { onRefused: 5 },
      { maxHoldMs: -1 },
      { maxHoldMs: '1000' },
      { maxHoldMs: Number.NaN },
      { bypass: true },
      { onBypass: 'log' },
      { governor: {} },
      { governor: undefined },
      { maxHold: 1_000 },
    ]) {
      let thrown: unknown;
      try {
        make(wrong);
      } catch (error) {
        thrown = error;
      }
      expect(isInvalidOptionError(thrown), JSON.stringify(wrong)).toBe(true);
    }
    expect(() => make({ maxHold: 1_000 })).toThrow(/govern\.maxHold: .*did you mean "maxHoldMs"/);
  });
});
