import type { Job, Queue, Worker } from 'bullmq';
import { type DeferredJob, deskOf, type Move } from '../../../core/calls/desk.ts';
import type { Governor } from '../../../core/governor.ts';
import type { Pace } from '../admit/pace.ts';

// While one process re-times; should it end in the middle, another may go on after this.
const CLAIM_MS = 5_000;
// So that a process that hears of the change late does not do it again.
const DONE_MS = 3_600_000;
const PAGE = 500;
const CHUNK = 100;
// From the note of a deferral to the queue's own reckoning of its delay, in a process that is busy.
const MAX_LATENCY_MS = 1_000;
/** BullMQ's codes for a job that has gone, or has come back. */
const NOT_THERE: readonly unknown[] = [-1, -3];

/** When the next job of each bucket is to come, on the process's own monotonic clock. */
type Schedule = Map<string, Promise<{ nextMs: number }>>;

/**
 * Gives the deferred jobs of one worker's queue new times, each time the limits have changed: once in the fleet for each
 * version of the limits. A process that finds it claimed looks once more when the claim would have lapsed.
 *
 * Jobs are moved key by key, in the order of their old turns: the first to when its bucket has room, and the others at the pace of
 * the limits in force. Only jobs that the record names and that are still as they were put there: not one that the user
 * delayed, nor one that waits for a retry. A job's time decides only when it asks again, so one that asks in vain, or is
 * promoted or removed meanwhile, does no harm.
 */
export class Retimer<J extends Job> {
  #latest = 0;
  #turn: Promise<void> = Promise.resolve();
  #ended = false;
  #cancelSecondLook: (() => void) | undefined;

  /**
   * @param paceOf - The pace of a job under the limits in force; undefined, or a rejection: it keeps its turn.
   * @param failed - Told why a re-timing ended early. The jobs then come at their old turns.
   */
  constructor(
    private readonly governor: Governor,
    private readonly paceOf: (job: J) => Promise<Pace | undefined>,
    private readonly failed: (error: unknown) => void,
  ) {}

  attach(worker: Worker, queue: () => Queue): void {
    const stopListening = this.governor.on('configured', ({ version }) => {
      if (this.#ended || version <= this.#latest) return;
      this.#latest = version;
      this.#cancelSecondLook?.();
      this.#next(version, queue, true);
    });
    worker.on('closing', () => {
      this.#ended = true;
      stopListening();
      this.#cancelSecondLook?.();
    });
  }

  #next(version: number, queue: () => Queue, looksAgain: boolean): void {
    this.#turn = this.#turn.then(() => this.#retime(version, queue, looksAgain)).catch(this.failed);
  }

  async #retime(version: number, queueOf: () => Queue, looksAgain: boolean): Promise<void> {
    const isLatest = () => !this.#ended && version === this.#latest;
    if (!isLatest()) return;
    const { deferrals } = deskOf(this.governor);
    const queue = queueOf();
    const name = queue.qualifiedName;
    if (looksAgain) {
      this.#cancelSecondLook = this.governor.clock.timer(CLAIM_MS * (1 + Math.random()), () =>
        this.#next(version, queueOf, false),
      );
    }
    if (!(await deferrals.claim(name, version, CLAIM_MS, false))) return;
    const mayGoOn = async () => isLatest() && (await deferrals.claim(name, version, CLAIM_MS, true));
    const schedule: Schedule = new Map();
    const deferred = await this.#allDeferred(name);
    for (let from = 0; from < deferred.length && (await mayGoOn()); from += CHUNK) {
      const moves = await this.#retimeChunk(queue, deferred.slice(from, from + CHUNK), schedule);
      if (moves.length > 0) await deferrals.move(name, moves);
    }
    if (await mayGoOn()) await deferrals.claim(name, version, DONE_MS, true);
  }

  async #allDeferred(queue: string): Promise<DeferredJob[]> {
    const deferred: DeferredJob[] = [];
    for (;;) {
      const page = await deskOf(this.governor).deferrals.list(queue, deferred.at(-1)?.turnUs ?? 0, PAGE);
      if (page.length === 0) return deferred;
      deferred.push(...page);
    }
  }

  async #retimeChunk(queue: Queue, chunk: readonly DeferredJob[], schedule: Schedule): Promise<Move[]> {
    const { clock } = this.governor;
    const paced = await Promise.all(
      chunk.map(async (deferred) => {
        const job = (await queue.getJob(deferred.job)) as J | undefined;
        if (job === undefined)
          await deskOf(this.governor).deferrals.forget(queue.qualifiedName, deferred.job);
        if (job === undefined || !isAsItWasPut(job, deferred)) return undefined;
        // A job that is not valid any more is told so when it comes.
        const pace = await this.paceOf(job).catch(() => undefined);
        if (pace === undefined) return undefined;
        const times =
          schedule.get(pace.bucket) ?? pace.waitMs().then((waitMs) => ({ nextMs: clock.monoMs() + waitMs }));
        schedule.set(pace.bucket, times);
        return { job, intervalMs: pace.intervalMs, times: await times };
      }),
    );
    const moves = paced.map(async (found) => {
      if (found === undefined) return undefined;
      const { job, intervalMs, times } = found;
      const delayMs = Math.max(0, Math.ceil(times.nextMs - clock.monoMs()));
      times.nextMs += intervalMs;
      return (await isMoved(job, delayMs)) ? { job: job.id!, delayMs } : undefined;
    });
    return (await Promise.all(moves)).filter((move) => move !== undefined);
  }
}

/** Still in the delayed set (BullMQ sets the delay to 0 when it takes it out), by the delay and the attempts of then. */
function isAsItWasPut(job: Job, { delayMs, attempt }: DeferredJob): boolean {
  const shorterMs = delayMs - job.delay;
  return job.delay > 0 && job.attemptsMade === attempt && shorterMs >= -1 && shorterMs <= MAX_LATENCY_MS;
}

/** False if the job has gone or come back meanwhile. */
async function isMoved(job: Job, delayMs: number): Promise<boolean> {
  try {
    await job.changeDelay(delayMs);
    return true;
  } catch (error) {
    if (NOT_THERE.includes((error as { code?: unknown }).code)) return false;
    throw error;
  }
}
