import type { Job, Worker } from 'bullmq';
import { type GoverningState, type GovernOptions, governed } from '../../../src/adapters/bullmq/index.ts';
import type { Clock } from '../../../src/core/clock.ts';
import { Governor } from '../../../src/core/governor.ts';
import { type LimitsOptions, parseLimits } from '../../../src/core/limits/limit.ts';
import { MemoryStore } from '../../../src/store/memory/memory-store.ts';
import { type FakeJob, FakeQueue, FakeWorker } from '../../support/bullmq-worker.ts';

/**
 * A discrete-event simulator of a fleet of governed workers on one queue: minutes of a fleet's work in a second, and
 * without Redis. Governor, feed and gate are the real ones; simulated are time, the queue, and BullMQ's worker.
 */

/** How long the store takes to answer. */
const ROUND_TRIP_MS = 0.4;

interface SimEvent {
  readonly atMs: number;
  callback: (() => void) | undefined;
}

/** Time that moves from one event to the next. */
class SimClock implements Clock {
  #nowMs = 0;
  /** The next one last. Of those that are due at one time, the one that was set first comes first. */
  readonly #events: SimEvent[] = [];

  monoMs(): number {
    return this.#nowMs;
  }

  wallMs(): number {
    return this.#nowMs;
  }

  timer(delayMs: number, callback: () => void): () => void {
    const event: SimEvent = { atMs: this.#nowMs + Math.max(0, delayMs), callback };
    let [low, high] = [0, this.#events.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.#events[middle]!.atMs > event.atMs) low = middle + 1;
      else high = middle;
    }
    this.#events.splice(low, 0, event);
    return () => {
      event.callback = undefined;
    };
  }

  sleep(ms: number): Promise<void> {
    return new Promise((resolve) => this.timer(ms, resolve));
  }

  /** Lets `ms` pass. */
  async run(ms: number): Promise<void> {
    const untilMs = this.#nowMs + ms;
    await settled();
    for (
      let next = this.#events.at(-1);
      next !== undefined && next.atMs <= untilMs;
      next = this.#events.at(-1)
    ) {
      this.#events.pop();
      if (next.callback === undefined) continue;
      this.#nowMs = next.atMs;
      next.callback();
      await settled();
    }
    this.#nowMs = untilMs;
  }
}

// Macrotasks: by then all promise chains of the code under test have come to rest, also those that wait for one itself.
const settled = (): Promise<void> => new Promise((resolve) => setImmediate(() => setImmediate(resolve)));

interface SimJobData {
  readonly serviceMs: number;
  readonly cost?: number;
  readonly key?: string;
}

type SimJob = FakeJob<SimJobData>;

interface SimStart {
  readonly job: SimJob;
  readonly atMs: number;
}

/** How long each of them waited for its start, the shortest first. */
export const waitsMs = (starts: readonly SimStart[]): number[] =>
  starts.map(({ job, atMs }) => atMs - job.timestamp).sort((a, b) => a - b);

export interface FleetOptions {
  workers: number;
  /** Of each worker. */
  concurrency: number;
  limits: LimitsOptions;
  /** How the jobs are governed besides. */
  govern?: Omit<GovernOptions, 'governor'>;
  /** A backlog without end of such jobs. */
  backlog?: () => SimJobData;
}

/** Some workers, their queue and their governor. */
export class Fleet {
  readonly clock = new SimClock();
  readonly starts: SimStart[] = [];
  readonly queue: FakeQueue<SimJobData>;
  readonly governor: Governor;
  readonly failed: Error[] = [];
  /** The most jobs any worker had at a time, and the least of any number of jobs that it told. */
  readonly seen = { inside: 0, least: 0 };
  readonly #store: MemoryStore;
  readonly #workers: FakeWorker<SimJobData>[] = [];
  readonly #processors: { readonly governing: GoverningState }[] = [];

  constructor({ workers, concurrency, limits, govern = {}, backlog }: FleetOptions) {
    this.queue = new FakeQueue(this.clock, backlog);
    const code = parseLimits(limits);
    this.#store = new MemoryStore({ name: 'simulated', limits: code, coldStart: 'full' }, this.clock);
    this.governor = new Governor({
      name: 'simulated',
      store: remote(this.#store, this.clock),
      clock: this.clock,
      maxWaiters: 10_000,
      graceMs: 100,
      instance: 'simulated',
      random: Math.random,
      warn: () => {},
    });
    const options = {
      cost: (job: Job) => job.data.cost ?? 1,
      ...(code.some(({ by }) => by !== null) && { keys: (job: Job) => ({ shop: job.data.key }) }),
      ...govern,
    };
    for (let number = 0; number < workers; number++) this.#addWorker(concurrency, options);
  }

  get states(): GoverningState[] {
    return this.#processors.map(({ governing }) => governing);
  }

  /** Jobs that were fetched and not run. */
  get refusals(): number {
    return this.states.reduce((sum, { deferrals, returned }) => sum + deferrals + returned, 0);
  }

  /** The least and the most that the concurrency of any worker was set to. */
  get concurrencies(): { least: number; most: number } {
    const seen = this.#workers.map((worker) => worker.seen);
    return {
      least: Math.min(...seen.map(({ least }) => least)),
      most: Math.max(...seen.map(({ most }) => most)),
    };
  }

  run(ms: number): Promise<void> {
    return this.clock.run(ms);
  }

  /** What a call of the governor answers; time passes meanwhile. */
  async call<T>(call: (governor: Governor) => Promise<T>): Promise<T> {
    const [answer] = await Promise.all([call(this.governor), this.run(1)]);
    return answer;
  }

  /** The limits from now on. */
  setLimits(limits: LimitsOptions): void {
    void this.#store.configure({ limits: parseLimits(limits) }, 'the simulator');
  }

  /** What the fleet did while `ms` passed. `startsPerJob` counts fetches: those that ended in a refusal too. */
  async measure(ms: number): Promise<{ tokensPerSecond: number; startsPerJob: number; starts: SimStart[] }> {
    const from = this.starts.length;
    const refusedBefore = this.refusals;
    await this.run(ms);
    const starts = this.starts.slice(from);
    const tokens = starts.reduce((sum, { job }) => sum + (job.data.cost ?? 1), 0);
    return {
      tokensPerSecond: tokens / (ms / 1_000),
      startsPerJob: (starts.length + this.refusals - refusedBefore) / starts.length,
      starts,
    };
  }

  #addWorker(concurrency: number, options: Omit<GovernOptions, 'governor'>): void {
    const processor = governed(
      this.governor,
      async (job) => {
        this.starts.push({ job: job as unknown as SimJob, atMs: this.clock.monoMs() });
        await this.clock.sleep(job.data.serviceMs);
      },
      options,
    );
    let inside = 0;
    const watched = async (job: SimJob, token?: string) => {
      inside += 1;
      this.seen.inside = Math.max(this.seen.inside, inside);
      this.#look(processor.governing);
      try {
        return await processor(job as unknown as Job, token);
      } finally {
        inside -= 1;
        this.#look(processor.governing);
      }
    };
    const worker = new FakeWorker(this.queue, watched, { concurrency });
    worker.on('failed', (_job, error: Error) => this.failed.push(error));
    processor.attach(worker as unknown as Worker);
    this.#workers.push(worker);
    this.#processors.push(processor);
  }

  #look(state: GoverningState): void {
    const numbers = Object.values(state).filter((value) => typeof value === 'number');
    this.seen.least = Math.min(this.seen.least, ...numbers);
  }
}

// A store is a round trip away.
function remote(store: MemoryStore, clock: SimClock): MemoryStore {
  return new Proxy(store, {
    get(target, name) {
      const value = Reflect.get(target, name, target) as unknown;
      if (typeof value !== 'function') return value;
      return async (...args: unknown[]) => {
        if (name !== 'limits') await clock.sleep(ROUND_TRIP_MS / 2);
        const answer = await value.apply(target, args);
        if (name !== 'limits') await clock.sleep(ROUND_TRIP_MS / 2);
        return answer;
      };
    },
  });
}
