import { EventEmitter } from 'node:events';
import type { Job, Worker } from 'bullmq';
import { Governing } from '../../../src/adapters/bullmq/governing.ts';
import type { GoverningState } from '../../../src/adapters/bullmq/index.ts';
import { type GovernOptions, parseGovernOptions } from '../../../src/adapters/bullmq/options.ts';
import type { Clock } from '../../../src/core/clock.ts';
import type { Keys } from '../../../src/core/decide/demands.ts';
import { Governor } from '../../../src/core/governor.ts';
import { type LimitsOptions, parseLimits } from '../../../src/core/limits/limit.ts';
import { MemoryStore } from '../../../src/store/memory/memory-store.ts';

/**
 * A discrete-event simulator of a fleet of governed workers on one queue: minutes of a fleet's work in a second, and
 * without Redis. Governor, feed and gate are the real ones; simulated are time, the queue, and BullMQ's loop, with what
 * of it matters to a feed: it fetches one job after the other, a job that ends fetches the next one itself, and a
 * raised concurrency is not noticed until a job ends or `resume()` wakes the loop.
 */

/** How long a script takes there and back. */
const ROUND_TRIP_MS = 0.4;
/** How late BullMQ promotes a delayed job. */
const PROMOTION_MS = 60;

interface SimEvent {
  readonly atMs: number;
  readonly order: number;
  callback: (() => void) | undefined;
}

/** Time that moves from one event to the next. */
class SimClock implements Clock {
  #nowMs = 0;
  #sequence = 0;
  readonly #heap: SimEvent[] = [];

  monoMs(): number {
    return this.#nowMs;
  }

  wallMs(): number {
    return this.#nowMs;
  }

  timer(delayMs: number, callback: () => void): () => void {
    const event: SimEvent = {
      atMs: this.#nowMs + Math.max(0, delayMs),
      order: this.#sequence++,
      callback,
    };
    this.#push(event);
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
    while (this.#heap.length > 0 && this.#heap[0]!.atMs <= untilMs) {
      const { atMs, callback } = this.#pop();
      if (callback === undefined) continue;
      this.#nowMs = atMs;
      callback();
      await settled();
    }
    this.#nowMs = untilMs;
  }

  #push(event: SimEvent): void {
    const heap = this.#heap;
    let index = heap.push(event) - 1;
    while (index > 0) {
      const parent = (index - 1) >> 1;
      if (!before(event, heap[parent]!)) break;
      heap[index] = heap[parent]!;
      index = parent;
    }
    heap[index] = event;
  }

  #pop(): SimEvent {
    const heap = this.#heap;
    const first = heap[0]!;
    const last = heap.pop()!;
    if (heap.length === 0) return first;
    let index = 0;
    for (;;) {
      let child = 2 * index + 1;
      if (child >= heap.length) break;
      if (child + 1 < heap.length && before(heap[child + 1]!, heap[child]!)) child += 1;
      if (!before(heap[child]!, last)) break;
      heap[index] = heap[child]!;
      index = child;
    }
    heap[index] = last;
    return first;
  }
}

const before = (a: SimEvent, b: SimEvent): boolean =>
  a.atMs < b.atMs || (a.atMs === b.atMs && a.order < b.order);

// Macrotasks: by then all promise chains of the code under test have come to rest, also those that wait for one itself.
const settled = (): Promise<void> => new Promise((resolve) => setImmediate(() => setImmediate(resolve)));

interface SimJobOptions {
  serviceMs: number;
  cost?: number;
  key?: string;
}

export interface SimStart {
  readonly job: SimJob;
  readonly atMs: number;
  readonly addedMs: number;
}

class SimJob {
  readonly id: string;
  readonly stalledCounter = 0;
  readonly attemptsMade = 0;
  attemptsStarted = 0;

  constructor(
    private readonly queue: SimQueue,
    number: number,
    readonly addedMs: number,
    readonly options: SimJobOptions,
  ) {
    this.id = String(number);
  }

  async moveToDelayed(atMs: number): Promise<void> {
    await this.queue.clock.sleep(ROUND_TRIP_MS);
    this.queue.clock.timer(atMs - this.queue.clock.wallMs() + PROMOTION_MS, () => this.queue.push(this));
  }

  async moveToWait(): Promise<void> {
    await this.queue.clock.sleep(ROUND_TRIP_MS);
    this.queue.unshift(this);
  }
}

class SimQueue {
  #returned: SimJob[] = [];
  #jobs: SimJob[] = [];
  #head = 0;
  #number = 0;
  #wakes: (() => void)[] = [];

  /** @param endless - Makes the next job of a backlog without end, if there is one. */
  constructor(
    readonly clock: SimClock,
    private readonly endless?: () => SimJobOptions,
  ) {}

  get waiting(): number {
    return this.#returned.length + this.#jobs.length - this.#head;
  }

  add(options: SimJobOptions): void {
    this.push(new SimJob(this, this.#number++, this.clock.monoMs(), options));
  }

  push(job: SimJob): void {
    this.#jobs.push(job);
    this.#wake();
  }

  unshift(job: SimJob): void {
    this.#returned.push(job);
    this.#wake();
  }

  pop(): SimJob | undefined {
    if (this.waiting === 0 && this.endless !== undefined) this.add(this.endless());
    const job = this.#returned.pop() ?? this.#jobs[this.#head];
    if (job !== undefined && job === this.#jobs[this.#head]) this.#head += 1;
    return job;
  }

  /** Resolves when there is a job. */
  async marker(): Promise<void> {
    if (this.waiting === 0) await new Promise<void>((resolve) => this.#wakes.push(resolve));
    await this.clock.sleep(ROUND_TRIP_MS);
  }

  #wake(): void {
    for (const wake of this.#wakes.splice(0)) wake();
  }
}

/** What BullMQ's Worker does with its processor, its concurrency and its pauses. */
class SimWorker extends EventEmitter {
  readonly name = 'simulated';
  readonly opts = {};
  processFn: (job: SimJob) => Promise<unknown> = async () => undefined;
  #concurrency = 1;
  #paused = false;
  #running = false;
  #drained = false;
  #blocked = false;
  #pending = 0;
  #settled: (SimJob | undefined)[] = [];
  #wake: (() => void) | undefined;

  constructor(private readonly queue: SimQueue) {
    super();
  }

  get concurrency(): number {
    return this.#concurrency;
  }

  set concurrency(value: number) {
    this.#concurrency = value;
  }

  isPaused(): boolean {
    return this.#paused;
  }

  isRunning(): boolean {
    return this.#running;
  }

  async pause(): Promise<void> {
    this.#paused = true;
    this.emit('paused');
  }

  async resume(): Promise<void> {
    if (this.#running && !this.#paused) return;
    this.#paused = false;
    if (this.#running) this.#track(Promise.resolve(undefined));
    else void this.run();
    this.emit('resumed');
  }

  async run(): Promise<void> {
    if (this.#paused) return;
    this.#running = true;
    while (!this.#paused || this.#total > 0) {
      while (!this.#paused && !this.#blocked && this.#total < this.#concurrency) {
        const fetched = this.#next();
        this.#track(fetched);
        if (this.#blocked && this.#total > 1) break;
        if ((await fetched) === undefined && this.#total > 1) break;
      }
      let job = await this.#firstSettled();
      while (job === undefined && this.#settled.length > 0) job = this.#settled.shift();
      if (job !== undefined) this.#track(this.#process(job));
    }
    this.#running = false;
  }

  get #total(): number {
    return this.#pending + this.#settled.length;
  }

  #track(work: Promise<SimJob | undefined>): void {
    this.#pending += 1;
    void work.then((job) => {
      this.#pending -= 1;
      this.#settled.push(job);
      this.#wake?.();
    });
  }

  async #firstSettled(): Promise<SimJob | undefined> {
    if (this.#pending === 0 && this.#settled.length === 0) return undefined;
    while (this.#settled.length === 0) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
    return this.#settled.shift();
  }

  async #next(): Promise<SimJob | undefined> {
    if (this.#paused) return undefined;
    if (this.#drained) {
      this.#blocked = true;
      await this.queue.marker();
      this.#blocked = false;
    }
    return this.#fetch();
  }

  async #fetch(): Promise<SimJob | undefined> {
    await this.queue.clock.sleep(ROUND_TRIP_MS);
    const job = this.queue.pop();
    if (job === undefined) {
      if (!this.#drained) this.emit('drained');
      this.#drained = true;
      return undefined;
    }
    this.#drained = false;
    job.attemptsStarted += 1;
    return job;
  }

  async #process(job: SimJob): Promise<SimJob | undefined> {
    // Whatever it ends with, WaitingError and DelayedError included, it asks for the next job.
    await this.processFn(job).catch(() => undefined);
    return this.#total <= this.#concurrency && !this.#paused ? this.#fetch() : undefined;
  }
}

export interface FleetOptions {
  workers: number;
  /** Of each worker. */
  concurrency: number;
  limits: LimitsOptions;
  maxHoldMs?: number;
  /** A backlog without end of such jobs. */
  backlog?: () => SimJobOptions;
}

/** Some workers, their queue and their governor. */
export class Fleet {
  readonly clock = new SimClock();
  readonly starts: SimStart[] = [];
  readonly queue: SimQueue;
  readonly governor: Governor;
  /** The most jobs any worker had at a time, and the least and most concurrency it was set to. */
  readonly seen = { inside: 0, leastConcurrency: Number.POSITIVE_INFINITY, mostConcurrency: 0, negative: 0 };
  readonly #store: MemoryStore;
  readonly #governings: Governing<Job>[] = [];

  constructor({ workers, concurrency, limits, maxHoldMs, backlog }: FleetOptions) {
    this.queue = new SimQueue(this.clock, backlog);
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
    });
    const keyed = code.some(({ by }) => by !== null);
    for (let number = 0; number < workers; number++) this.#addWorker(concurrency, maxHoldMs, keyed);
  }

  get states(): GoverningState[] {
    return this.#governings.map(({ state }) => state);
  }

  /** Jobs that were fetched and not run. */
  get refusals(): number {
    return this.states.reduce((sum, { deferrals, returned }) => sum + deferrals + returned, 0);
  }

  run(ms: number): Promise<void> {
    return this.clock.run(ms);
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
    const tokens = starts.reduce((sum, { job }) => sum + (job.options.cost ?? 1), 0);
    return {
      tokensPerSecond: tokens / (ms / 1_000),
      startsPerJob: (starts.length + this.refusals - refusedBefore) / starts.length,
      starts,
    };
  }

  #addWorker(concurrency: number, maxHoldMs: number | undefined, keyed: boolean): void {
    const worker = new SimWorker(this.queue);
    const options = {
      governor: this.governor,
      cost: (job: unknown) => (job as SimJob).options.cost ?? 1,
      ...(keyed ? { keys: (job: unknown) => ({ shop: (job as SimJob).options.key }) as Keys } : {}),
      ...(maxHoldMs === undefined ? {} : { maxHoldMs }),
    } as GovernOptions<Job>;
    const governing = new Governing<Job>(parseGovernOptions<Job>(options));
    this.#governings.push(governing);
    worker.concurrency = concurrency;
    let inside = 0;
    worker.processFn = async (job) => {
      inside += 1;
      this.seen.inside = Math.max(this.seen.inside, inside);
      this.#check(governing);
      try {
        return await governing.process(job as unknown as Job, 'token', undefined, async () => {
          this.starts.push({ job, atMs: this.clock.monoMs(), addedMs: job.addedMs });
          await this.clock.sleep(job.options.serviceMs);
        });
      } finally {
        inside -= 1;
        this.#check(governing);
      }
    };
    this.#watchConcurrency(worker);
    governing.attach(worker as unknown as Worker);
    void worker.run();
  }

  // Stands between the accessor of BullMQ's class and the one that the gate puts over it, and so sees what it is set to.
  #watchConcurrency(worker: SimWorker): void {
    const { seen } = this;
    const proto = Object.create(SimWorker.prototype, {
      concurrency: {
        get(this: SimWorker) {
          return Reflect.get(SimWorker.prototype, 'concurrency', this);
        },
        set(this: SimWorker, value: number) {
          seen.leastConcurrency = Math.min(seen.leastConcurrency, value);
          seen.mostConcurrency = Math.max(seen.mostConcurrency, value);
          Reflect.set(SimWorker.prototype, 'concurrency', value, this);
        },
      },
    });
    Object.setPrototypeOf(worker, proto);
  }

  #check(governing: Governing<Job>): void {
    const { held, aside, running } = governing.state;
    this.seen.negative = Math.min(this.seen.negative, held, aside, running);
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
