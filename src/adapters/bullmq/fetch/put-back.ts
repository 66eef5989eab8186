import { WaitingError } from 'bullmq';
import type { Clock } from '../../../core/calls/desk.ts';
import type { Fetched } from './arrivals.ts';

/** How long refusals are collected: about as long as jobs that were fetched before the gate closed keep arriving. */
const COLLECT_MS = 20;

/**
 * Puts jobs back to the head of their queue in the order in which they were there. BullMQ pushes each to the head, so
 * the last fetched must go first: what comes together is collected and put back one after the other, newest first.
 */
export class PutBack {
  #collected: { readonly fetched: Fetched; readonly done: (moved: Promise<void>) => void }[] = [];
  #turn: Promise<void> = Promise.resolve();
  #cancelTimer: (() => void) | undefined;
  #collects = true;

  constructor(
    private readonly clock: Clock,
    private readonly counters: { returned: number },
  ) {}

  /** Only while the worker does not fetch: it would have the job again at once. Throws what tells BullMQ, once it is back. */
  async toHead(fetched: Fetched): Promise<never> {
    this.counters.returned += 1;
    await new Promise<void>((done) => {
      this.#collected.push({ fetched, done });
      this.#cancelTimer ??= this.clock.timer(this.#collects ? COLLECT_MS : 0, () => this.#begin());
    });
    throw new WaitingError();
  }

  /** The worker closes: what is collected goes back at once. */
  hurry(): void {
    this.#collects = false;
    if (this.#cancelTimer === undefined) return;
    this.#cancelTimer();
    this.#begin();
  }

  #begin(): void {
    this.#cancelTimer = undefined;
    this.#turn = this.#turn.then(() => this.#flush());
  }

  async #flush(): Promise<void> {
    const jobs = this.#collected.sort((a, b) => b.fetched.arrival - a.fetched.arrival);
    this.#collected = [];
    for (const { fetched, done } of jobs) {
      const moved = fetched.job.moveToWait(fetched.token).then(() => {});
      done(moved);
      await moved.catch(() => {}); // the job's own call hears of it
    }
  }
}
