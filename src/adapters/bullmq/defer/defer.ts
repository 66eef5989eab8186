import { DelayedError, type Job, type Queue } from 'bullmq';
import { type Deferral, type Deferrals, deskOf } from '../../../core/calls/desk.ts';
import type { Fetched } from '../fetch/arrivals.ts';
import type { Deferred, Shared } from '../state.ts';
import { Room } from './room.ts';

const GONE = ['completed', 'failed', 'unknown'];
// Jobs that a user removed in their hundreds: the figure may then be one of them for once.
const MAX_LOOKS = 50;

/**
 * Whether the job has come before without having run since: deferred, or put back. BullMQ counts each as a start and none as an
 * attempt.
 */
export function hasReturned(job: Pick<Job, 'attemptsStarted' | 'attemptsMade' | 'stalledCounter'>): boolean {
  return job.attemptsStarted - job.attemptsMade - (job.stalledCounter ?? 0) > 1;
}

/**
 * Puts jobs into the queue's delayed set until a time, and keeps the store's record of them. A job that was never deferred is
 * not asked about, and a store that fails here fails no job: the record is for limits and figures, and no token hangs on it.
 */
export class Deferring<J extends Job> {
  readonly #deferrals: Deferrals;

  constructor(private readonly shared: Shared<J>) {
    this.#deferrals = deskOf(shared.govern.governor).deferrals;
  }

  /** How the job may still be deferred. Asks the store only if that decides anything. @throws as the store */
  async roomOf(job: J): Promise<Room<J>> {
    const { maxDeferrals, maxDeferredMs } = this.shared.govern;
    const isBounded = Math.min(maxDeferrals, maxDeferredMs) < Number.POSITIVE_INFINITY;
    const past =
      isBounded && hasReturned(job)
        ? await this.#deferrals.find(job.queueQualifiedName, job.id!, job.attemptsMade)
        : undefined;
    return new Room(job, this.shared, past);
  }

  /**
   * Defers a job. Always throws what tells BullMQ so.
   *
   * @param noted.before - What `forget` gave, if the job has started and that does not count.
   * @param noted.excused - It is a pause that defers it, which uses up none of its room.
   */
  defer(
    fetched: Fetched<J>,
    delayMs: number,
    noted: { before?: Deferral | undefined; excused?: boolean } = {},
  ): Promise<never> {
    const { job } = fetched;
    const asked = { job: job.id!, delayMs: Math.ceil(delayMs), attempt: job.attemptsMade };
    const deferral = { ...asked, fresh: !hasReturned(job), ...noted };
    // Sent first, as the job may be back soon, in another process; not waited for, since no token hangs on it.
    void this.#deferrals.note(job.queueQualifiedName, deferral).catch(this.shared.report);
    return this.deferUnrecorded(fetched, delayMs);
  }

  /** The same, when the store that would keep the record does not answer. */
  async deferUnrecorded({ job, token }: Fetched<J>, delayMs: number): Promise<never> {
    this.shared.counters.deferrals += 1;
    await job.moveToDelayed(Math.ceil(this.shared.govern.governor.clock.wallMs() + delayMs), token);
    throw new DelayedError();
  }

  /**
   * Defers a job that ran, and was throttled by the downstream; resolves if it is dropped.
   *
   * @param before - What `forget` gave when it started.
   */
  async deferThrottled(fetched: Fetched<J>, delayMs: number, before: Deferral | undefined): Promise<void> {
    const room = new Room(fetched.job, this.shared, before);
    if (delayMs > room.ms && (await room.exceed(null, delayMs)) === 'drop') return;
    return this.defer(fetched, delayMs, { before });
  }

  /** The job starts, or ends without having started. Resolves to what was noted of it; never rejects. */
  async forget(job: J): Promise<Deferral | undefined> {
    if (!hasReturned(job)) return undefined;
    return this.#deferrals.forget(job.queueQualifiedName, job.id!).catch((error: unknown) => {
      this.shared.report(error);
      return undefined;
    });
  }

  /** The jobs of a queue that are deferred. A removed job stays the oldest for ever, so it is forgotten first. */
  async deferredOf(queue: Pick<Queue, 'qualifiedName' | 'getJobState'>): Promise<Deferred> {
    const { qualifiedName } = queue;
    for (let looks = 1; ; looks++) {
      const { count, oldest } = await this.#deferrals.oldest(qualifiedName);
      if (oldest === undefined) return { count: 0, oldestMs: 0 };
      if (looks === MAX_LOOKS || !GONE.includes(await queue.getJobState(oldest.job))) {
        return { count, oldestMs: Math.floor(oldest.ageUs / 1_000) };
      }
      await this.#deferrals.forget(qualifiedName, oldest.job);
    }
  }
}
