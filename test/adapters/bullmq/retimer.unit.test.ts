import { EventEmitter } from 'node:events';
import type { Job, Queue, Worker } from 'bullmq';
import { describe, expect, test } from 'vitest';
import type { Pace } from '../../../src/adapters/bullmq/admit/pace.ts';
import { Retimer } from '../../../src/adapters/bullmq/defer/retimer.ts';
import { perHour } from '../../../src/core/limits/rate.ts';
import { memoryGovernor } from '../../../src/testing/memory-governor.ts';

/** Jobs of a queue that are deferred, a retimer for it, and what it has done. */
async function make(jobs = 3) {
  const { governor, clock, store } = memoryGovernor({
    name: 'test',
    limits: { shop: perHour(1, { by: 'shop' }) },
  });
  let tell: (configured: { version: number }) => void = () => {};
  Object.assign(governor, {
    on: (_: string, listener: typeof tell) => {
      tell = listener;
      return () => {};
    },
  });
  const name = 'bull:orders';
  const delaysMs = new Map<string, number>();
  let broken: Error | undefined;
  for (let n = 0; n < jobs; n++) {
    const delayMs = 3_600_000 * (n + 1);
    await store.deferrals.note(name, { job: `${n}`, delayMs, attempt: 0, fresh: true });
    delaysMs.set(`${n}`, delayMs);
  }
  const queue = {
    qualifiedName: name,
    getJob: async (id: string) => ({
      id,
      delay: delaysMs.get(id)!,
      attemptsMade: 0,
      changeDelay: async (delayMs: number) => {
        if (broken !== undefined) throw broken;
        delaysMs.set(id, delayMs);
      },
    }),
  } as unknown as Queue;
  const paces: string[] = [];
  const paceOf = async (job: Job): Promise<Pace> => {
    paces.push(job.id!);
    return { bucket: 'shop:a', intervalMs: 1_000, waitMs: async () => 500 };
  };
  const errors: unknown[] = [];
  const worker = new EventEmitter() as unknown as Worker;
  const retimer = new Retimer(governor, paceOf, (error) => errors.push(error));
  retimer.attach(worker, () => queue);
  const hears = async (version: number) => {
    tell({ version });
    await clock.advance(0);
  };
  return {
    clock,
    worker,
    deferrals: store.deferrals,
    name,
    errors,
    paces,
    hears,
    breaks: (error?: Error) => {
      broken = error;
    },
    delays: () => [...delaysMs.values()],
  };
}

const OLD = [3_600_000, 7_200_000, 10_800_000];

describe('the retimer', () => {
  test('gives the first job the time when there is room, the others theirs after it', async () => {
    const { hears, delays } = await make();
    await hears(1);
    expect(delays()).toEqual([500, 1_500, 2_500]);
  });

  test('moves jobs once for a version, and again for the next', async () => {
    const { hears, paces } = await make();
    await hears(1);
    await hears(1);
    expect(paces).toEqual(['0', '1', '2']);
    await hears(3);
    await hears(2);
    expect(paces.length).toBe(6);
  });

  test('goes on where another process ended in the middle', async () => {
    const { hears, delays, deferrals, name, clock } = await make();
    expect(await deferrals.claim(name, 1, 5_000, false)).toBe(true);
    await hears(1);
    await clock.advance(4_900);
    expect(delays()).toEqual(OLD);
    await clock.advance(5_200);
    expect(delays()).not.toEqual(OLD);
  });

  test('leaves it to the process that claimed it, as long as that one works', async () => {
    const { hears, delays, deferrals, name, clock } = await make();
    expect(await deferrals.claim(name, 1, 3_600_000, false)).toBe(true);
    await hears(1);
    await clock.advance(60_000);
    expect(delays()).toEqual(OLD);
  });

  test('skips jobs that have come back or gone', async () => {
    const { hears, errors, breaks, deferrals, name } = await make();
    breaks(Object.assign(new Error('not in the delayed state'), { code: -3 }));
    await hears(1);
    expect(errors).toEqual([]);
    expect((await deferrals.list(name, 0, 10)).map(({ delayMs }) => delayMs)).toEqual(OLD);
  });

  test('tells what went wrong, and tries once more', async () => {
    const { hears, errors, breaks, delays, clock } = await make();
    breaks(new Error('connection lost'));
    await hears(1);
    expect(errors).toEqual([new Error('connection lost')]);
    breaks(undefined);
    await clock.advance(10_100);
    expect(delays()).toEqual([500, 1_500, 2_500]);
  });

  test('ends with its worker', async () => {
    const { hears, worker, delays, clock } = await make();
    worker.emit('closing', '');
    await hears(1);
    await clock.advance(20_000);
    expect(delays()).toEqual(OLD);
    expect(clock.pending).toBe(0);
  });

  test('moves 1,200 jobs in pages and chunks', async () => {
    const { hears, delays, clock } = await make(1_200);
    await hears(1);
    for (let turn = 0; turn < 50; turn++) await clock.advance(0);
    expect(Math.max(...delays())).toBe(500 + 1_199 * 1_000);
  });
});
