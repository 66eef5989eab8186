import type { Queue } from 'bullmq';
import type { CreateGovernorOptions, Governor } from 'flyball';
import { describe, expect, vi } from 'vitest';
import { deskOf } from '../../../src/core/calls/desk.ts';
import { wallClock } from '../../support/wall-clock.ts';
import {
  addJobs,
  type Bench,
  excessOver,
  expectNoError,
  sleep,
  test,
  until,
  untilCompleted,
} from './fixture.ts';

type Configured = (configured: { version: number }) => void;
type Limits = CreateGovernorOptions['limits'];

const shopLimit = (rate: number, periodMs: number): Limits => ({
  shop: { rate, periodMs, burst: 1, by: 'shop' },
});
const SLOW = shopLimit(1, 600_000);

/** A governor that tells of changes when the test says so. */
function telling(bench: Bench, limits: Limits, name?: string) {
  const governor = bench.governor(limits, name === undefined ? {} : { name });
  const listeners = new Set<Configured>();
  Object.assign(governor, {
    on: (_event: 'configured', listener: Configured) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  });
  /** As when it hears that the limits are others now. */
  const hears = async (version: number) => {
    await governor.peek();
    for (const listener of listeners) listener({ version });
  };
  return { governor, hears, listeners };
}

/** The limits are others from now on, for all governors of that name. */
async function change(bench: Bench, { name }: Governor, limits: Limits): Promise<void> {
  await bench.governor(limits, { name }).limits();
}

const dueInMs = async (queue: Queue) => (await queue.getDelayed()).map((job) => job.delay);
const keys = (job: { name: string }) => ({ shop: job.name });

describe('after a change of the limits', () => {
  // https://github.com/taskforcesh/bullmq/issues/2713: from 1 in 10 minutes to 1 in 2, the old 10 minutes were waited out.
  test('500 deferred jobs have new times within a second', wallClock, async ({ bench, queue, annotate }) => {
    const { governor, hears } = telling(bench, SLOW);
    const shops = ['a', 'b', 'c', 'd', 'e'];
    bench.worker(queue, { governor, keys }, { concurrency: 50 });
    for (const shop of shops) await addJobs(queue, 101, { name: shop });
    await until(async () => (await queue.getDelayedCount()) === 500, '500 deferred');
    expect(Math.min(...(await dueInMs(queue)))).toBeGreaterThan(500_000);

    await change(bench, governor, shopLimit(50, 1_000));
    const move = vi.spyOn(deskOf(governor).deferrals, 'move');
    const changedMs = performance.now();
    await hears(2);
    await until(() => move.mock.calls.flatMap(([, moves]) => moves).length >= 500, 'all have new times');
    const retimedMs = performance.now() - changedMs;
    for (const ms of await dueInMs(queue)) expect(ms).toBeLessThan(3_000);
    await untilCompleted(queue, 505);

    const after = bench.starts.filter(({ atMs }) => atMs > changedMs);
    await annotate(
      `500 re-timed within ${retimedMs.toFixed(0)} ms, run within ${(after.at(-1)!.atMs - changedMs).toFixed(0)} ms`,
    );
    expect(retimedMs).toBeLessThan(1_000);
    // 100 jobs of a shop at 50 a second.
    expect(after.at(-1)!.atMs - changedMs).toBeLessThan(3_500);
    for (const shop of shops) {
      const starts = after.filter(({ name }) => name === shop);
      expect(starts.length).toBe(100);
      expect(excessOver(starts, 50, 1)).toBeLessThanOrEqual((50 * 150) / 1_000);
    }
    expectNoError(bench);
  });

  test('jobs keep their order, and a lowered rate spreads them out', async ({ bench, queue }) => {
    const { governor, hears } = telling(bench, shopLimit(1, 60_000));
    bench.worker(queue, { governor, keys, maxHoldMs: 0 }, { concurrency: 1 });
    await addJobs(queue, 11, { name: 'a' });
    await until(async () => (await queue.getDelayedCount()) === 10, 'ten deferred');
    await change(bench, governor, SLOW);
    await hears(2);
    await until(async () => Math.max(...(await dueInMs(queue))) > 5_000_000, 'new times');

    const jobs = (await queue.getDelayed()).sort((x, y) => x.delay - y.delay);
    expect(jobs.map(({ data }) => data.n)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
    const gaps = jobs.slice(1).map((job, index) => job.delay - jobs[index]!.delay);
    for (const gap of gaps) expect(Math.abs(gap - 600_000)).toBeLessThan(1_000);
    expect(jobs[0]!.delay).toBeLessThanOrEqual(600_000);
  });

  test('only jobs are moved that are as the governor deferred them', async ({ bench, queue }) => {
    const { governor, hears } = telling(bench, SLOW);
    await governor.allow({ keys: { shop: 'a' } });
    const worker = bench.worker(
      queue,
      { governor, keys },
      {
        work: () => {
          throw new Error('again');
        },
      },
    );
    // One delayed by the user, one that ran and waits for its retry though the record has it, one deferred that the
    // user has moved since, one that is gone, and one that is to be moved.
    const byUser = await queue.add('a', {}, { delay: 3_600_000 });
    const retried = await queue.add('b', {}, { attempts: 2, backoff: { type: 'fixed', delay: 3_600_000 } });
    const [moved, gone, deferred] = await Promise.all([1, 2, 3].map(() => queue.add('a', {})));
    await until(async () => (await queue.getDelayedCount()) === 5, 'five delayed');
    await deskOf(governor).deferrals.note(queue.qualifiedName, {
      job: retried.id!,
      delayMs: 3_600_000,
      attempt: 0,
      fresh: true,
    });
    await (await queue.getJob(moved!.id!))!.changeDelay(1_800_000);
    await gone!.remove();
    await worker.pause(true);

    await change(bench, governor, shopLimit(1, 1_000));
    await hears(2);
    const delayOf = async (id: string) => (await queue.getJob(id))!.delay;
    await until(async () => (await delayOf(deferred!.id!)) < 5_000, 'a new time');
    expect(await delayOf(byUser.id!)).toBe(3_600_000);
    expect(await delayOf(retried.id!)).toBe(3_600_000);
    expect(await delayOf(moved!.id!)).toBe(1_800_000);
    await until(
      async () =>
        (await deskOf(governor).deferrals.list(queue.qualifiedName, 0, 10)).every(
          ({ job }) => job !== gone!.id,
        ),
      'the one that is gone is forgotten',
    );
  });

  test('one worker of the fleet moves them, once for each version', async ({ bench, queue }) => {
    const fleet = [telling(bench, SLOW)];
    for (let n = 1; n < 4; n++) fleet.push(telling(bench, SLOW, fleet[0]!.governor.name));
    for (const { governor } of fleet) bench.worker(queue, { governor, keys }, { concurrency: 5 });
    await addJobs(queue, 21, { name: 'a' });
    await until(async () => (await queue.getDelayedCount()) === 20, 'twenty deferred');
    const moves = fleet.map(({ governor }) => vi.spyOn(deskOf(governor).deferrals, 'move'));

    for (const version of [2, 3]) {
      await change(bench, fleet[0]!.governor, shopLimit(1, 600_000 / version));
      await Promise.all(fleet.map(({ hears }) => hears(version)));
      await until(() => moves.some((move) => move.mock.calls.length > 0), 'one has moved them');
      await sleep(200);
      const calls = moves.flatMap((move) => move.mock.calls);
      expect(calls.length).toBe(1);
      expect(calls[0]![1].length).toBe(20);
      for (const move of moves) move.mockClear();
    }
  });

  test('a closed worker no longer listens', async ({ bench }) => {
    const { governor, listeners } = telling(bench, SLOW);
    const worker = bench.worker(bench.queue(), { governor, keys });
    expect(listeners.size).toBe(1);
    await worker.close();
    expect(listeners.size).toBe(0);
  });
});
