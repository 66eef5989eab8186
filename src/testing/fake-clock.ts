import { durationMs } from '../core/checks.ts';
import type { Clock } from '../core/clock.ts';

const MOST_MS = Number.MAX_SAFE_INTEGER;

/** A clock that moves only when told to: tests of waiting code without sleeping. */
export class FakeClock implements Clock {
  #nowMs: number;
  readonly #timers = new Set<{ atMs: number; callback: () => void }>();

  /** @param startMs - Where it begins, in milliseconds; also what `wallMs` counts from. Default 1,000,000. */
  constructor(startMs = 1_000_000) {
    this.#nowMs = durationMs('startMs', startMs, 0, MOST_MS);
  }

  monoMs(): number {
    return this.#nowMs;
  }

  wallMs(): number {
    return this.#nowMs;
  }

  timer(delayMs: number, callback: () => void): () => void {
    const timer = { atMs: this.#nowMs + Math.max(0, delayMs), callback };
    this.#timers.add(timer);
    return () => this.#timers.delete(timer);
  }

  /** How many timers are set. */
  get pending(): number {
    return this.#timers.size;
  }

  /**
   * Moves on by `ms`, firing what comes due in order of time, and letting promises settle after each.
   */
  async advance(ms: number): Promise<void> {
    const untilMs = this.#nowMs + durationMs('ms', ms, 0, MOST_MS);
    await settle();
    for (let next = this.#next(untilMs); next !== undefined; next = this.#next(untilMs)) {
      this.#timers.delete(next);
      this.#nowMs = Math.max(this.#nowMs, next.atMs);
      next.callback();
      await settle();
    }
    this.#nowMs = untilMs;
    await settle();
  }

  /**
   * Moves on by `ms` without firing anything, as for a process that was blocked; `advance(0)` then fires all. Back if it is
   * negative.
   */
  block(ms: number): void {
    this.#nowMs += durationMs('ms', ms, -MOST_MS, MOST_MS);
  }

  #next(untilMs: number) {
    let first: { atMs: number; callback: () => void } | undefined;
    for (const timer of this.#timers) {
      if (timer.atMs <= untilMs && (first === undefined || timer.atMs < first.atMs)) first = timer;
    }
    return first;
  }
}

// Promise chains of the code under test are some microtasks long; a macrotask lets all of them finish.
const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
