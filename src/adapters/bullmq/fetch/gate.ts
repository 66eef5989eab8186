import type { Worker } from 'bullmq';
import type { Clock } from '../../../core/calls/desk.ts';
import type { Feed } from './feed.ts';

// How long free slots stay empty before BullMQ's loop is woken: longer than it takes to fetch a job.
const WAKE_AFTER_MS = 30;
const MAX_WAKE_AFTER_MS = 1_000;
const MIN_REOPEN_MS = 20;
// A shut gate looks at the limit at least this often: it may have been raised, or its debt may be gone.
const MAX_REOPEN_MS = 1_000;

/**
 * Makes one BullMQ worker fetch what its feed says, through BullMQ's public API alone.
 *
 * BullMQ's loop looks at `concurrency` only when something in it settles: while all its jobs run, it does not notice
 * that there may be more. `pause(true)` and `resume()` put a resolved promise into it, which wakes it (BullMQ 6; a 5.x
 * loop notices at the end of the next job). Each resume starts a stalled check, one script: hence the back-off.
 *
 * The user sees none of this: `worker.concurrency`, `isPaused()`, `isRunning()`, the promise of `run()` and the events
 * `paused` and `resumed` stay the user's.
 */
export class Gate {
  readonly #pause: Worker['pause'];
  readonly #resume: Worker['resume'];
  readonly #isRunning: () => boolean;
  readonly #setConcurrency: (value: number) => void;
  #userPaused = false;
  /** Whether the worker may fetch, as far as the limits go. */
  open = true;
  #silent = false;
  #drained = false;
  #wakeAfterMs = WAKE_AFTER_MS;
  #cancelWake: (() => void) | undefined;
  #cancelReopen: (() => void) | undefined;
  #loop: Promise<void> | undefined;
  #onOpen: (() => void)[] = [];
  #ended = false;
  /** Until then nothing is fetched, whatever the limits say. */
  #shutUntilMs = Number.NEGATIVE_INFINITY;

  /**
   * @param longestWaitMs - Asks how long a job would have to wait now, at no cost; rejects if that can't be known.
   */
  constructor(
    private readonly worker: Worker,
    private readonly feed: Feed,
    private readonly clock: Clock,
    private readonly maxHoldMs: number,
    private readonly longestWaitMs: () => Promise<number>,
  ) {
    this.#pause = worker.pause.bind(worker);
    this.#resume = worker.resume.bind(worker);
    this.#isRunning = worker.isRunning.bind(worker);
    this.#userPaused = worker.isPaused();
    const run = worker.run.bind(worker);
    const { get, set } = concurrencyOf(worker);
    this.#setConcurrency = set.bind(worker);
    let user: number = get.call(worker);
    feed.setMax(user);
    Object.defineProperties(worker, {
      concurrency: {
        configurable: true,
        get: () => user,
        set: (value: number) => {
          this.#setConcurrency(value); // BullMQ's own check, and its own message
          user = value;
          feed.setMax(value);
          this.apply();
        },
      },
      pause: { configurable: true, value: (doNotWaitActive?: boolean) => this.#userPauses(doNotWaitActive) },
      resume: { configurable: true, value: () => this.#userResumes() },
      isPaused: { configurable: true, value: () => this.#userPaused },
      isRunning: { configurable: true, value: () => this.#isRunning() || !this.open },
      run: { configurable: true, value: () => this.#runs(run) },
      emit: {
        configurable: true,
        value: this.#quietly(worker.emit.bind(worker) as (event: string, ...args: unknown[]) => boolean),
      },
    });
    // BullMQ says so too when a job ends after which it may not fetch; only one that looked knows that nothing waits.
    worker.on('drained', () => {
      this.#drained ||= this.#mayFetch();
    });
    this.apply();
  }

  /** A job came: the loop is awake, and there may be more. */
  fetched(): void {
    this.#drained = false;
    // A wake that was put off for long is armed anew. One that is near stays: jobs that come all the time must not put it off.
    if (this.#wakeAfterMs > WAKE_AFTER_MS) {
      this.#cancelWake?.();
      this.#cancelWake = undefined;
    }
    this.#wakeAfterMs = WAKE_AFTER_MS;
    this.apply();
  }

  /**
   * Carries out what the feed says now.
   *
   * @param waitMs - What a job would have to wait now, as far as is known.
   */
  apply(waitMs = this.maxHoldMs): void {
    if (this.#ended) return;
    this.#setConcurrency(this.feed.concurrency);
    if (!this.feed.open) this.#shut(waitMs);
    else if (!this.#cancelWake && this.#mayWake()) {
      this.#cancelWake = this.clock.timer(this.#wakeAfterMs, () => this.#wake());
    }
  }

  /** A limit that all jobs meet refused one, which would have to wait for so long: fetches again when it is half of `maxHoldMs`. */
  refused(waitMs: number): void {
    this.feed.refused();
    this.apply(waitMs);
  }

  /** Fetches nothing for so long, whatever the limits say, nor until a job would have to wait for half of `maxHoldMs`. */
  shutFor(ms: number): void {
    this.#shutUntilMs = Math.max(this.#shutUntilMs, this.clock.monoMs() + ms);
    this.refused(ms);
  }

  /** The worker closes: nothing is woken or opened any more. */
  end(): void {
    this.#ended = true;
    this.open = true;
    this.#cancelWake?.();
    this.#cancelReopen?.();
    this.#opened();
  }

  #mayFetch(): boolean {
    const { inside, concurrency } = this.feed;
    return this.open && !this.#userPaused && this.#isRunning() && inside < concurrency;
  }

  #mayWake(): boolean {
    return this.feed.inside > 0 && !this.#drained && this.#mayFetch();
  }

  #wake(): void {
    this.#cancelWake = undefined;
    if (this.#ended || !this.#mayWake()) return;
    this.#wakeAfterMs = Math.min(MAX_WAKE_AFTER_MS, this.#wakeAfterMs * 2);
    this.#toggle(() => this.#pause(true));
    this.#toggle(() => this.#resume());
    this.apply();
  }

  #shut(waitMs: number): void {
    if (this.open) {
      this.open = false;
      if (!this.#userPaused) this.#toggle(() => this.#pause(true));
    }
    this.#reopenAfter(waitMs);
  }

  // Half of what is promised lies ahead when the gate opens, so nothing idles; at a time of its own for each worker, so
  // that they do not all fetch at once; and never later than the tokens are free.
  #reopenAfter(waitMs: number): void {
    if (this.#ended || this.#cancelReopen) return;
    const random = 0.25 + 0.75 * Math.random();
    const dueMs = Math.min(waitMs - (this.maxHoldMs / 2) * random, MAX_REOPEN_MS * random);
    const delayMs = Math.max(MIN_REOPEN_MS, dueMs, this.#shutUntilMs - this.clock.monoMs());
    this.#cancelReopen = this.clock.timer(delayMs, () => {
      this.longestWaitMs().then(
        (nowMs) => this.#reopenIf(nowMs),
        () => this.#reopenIf(Number.NaN),
      );
    });
  }

  #reopenIf(waitMs: number): void {
    this.#cancelReopen = undefined;
    if (this.#ended) return;
    if (waitMs <= this.maxHoldMs / 2 && this.clock.monoMs() >= this.#shutUntilMs) {
      this.open = true;
      this.feed.reopened();
      this.#setConcurrency(this.feed.concurrency);
      if (!this.#userPaused) this.#toggle(() => this.#resume());
      this.#opened();
    } else {
      // Not known: the store does not answer. Ask again in a while rather than fetch what can't be decided.
      this.#reopenAfter(Number.isNaN(waitMs) ? Number.POSITIVE_INFINITY : waitMs);
    }
  }

  #opened(): void {
    for (const opened of this.#onOpen.splice(0)) opened();
  }

  // BullMQ's loop ends while it is paused and has no jobs, and a new one begins at resume(). A caller of run() must not
  // take a shut gate for the end of the worker.
  async #runs(run: () => Promise<void>): Promise<void> {
    const own = this.#silent; // it is resume() that calls, for the gate, and nobody awaits it

    this.#loop = run();
    await this.#loop;
    if (own) return;
    while (!this.open) {
      await new Promise<void>((resolve) => this.#onOpen.push(resolve));
      await this.#loop;
    }
  }

  #userPauses(doNotWaitActive?: boolean): Promise<void> {
    // BullMQ ignores a pause while it is paused, and with it the promise to wait for active jobs.
    if (!this.open && !this.#userPaused) this.#toggle(() => this.#resume());
    this.#userPaused = true;
    return this.#pause(doNotWaitActive);
  }

  async #userResumes(): Promise<void> {
    this.#userPaused = false;
    const resumed = this.#resume();
    // In the same turn, or the loop would fetch what the gate is shut for.
    if (!this.open) this.#toggle(() => this.#pause(true));
    await resumed;
  }

  // Both settle before they first await, so that the events they emit fall into the silence.
  #toggle(action: () => Promise<void> | void): void {
    this.#silent = true;
    try {
      Promise.resolve(action()).catch((error) => this.worker.emit('error', error));
    } finally {
      this.#silent = false;
    }
  }

  #quietly(emit: (event: string, ...args: unknown[]) => boolean) {
    return (event: string, ...args: unknown[]): boolean =>
      this.#silent && (event === 'paused' || event === 'resumed') ? true : emit(event, ...args);
  }
}

function concurrencyOf(worker: Worker): { get: () => number; set: (value: number) => void } {
  for (let proto = Object.getPrototypeOf(worker); proto !== null; proto = Object.getPrototypeOf(proto)) {
    const found = Object.getOwnPropertyDescriptor(proto, 'concurrency');
    if (found?.get && found.set) return { get: found.get, set: found.set };
  }
  throw new TypeError(
    `this version of BullMQ has no settable Worker#concurrency: flyball/bullmq needs 5.76.11 or newer`,
  );
}
