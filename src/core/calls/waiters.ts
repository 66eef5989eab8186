import type { Clock } from '../clock.ts';
import { TooManyWaitersError } from '../errors.ts';

/** What a recalled sleep rejects with: the caller is to ask again. */
export const RECALLED = Symbol('recalled');

/** Ends one sleep with a reason. */
type End = (reason: unknown) => void;

/** The calls that wait in this process: bounded in number, and ended together when the governor closes. */
export class Waiters {
  // Sets keep the order in which the sleeps began.
  readonly #ends = new Set<End>();
  readonly #recallable = new Set<End>();
  readonly #signals = new Map<AbortSignal, { ends: Set<End>; onAbort: () => void }>();
  readonly #working = new Set<Promise<unknown>>();
  #ended: { readonly reason: unknown } | undefined;

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

  /** Throws what would end a sleep that began now. */
  check(signal: AbortSignal | undefined): void {
    if (this.#ended !== undefined) throw this.#ended.reason;
    signal?.throwIfAborted();
  }

  /**
   * Resolves when the clock has reached `untilMonoMs`, with how late it is in milliseconds. Rejects with the signal's
   * reason if it aborts first, with {@link RECALLED}, or with the reason given to `endAll`, also if that was before.
   *
   * @param how.recallable - Whether {@link recall} ends it.
   * @param how.onWake - Given a function that ends the sleep now, as if it were over.
   */
  sleep(
    untilMonoMs: number,
    signal: AbortSignal | undefined,
    how: { readonly recallable?: boolean; readonly onWake?: (wake: () => void) => void } = {},
  ): Promise<number> {
    return new Promise((resolve, reject) => {
      this.check(signal);
      let cancelTimer: () => void = () => {};
      const settle = (finish: () => void) => {
        cancelTimer();
        this.#forget(end, signal);
        finish();
      };
      const end: End = (reason) => settle(() => reject(reason));
      this.#remember(end, signal);
      if (how.recallable) this.#recallable.add(end);
      how.onWake?.(() => settle(() => resolve(0)));
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

  /** Ends the recallable sleeps of this moment with {@link RECALLED}, oldest first: that is the order in which they ask again. */
  recall(): void {
    for (const end of [...this.#recallable]) end(RECALLED);
  }

  /**
   * Ends all sleeps, and those that would begin later. Resolves when the calls that slept have done what they had to.
   */
  async endAll(reason: unknown): Promise<void> {
    this.#ended = { reason };
    endNewestFirst(this.#ends, reason);
    await Promise.allSettled(this.#working);
  }

  // One listener for all sleeps of a signal: the platform calls listeners oldest first, which would lose all
  // reservations but the newest, and warns of a leak from the eleventh on.
  #remember(end: End, signal: AbortSignal | undefined): void {
    this.#ends.add(end);
    if (signal === undefined) return;
    let watched = this.#signals.get(signal);
    if (watched === undefined) {
      const ends = new Set<End>();
      watched = { ends, onAbort: () => endNewestFirst(ends, signal.reason) };
      this.#signals.set(signal, watched);
      signal.addEventListener('abort', watched.onAbort, { once: true });
    }
    watched.ends.add(end);
  }

  #forget(end: End, signal: AbortSignal | undefined): void {
    this.#ends.delete(end);
    this.#recallable.delete(end);
    const watched = signal && this.#signals.get(signal);
    if (!watched) return;
    watched.ends.delete(end);
    if (watched.ends.size > 0) return;
    this.#signals.delete(signal);
    signal.removeEventListener('abort', watched.onAbort);
  }
}

// Reservations handed back in this order are refunded whole.
function endNewestFirst(ends: Set<End>, reason: unknown): void {
  for (const end of [...ends].reverse()) end(reason);
}
