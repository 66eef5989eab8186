import type { Job, Worker } from 'bullmq';
import { perHour, perSecond, StoreUnavailableError } from 'flyball';
import { type GovernOptions, governed, Throttled } from 'flyball/bullmq';
import { memoryGovernor } from 'flyball/testing';
import { describe, expect, test, vi } from 'vitest';
import { FakeQueue, FakeWorker } from '../../support/bullmq-worker.ts';
import { Fleet, type FleetOptions } from './feed-simulator.ts';

vi.mock('bullmq', async (original) => ({
  ...(await original<object>()),
  Queue: (await import('../../support/bullmq-worker.ts')).OpenedQueue,
}));

/** One worker; the tokens of a key were just taken by someone else, and four jobs of it wait. */
async function refused(limits: FleetOptions['limits'], govern: FleetOptions['govern'] = {}, concurrency = 1) {
  const fleet = new Fleet({ workers: 1, concurrency, limits, govern });
  const keys = { shop: 'a' };
  const isKeyed = Object.values(limits).some((limit) => 'by' in limit && limit.by);
  await fleet.call((governor) => governor.allow(isKeyed ? { keys } : {}));
  for (let n = 0; n < 4; n++) fleet.queue.add({ serviceMs: 5, key: 'a' });
  await fleet.run(100);
  expect(fleet.starts).toEqual([]);
  return { fleet, state: fleet.states[0]!, deferredToMs: fleet.queue.deferred.map(({ atMs }) => atMs) };
}

test.each([
  { what: "onRefused 'delay'", onRefused: 'delay' as const },
  { what: 'a function that answers so', onRefused: () => 'delay' as const },
])('each refused job takes one turn in the line of its key: $what', async ({ onRefused }) => {
  const shop = perSecond(1, { burst: 1, by: 'shop' });
  const { deferredToMs } = await refused({ shop }, { onRefused });
  expect(deferredToMs.map((ms) => Math.round(ms / 10) * 10)).toEqual([1_000, 2_000, 3_000, 4_000]);
});

test('a job that may fail leaves no turn behind', async () => {
  const shop = perSecond(1, { burst: 1, by: 'shop' });
  const { fleet } = await refused({ shop }, { onRefused: 'fail' });
  expect(fleet.failed.map(({ name }) => name)).toEqual(Array(4).fill('RefusedError'));
  expect(await fleet.call((governor) => governor.peek({ keys: { shop: 'a' } }))).toMatchObject([
    { lineMs: 0 },
  ]);
});

test('a limit that all jobs meet requeues none: they go back to the head, and fetching stops', async () => {
  const { fleet, state } = await refused({ calls: perHour(1, { burst: 1 }) }, { onRefused: 'requeue' }, 10);
  expect(state.gate).not.toBe('open');
  expect(state.deferrals).toBe(0);
  expect(state.returned).toBeGreaterThanOrEqual(1);
  expect(fleet.queue.waiting.map(({ id }) => id)).toEqual(['0', '1', '2', '3']);
});

test('a job that could not start soon at a fair limit is deferred in the line of its key, and fetching goes on', async () => {
  const { fleet, state, deferredToMs } = await refused({
    calls: perSecond(4, { by: 'shop', fair: true, burst: 1 }),
  });
  expect(state).toMatchObject({ gate: 'open', deferrals: 4, returned: 0 });
  // One after the other, in a line that is this key's own.
  expect(deferredToMs).toEqual([...deferredToMs].sort((a, b) => a - b));
  const others = await fleet.call((governor) => governor.peek({ keys: { shop: 'other' } }));
  expect(others.map(({ lineMs }) => lineMs)).toEqual([0, 0]);
});

test('a throttled job goes back without an attempt, and its worker stays away, though the store kept no pause', async () => {
  const { governor, clock, store } = memoryGovernor({ name: 'test', limits: { calls: perSecond(10) } });
  const away = new StoreUnavailableError('test', new Error('away'));
  vi.spyOn(store, 'pause').mockRejectedValue(away);
  const startsMs: number[] = [];
  const processor = governed(governor, async () => {
    startsMs.push(clock.monoMs());
    if (startsMs.length === 1) throw new Throttled({ retryAfterMs: 2_000 });
  });
  const queue = new FakeQueue<unknown>(clock);
  const worker = new FakeWorker(queue, (job, token) => processor(job as unknown as Job, token), {
    concurrency: 1,
  });
  const told: unknown[] = [];
  worker.on('error', (error) => told.push(error));
  worker.on('failed', (_job, error) => told.push(error));
  processor.attach(worker as unknown as Worker);
  queue.add({});
  for (let turn = 0; turn < 400; turn++) {
    await clock.advance(10);
    await new Promise(setImmediate);
  }
  expect(startsMs.length).toBe(2);
  expect(startsMs[1]! - startsMs[0]!).toBeGreaterThanOrEqual(2_000);
  expect(told).toEqual([away]);
  expect(processor.governing).toMatchObject({ throttled: 1, returned: 1, failed: 0 });
});

describe('bypass', () => {
  const run = async (bypass: unknown) => {
    const { governor } = memoryGovernor({ name: 'test', limits: { calls: perHour(1, { burst: 1 }) } });
    const processor = vi.fn(async () => 'ran');
    const options = { bypass, onBypass: () => {}, onRefused: 'fail', maxHoldMs: 0 };
    const process = governed(governor, processor, options as Omit<GovernOptions, 'governor'>);
    const job = { id: '1', attemptsStarted: 1, attemptsMade: 0 } as unknown as Job;
    const errors: string[] = [];
    for (let n = 0; n < 5; n++) await process(job, 't').catch(({ message }: Error) => errors.push(message));
    return { calls: processor.mock.calls.length, error: errors[0] };
  };

  test('lets a job pass for a reason', async () => {
    expect(await run(() => 'by hand')).toMatchObject({ calls: 5 });
  });

  test.each([[undefined], [null], [false], ['']])('takes %s for no reason', async (answer) => {
    expect(await run(() => answer)).toMatchObject({ calls: 1 });
  });

  test.each([[async () => false], [async () => Promise.reject(new Error('lost'))], [() => true], [() => 1]])(
    'fails the job for any other answer (%s)',
    async (bypass) => {
      const { calls, error } = await run(bypass);
      expect(calls).toBe(0);
      expect(error).toContain('what govern.bypass returns: expected a reason (a string), undefined or false');
    },
  );
});
