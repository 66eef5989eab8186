import { EventEmitter } from 'node:events';
import type { Clock } from '../../src/core/clock.ts';

/**
 * A queue and a worker of BullMQ in memory, on any clock: those habits of theirs on which the feed and the gate rest.
 * test/adapters/bullmq/worker-conformance.ts holds them to the real ones.
 */

/** How long a script takes there and back. */
const ROUND_TRIP_MS = 0.4;
/** How late BullMQ promotes a delayed job. */
const PROMOTION_MS = 60;
/** How long a worker that found no job waits before it looks again. */
const DRAIN_DELAY_MS = 5_000;

const sleep = (clock: Clock, ms: number) => new Promise<void>((resolve) => void clock.timer(ms, resolve));

export class FakeJob<D> {
  readonly id: string;
  readonly queueQualifiedName: string;
  readonly timestamp: number;
  readonly stalledCounter = 0;
  processedOn: number | undefined;
  attemptsMade = 0;
  attemptsStarted = 0;

  constructor(
    private readonly queue: FakeQueue<D>,
    number: number,
    readonly data: D,
  ) {
    this.id = String(number);
    this.queueQualifiedName = `bull:${queue.name}`;
    this.timestamp = queue.clock.wallMs();
  }

  async moveToDelayed(atMs: number): Promise<void> {
    const { clock } = this.queue;
    await sleep(clock, ROUND_TRIP_MS);
    this.queue.deferred.push({ id: this.id, atMs });
    clock.timer(atMs - clock.wallMs() + PROMOTION_MS, () => this.queue.push(this));
  }

  async moveToWait(): Promise<void> {
    await sleep(this.queue.clock, ROUND_TRIP_MS);
    this.queue.unshift(this);
  }
}

export class FakeQueue<D> {
  readonly name = 'fake';
  /** Each time that a job was put into the delayed set, and when it was due. */
  readonly deferred: { readonly id: string; readonly atMs: number }[] = [];
  /** Put back to the head, the last one first. */
  readonly #returned: FakeJob<D>[] = [];
  readonly #jobs: FakeJob<D>[] = [];
  #head = 0;
  #number = 0;
  #wakes: (() => void)[] = [];

  /** @param endless - Makes the next job of a backlog without end, if there is one. */
  constructor(
    readonly clock: Clock,
    private readonly endless?: () => D,
  ) {}

  /** The jobs that wait, the next one first. */
  get waiting(): FakeJob<D>[] {
    return [...this.#returned.toReversed(), ...this.#jobs.slice(this.#head)];
  }

  get #isEmpty(): boolean {
    return this.#returned.length === 0 && this.#head === this.#jobs.length && this.endless === undefined;
  }

  add(data: D): void {
    this.push(new FakeJob(this, this.#number++, data));
  }

  push(job: FakeJob<D>): void {
    this.#jobs.push(job);
    this.#wake();
  }

  unshift(job: FakeJob<D>): void {
    this.#returned.push(job);
    this.#wake();
  }

  pop(): FakeJob<D> | undefined {
    if (this.#returned.length > 0) return this.#returned.pop();
    if (this.#head === this.#jobs.length && this.endless !== undefined) this.add(this.endless());
    return this.#head < this.#jobs.length ? this.#jobs[this.#head++] : undefined;
  }

  /** Resolves once there is a job, after `DRAIN_DELAY_MS`, or when `stop` is called, which it hands out. */
  async marker(stoppable: (stop: () => void) => void): Promise<void> {
    if (!this.#isEmpty) return sleep(this.clock, ROUND_TRIP_MS);
    await new Promise<void>((resolve) => {
      const cancel = this.clock.timer(DRAIN_DELAY_MS, resolve);
      const end = () => {
        cancel();
        resolve();
      };
      stoppable(end);
      this.#wakes.push(() => {
        cancel();
        this.clock.timer(ROUND_TRIP_MS, resolve);
      });
    });
  }

  #wake(): void {
    for (const wake of this.#wakes.splice(0)) wake();
  }

  // What an adapter asks of a queue that it opens.

  on(): this {
    return this;
  }

  async close(): Promise<void> {}

  async getGlobalRateLimit(): Promise<null> {
    return null;
  }

  async getJobCounts(): Promise<{ wait: number }> {
    return { wait: this.waiting.length };
  }
}

/** In place of BullMQ's Queue: opens the queue of a fake worker. */
export function OpenedQueue(_name: string, { connection }: { connection: unknown }) {
  return connection;
}

export class FakeWorker<D> extends EventEmitter {
  readonly name: string;
  readonly opts: { readonly connection: FakeQueue<D> };
  /** Each pause and resume that it was told. */
  readonly calls: string[] = [];
  /** The least and the most that its concurrency was set to. */
  readonly seen = { least: Number.POSITIVE_INFINITY, most: 0 };
  #concurrency = 1;
  #paused = false;
  #running = false;
  #drained = false;
  #waits = false;
  #stopWaiting = () => {};
  #loop: Promise<void> | undefined;
  #closing: Promise<void> | undefined;
  // The loop's own queue: jobs that are being fetched or processed, and what came of them.
  #pending = 0;
  readonly #settled: (FakeJob<D> | undefined)[] = [];
  #wake: (() => void) | undefined;

  constructor(
    private readonly queue: FakeQueue<D>,
    public processFn: (job: FakeJob<D>, token?: string) => Promise<unknown>,
    { concurrency = 1, autorun = true } = {},
  ) {
    super();
    this.name = queue.name;
    this.opts = { connection: queue };
    this.concurrency = concurrency;
    if (autorun) void this.run();
  }

  get concurrency(): number {
    return this.#concurrency;
  }

  set concurrency(value: number) {
    if (!(value >= 1)) throw new Error('concurrency must be a finite number greater than 0');
    this.seen.least = Math.min(this.seen.least, value);
    this.seen.most = Math.max(this.seen.most, value);
    this.#concurrency = value;
  }

  isPaused(): boolean {
    return this.#paused;
  }

  isRunning(): boolean {
    return this.#running;
  }

  async pause(doNotWaitActive?: boolean): Promise<void> {
    this.calls.push(`pause(${doNotWaitActive ?? ''})`);
    if (this.#paused) return;
    this.#paused = true;
    if (!doNotWaitActive) await this.#end();
    this.emit('paused');
  }

  async resume(): Promise<void> {
    this.calls.push('resume()');
    if (this.#running && !this.#paused) return;
    this.#paused = false;
    if (this.#running) this.#track(Promise.resolve(undefined));
    else void this.run();
    this.emit('resumed');
  }

  close(): Promise<void> {
    this.#closing ??= (async () => {
      this.emit('closing', 'closing queue');
      await Promise.resolve();
      await this.#end();
      this.emit('closed');
    })();
    return this.#closing;
  }

  async run(): Promise<void> {
    if (this.#running) throw new Error('Worker is already running.');
    this.#running = true;
    if (this.#fetches) {
      this.#loop = this.#work();
      await this.#loop;
    }
    this.#running = false;
  }

  get #fetches(): boolean {
    return !this.#paused && this.#closing === undefined;
  }

  get #total(): number {
    return this.#pending + this.#settled.length;
  }

  #end(): Promise<void> | undefined {
    this.#stopWaiting();
    return this.#loop;
  }

  async #work(): Promise<void> {
    while (this.#fetches || this.#total > 0) {
      // One fetch after the other, and none of the jobs is started before the worker has as many as it may.
      while (this.#fetches && !this.#waits && this.#total < this.#concurrency) {
        const fetched = this.#next();
        this.#track(fetched);
        if (this.#waits && this.#total > 1) break;
        if ((await fetched) === undefined && this.#total > 1) break;
      }
      let job = await this.#firstSettled();
      while (job === undefined && this.#settled.length > 0) job = this.#settled.shift();
      if (job !== undefined) this.#track(this.#process(job));
    }
  }

  #track(work: Promise<FakeJob<D> | undefined>): void {
    this.#pending += 1;
    void work.then((job) => {
      this.#pending -= 1;
      this.#settled.push(job);
      this.#wake?.();
    });
  }

  async #firstSettled(): Promise<FakeJob<D> | undefined> {
    if (this.#total === 0) return undefined;
    while (this.#settled.length === 0) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
    return this.#settled.shift();
  }

  async #next(): Promise<FakeJob<D> | undefined> {
    if (!this.#fetches) return undefined;
    if (!this.#drained) return this.#fetch();
    let stopped = false;
    this.#waits = true;
    await this.queue.marker((stop) => {
      this.#stopWaiting = () => {
        stopped = true;
        stop();
      };
    });
    this.#waits = false;
    // A pause in between does not stop it, unless it is one that waits for the active jobs.
    return stopped ? undefined : this.#fetch();
  }

  async #fetch(): Promise<FakeJob<D> | undefined> {
    const { clock } = this.queue;
    await sleep(clock, ROUND_TRIP_MS);
    const job = this.queue.pop();
    if (job === undefined) {
      this.#foundNone();
      return undefined;
    }
    this.#drained = false;
    job.attemptsStarted += 1;
    job.processedOn = Math.floor(clock.wallMs());
    this.emit('active', job);
    return job;
  }

  #foundNone(): void {
    if (!this.#drained) this.emit('drained');
    this.#drained = true;
  }

  async #process(job: FakeJob<D>): Promise<FakeJob<D> | undefined> {
    let moved = false;
    try {
      const result = await this.processFn(job, 'token');
      this.emit('completed', job, result);
    } catch (error) {
      moved = ['DelayedError', 'WaitingError'].includes((error as Error).name);
      if (!moved) this.emit('failed', job, error);
    }
    if (!moved) job.attemptsMade += 1;
    // Whatever a job ends with, the next one is fetched at its end.
    if (this.#total <= this.#concurrency && this.#fetches) return this.#fetch();
    // BullMQ takes the end of a job after which it did not ask for another for an empty queue.
    if (!moved) this.#foundNone();
    return undefined;
  }
}
