import type { Job, Queue } from 'bullmq';
import type { Clock, Deferrals, DeferredJob, Move } from '../../../core/calls/desk.ts';
import type { Pace } from '../admit/pace.ts';

/** What a re-timing works on. */
export interface Retimed<J extends Job> {
  readonly queue: Pick<Queue, 'qualifiedName' | 'getJob'>;
  readonly deferrals: Deferrals;
  readonly clock: Pick<Clock, 'monoMs'>;
  /** The pace of a job under the limits in force; undefined, or a rejection: it keeps its turn. */
  readonly paceOf: (job: J) => Promise<Pace | undefined>;
  /** Asked before each chunk; false ends it. */
  readonly mayGoOn: () => Promise<boolean>;
}

const PAGE = 500;
const CHUNK = 100;
// From the note of a deferral to the queue's own reckoning of its delay, in a process that is busy.
const MAX_LATENCY_MS = 1_000;

/**
 * Gives the deferred jobs new times, after a change of the limits: key by key, in the order of their old turns,
 * the first when its bucket has room, and the others at the pace of the limits in force. Only jobs that the record names
 * and that are still as they were put there: not one that the user delayed, nor one that waits for a retry.
 *
 * A job's time decides only when it asks again. That it asks in vain, or that it is promoted or removed meanwhile, is
 * no harm.
 *
 * @returns how many were moved.
 */
export async function retime<J extends Job>(retimed: Retimed<J>): Promise<number> {
  const { queue, deferrals, clock, mayGoOn } = retimed;
  const deferred = await allDeferred(deferrals, queue.qualifiedName);
  const schedule = new Schedule(clock);
  let moved = 0;
  for (let from = 0; from < deferred.length; from += CHUNK) {
    if (!(await mayGoOn())) break;
    const moves = await retimeChunk(retimed, deferred.slice(from, from + CHUNK), schedule);
    if (moves.length > 0) await deferrals.move(queue.qualifiedName, moves);
    moved += moves.length;
  }
  return moved;
}

async function allDeferred(deferrals: Deferrals, queue: string): Promise<DeferredJob[]> {
  const deferred: DeferredJob[] = [];
  for (;;) {
    const page = await deferrals.list(queue, deferred.at(-1)?.turnUs ?? 0, PAGE);
    if (page.length === 0) return deferred;
    deferred.push(...page);
  }
}

async function retimeChunk<J extends Job>(
  { queue, deferrals, paceOf }: Retimed<J>,
  chunk: readonly DeferredJob[],
  schedule: Schedule,
): Promise<Move[]> {
  const paced = await Promise.all(
    chunk.map(async (deferred) => {
      const job = (await queue.getJob(deferred.job)) as J | undefined;
      if (job === undefined) await deferrals.forget(queue.qualifiedName, deferred.job);
      if (job === undefined || !isAsItWasPut(job, deferred)) return undefined;
      // What is wrong with the job, it is told when it comes.
      const pace = await paceOf(job).catch(() => undefined);
      if (pace === undefined) return undefined;
      await schedule.begin(pace);
      return { job, pace };
    }),
  );
  const moves = await Promise.all(paced.map((found) => found && move(found.job, schedule.next(found.pace))));
  return moves.filter((moved) => moved !== undefined);
}

/** Still in the delayed set (BullMQ sets the delay to 0 when it takes it out), by the delay and the attempts of then. */
function isAsItWasPut(job: Job, { delayMs, attempt }: DeferredJob): boolean {
  const shorterMs = delayMs - job.delay;
  return job.delay > 0 && job.attemptsMade === attempt && shorterMs >= -1 && shorterMs <= MAX_LATENCY_MS;
}

const MISSING = -1;
const NOT_DELAYED = -3;

/** Undefined if the job has gone or come back meanwhile. */
async function move(job: Job, delayMs: number): Promise<Move | undefined> {
  try {
    await job.changeDelay(delayMs);
    return { job: job.id!, delayMs };
  } catch (error) {
    const { code } = error as { code?: unknown };
    if (code === MISSING || code === NOT_DELAYED) return undefined;
    throw error;
  }
}

/** When the next job of each bucket is to come, on the process's own monotonic clock. */
class Schedule {
  readonly #firstMs = new Map<string, Promise<number>>();
  readonly #nextMs = new Map<string, number>();

  constructor(private readonly clock: Pick<Clock, 'monoMs'>) {}

  /** Asks once for each bucket when there is room. */
  async begin(pace: Pace): Promise<void> {
    const first =
      this.#firstMs.get(pace.bucket) ?? pace.waitMs().then((waitMs) => this.clock.monoMs() + waitMs);
    this.#firstMs.set(pace.bucket, first);
    const firstMs = await first;
    if (!this.#nextMs.has(pace.bucket)) this.#nextMs.set(pace.bucket, firstMs);
  }

  /** The delay of the next job of a bucket that has begun. */
  next({ bucket, intervalMs }: Pace): number {
    const atMs = this.#nextMs.get(bucket)!;
    this.#nextMs.set(bucket, atMs + intervalMs);
    return Math.max(0, Math.ceil(atMs - this.clock.monoMs()));
  }
}
