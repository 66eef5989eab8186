import type { Job } from 'bullmq';
import type { Clock } from '../../../core/clock.ts';

/** How long refusals are collected: about as long as jobs that were fetched before the gate closed keep arriving. */
const COLLECT_MS = 20;

interface Returning {
  readonly job: Job;
  readonly token: string | undefined;
  readonly arrival: number;
  readonly done: () => void;
  readonly failed: (error: unknown) => void;
}

/**
 * Puts jobs back to the head of their queue in the order in which they were there. BullMQ pushes each to the head, so
 * the last fetched must go first: what comes together is collected and put back one after the other, newest first.
 */
export class PutBack {
  #collected: Returning[] = [];
  #turn: Promise<void> = Promise.resolve();
  #cancelTimer: (() => void) | undefined;
  #collects = true;

  constructor(private readonly clock: Clock) {}

  /**
   * Resolves when the job is back in its queue.
   *
   * @param arrival - Its place in the order in which this worker fetched its jobs.
   */
  put(job: Job, token: string | undefined, arrival: number): Promise<void> {
    return new Promise((done, failed) => {
      this.#collected.push({ job, token, arrival, done, failed });
      this.#cancelTimer ??= this.clock.timer(this.#collects ? COLLECT_MS : 0, () => {
        this.#cancelTimer = undefined;
        this.#turn = this.#turn.then(() => this.#flush());
      });
    });
  }

  /** The worker closes: what is collected goes back at once. */
  hurry(): void {
    this.#collects = false;
    if (this.#cancelTimer === undefined) return;
    this.#cancelTimer();
    this.#cancelTimer = undefined;
    this.#turn = this.#turn.then(() => this.#flush());
  }

  async #flush(): Promise<void> {
    const jobs = this.#collected.sort((a, b) => b.arrival - a.arrival);
    this.#collected = [];
    for (const { job, token, done, failed } of jobs) {
      try {
        await job.moveToWait(token);
        done();
      } catch (error) {
        failed(error);
      }
    }
  }
}
