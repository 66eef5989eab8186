import type { Job } from 'bullmq';

/** A job in the hands of its worker. */
export interface Fetched<J extends Job = Job> {
  readonly job: J;
  /** BullMQ's token of this fetch. */
  readonly token: string | undefined;
  /** Aborts when the job is cancelled or the worker closes by force. */
  readonly signal: AbortSignal | undefined;
  /** Its place in the order in which this worker fetched its jobs. */
  readonly arrival: number;
}

/**
 * Numbers jobs in the order in which BullMQ fetched them, which is not quite the order in which it hands them over: one
 * that came with the end of another job has a longer way to the processor than one that the loop fetched after it. What
 * is handed over in one turn of the event loop is sorted, by the time of the fetch and, within a millisecond, by the
 * queue's own numbering.
 */
export class Arrivals {
  #turn: { readonly job: Job; readonly numbered: (arrival: number) => void }[] = [];
  #count = 0;

  /** Resolves at the end of this turn, in order, to the job's number. */
  next(job: Job): Promise<number> {
    return new Promise((numbered) => {
      if (this.#turn.length === 0) setImmediate(() => this.#number());
      this.#turn.push({ job, numbered });
    });
  }

  #number(): void {
    const turn = this.#turn.sort((a, b) => byFetch(a.job, b.job));
    this.#turn = [];
    for (const { numbered } of turn) numbered(this.#count++);
  }
}

function byFetch(a: Job, b: Job): number {
  const fetched = (a.processedOn ?? 0) - (b.processedOn ?? 0);
  if (fetched !== 0) return fetched;
  const numbers = Number(a.id) - Number(b.id);
  // A job's own id says nothing of the order, and neither does a number between jobs of unlike priority.
  return a.priority === b.priority && Number.isFinite(numbers) ? numbers : 0;
}
