import { EventEmitter } from 'node:events';
import type { Job, Worker } from 'bullmq';
import { describe, expect, test, vi } from 'vitest';
import { Admission } from '../../../src/adapters/bullmq/admit/admission.ts';
import { reachOf } from '../../../src/adapters/bullmq/admit/reach.ts';
import { Refused } from '../../../src/adapters/bullmq/admit/refused.ts';
import { Deferring } from '../../../src/adapters/bullmq/defer/deferring.ts';
import { DeferralRecord } from '../../../src/adapters/bullmq/defer/record.ts';
import { Feed } from '../../../src/adapters/bullmq/fetch/feed.ts';
import { Fetching } from '../../../src/adapters/bullmq/fetch/fetching.ts';
import { Governing } from '../../../src/adapters/bullmq/governing.ts';
import { type GovernOptions, parseGovernOptions } from '../../../src/adapters/bullmq/options.ts';
import { newCounters } from '../../../src/adapters/bullmq/state.ts';
import type { LimitsOptions } from '../../../src/core/limits/limit.ts';
import { perHour, perSecond } from '../../../src/core/limits/rate.ts';
import { memoryGovernor } from '../../../src/testing/memory-governor.ts';

/** A worker whose loop ends at each pause and begins anew at each resume, as BullMQ's does when it has no jobs. */
class IdleWorker extends EventEmitter {
  #concurrency: number;
  #paused = false;
  #ends: (() => void)[] = [];

  constructor(concurrency: number) {
    super();
    this.#concurrency = concurrency;
  }

  get concurrency(): number {
    return this.#concurrency;
  }

  set concurrency(value: number) {
    this.#concurrency = value;
  }

  async pause(): Promise<void> {
    this.#paused = true;
    for (const end of this.#ends.splice(0)) end();
  }

  async resume(): Promise<void> {
    this.#paused = false;
    void this.run();
  }

  isPaused(): boolean {
    return this.#paused;
  }

  isRunning(): boolean {
    return this.#ends.length > 0;
  }

  run(): Promise<void> {
    return new Promise((resolve) => this.#ends.push(resolve));
  }
}

function admissionOf(limits: LimitsOptions, options: Omit<GovernOptions, 'governor'>, concurrency = 1) {
  const { governor, clock } = memoryGovernor({ name: 'test', limits });
  const govern = parseGovernOptions<Job>({ governor, ...options });
  const feed = new Feed(concurrency, govern.maxHoldMs);
  const counters = newCounters();
  const record = new DeferralRecord<Job>(governor.deferrals, () => {});
  const deferring = new Deferring(govern, record, counters);
  const admission = new Admission(govern, feed, new Refused(govern), deferring, counters);
  const worker = new IdleWorker(concurrency) as unknown as Worker;
  const fetching = new Fetching(worker, feed, clock, govern.maxHoldMs, async () => 3_600_000);
  admission.attach(worker, fetching);
  const delaysMs: number[] = [];
  const ask = async (arrival: number, key?: string): Promise<string> => {
    const job = {
      id: String(arrival),
      attemptsStarted: 1,
      attemptsMade: 0,
      moveToDelayed: async (atMs: number) => delaysMs.push(atMs - clock.wallMs()),
      moveToWait: async () => {},
    } as unknown as Job;
    const keys = key === undefined ? undefined : { shop: key };
    const reach = reachOf(await governor.limits(), 1);
    feed.arrived();
    const asked = admission.ask({
      job,
      token: 't',
      signal: undefined,
      cost: 1,
      keys,
      priority: 'normal',
      reach,
      arrival,
    });
    const ended = asked.then(String, (error: Error) => error.name);
    await clock.advance(50);
    feed.left();
    return ended;
  };
  return { governor, clock, fetching, counters, delaysMs, ask };
}

describe('a refused job', () => {
  test.each([
    { what: "'delay'", onRefused: 'delay' as const },
    { what: 'a function that says so', onRefused: () => 'delay' as const },
  ])('takes one place in the line of its key: $what', async ({ onRefused }) => {
    const { governor, delaysMs, ask } = admissionOf(
      { shop: perSecond(1, { burst: 1, by: 'shop' }) },
      { onRefused },
    );
    await governor.allow({ keys: { shop: 'a' } });
    for (let n = 0; n < 4; n++) expect(await ask(n, 'a')).toBe('DelayedError');
    // 50 ms pass between them, and a place each.
    expect(delaysMs).toEqual([1_000, 1_950, 2_900, 3_850]);
  });

  test('that is to fail or be dropped leaves no place behind', async () => {
    const { governor, ask } = admissionOf(
      { shop: perSecond(1, { burst: 1, by: 'shop' }) },
      { onRefused: 'fail' },
    );
    await governor.allow({ keys: { shop: 'a' } });
    for (let n = 0; n < 4; n++) expect(await ask(n, 'a')).toBe('RefusedError');
    expect((await governor.peek({ keys: { shop: 'a' } }))[0]!.lineMs).toBe(0);
  });

  test('is not requeued for a limit that all jobs meet: it goes back to the head, and fetching stops', async () => {
    const { governor, fetching, counters, ask } = admissionOf(
      { calls: perHour(1, { burst: 1 }) },
      { onRefused: 'requeue' },
      10,
    );
    await governor.allow();
    expect(await ask(0)).toBe('WaitingError');
    expect(fetching.open).toBe(false);
    expect(counters).toMatchObject({ returned: 1, deferrals: 0 });
  });
});

test('a job that could not start soon at a fair limit is put aside in the line of its key, and fetching goes on', async () => {
  const { governor, fetching, counters, delaysMs, ask } = admissionOf(
    { calls: perSecond(4, { by: 'shop', fair: true, burst: 1 }) },
    {},
  );
  await governor.allow({ keys: { shop: 'flood' } });
  for (let n = 0; n < 4; n++) expect(await ask(n, 'flood')).toBe('DelayedError');
  expect(fetching.open).toBe(true);
  expect(counters).toMatchObject({ deferrals: 4, returned: 0 });
  // One after the other, in a line that is the flood's own.
  expect(delaysMs).toEqual([...delaysMs].sort((a, b) => a - b));
  const states = await governor.peek({ keys: { shop: 'other' } });
  expect(states.map(({ lineMs }) => lineMs)).toEqual([0, 0]);
});

describe('bypass', () => {
  const run = async (bypass: unknown) => {
    const { governor } = memoryGovernor({ name: 'test', limits: { calls: perHour(1, { burst: 1 }) } });
    const options = parseGovernOptions<Job>({
      governor,
      bypass,
      onBypass: () => {},
      onRefused: 'fail',
      maxHoldMs: 0,
    });
    const governing = new Governing<Job>(options);
    const processor = vi.fn(async () => 'ran');
    const job = { id: '1', attemptsStarted: 1, attemptsMade: 0 } as unknown as Job;
    const errors: string[] = [];
    for (let n = 0; n < 5; n++) {
      await governing
        .process(job, 't', undefined, processor)
        .catch((error: Error) => errors.push(error.message));
    }
    return { calls: processor.mock.calls.length, error: errors[0] };
  };

  test('a reason lets the job pass', async () => {
    expect(await run(() => 'by hand')).toMatchObject({ calls: 5 });
  });

  test.each([[undefined], [null], [false], ['']])('%s is no reason', async (answer) => {
    expect(await run(() => answer)).toMatchObject({ calls: 1 });
  });

  test.each([[async () => false], [async () => Promise.reject(new Error('lost'))], [() => true], [() => 1]])(
    'anything else fails the job and lets none pass (%s)',
    async (bypass) => {
      const { calls, error } = await run(bypass);
      expect(calls).toBe(0);
      expect(error).toContain('what govern.bypass returns: expected a reason (a string), undefined or false');
    },
  );
});

test('gates that close and open leave one run() behind, the user’s', async () => {
  const { clock } = memoryGovernor({ name: 'test', limits: { calls: perSecond(1) } });
  const worker = new IdleWorker(10);
  const feed = new Feed(10, 1_000);
  const fetching = new Fetching(worker as unknown as Worker, feed, clock, 1_000, async () => 0);
  let pending = 0;
  const run = worker.run.bind(worker);
  Object.defineProperty(worker, 'run', {
    configurable: true,
    value: () => {
      pending += 1;
      return run().finally(() => {
        pending -= 1;
      });
    },
  });
  void worker.run();
  for (let n = 0; n < 50; n++) {
    feed.arrived();
    fetching.fetched();
    feed.refused();
    fetching.apply(5);
    feed.left();
    await clock.advance(2_200);
    expect(fetching.open).toBe(true);
  }
  expect(pending).toBeLessThanOrEqual(2);
  fetching.end();
});
