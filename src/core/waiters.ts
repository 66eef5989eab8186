import type { Clock } from './clock.ts';
import { TooManyWaitersError } from './errors.ts';

/** The calls that wait in this process: bounded in number, and ended together when the governor closes. */
export class Waiters {
  readonly #ends = new Set<(reason: unknown) => void>();
  readonly #working = new Set<Promise<unknown>>();

  constructor(
    private readonly clock: Clock,
    private readonly maxWaiters: number,
  ) {}

  /** Calls that wait at this moment. */
  get count(): number {
    return this.#working.size;
  }

  /** Counts `work` as one waiting call until it settles. @throws {@link TooManyWaitersError} over the bound. */
  async track<T>(work: () => Promise<T>): Promise<T> {
    if (this.#working.size >= this.maxWaiters) throw new TooManyWaitersError(this.maxWaiters);
    const working = work();
    this.#working.add(working);
    try {
      return await working;
    } finally {
      this.#working.delete(working);
    }
  }

  /**
   * Resolves when the clock has reached `untilMonoMs`, with how late it is in milliseconds. Rejects with the signal's
   * reason if it aborts first, or with the reason given to `endAll`.
   */
  sleep(untilMonoMs: number, signal: AbortSignal | undefined): Promise<number> {
    return new Promise((resolve, reject) => {
      let cancelTimer: () => void = () => {};
      const settle = (finish: () => void) => {
        cancelTimer();
        signal?.removeEventListener('abort', onAbort);
        this.#ends.delete(end);
        finish();
      };
      const end = (reason: unknown) => settle(() => reject(reason));
      const onAbort = () => end(signal?.reason);
      if (signal?.aborted) return reject(signal.reason);
      signal?.addEventListener('abort', onAbort, { once: true });
      this.#ends.add(end);
      const arm = () => {
        cancelTimer = this.clock.timer(Math.max(0, untilMonoMs - this.clock.monoMs()), () => {
          const lateMs = this.clock.monoMs() - untilMonoMs;
          // Long timers are cut short by the platform; the clock alone says when the time has come.
          if (lateMs < 0) arm();
          else settle(() => resolve(lateMs));
        });
      };
      arm();
    });
  }

  /**
   * Ends all sleeps, newest first, so that reservations handed back in that order are refunded whole. Resolves when
   * the calls that slept have done what they had to.
   */
  async endAll(reason: unknown): Promise<void> {
    for (const end of [...this.#ends].reverse()) end(reason);
    await Promise.allSettled(this.#working);
  }
}
