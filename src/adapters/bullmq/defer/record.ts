import type { Job } from 'bullmq';
import type { Deferral, Deferrals } from '../../../core/ports/deferrals.ts';

/**
 * Whether the job has come before without having run since: put aside, or put back. BullMQ counts each as a start and none
 * as an attempt.
 */
export function hasReturned(job: Pick<Job, 'attemptsStarted' | 'attemptsMade' | 'stalledCounter'>): boolean {
  return job.attemptsStarted - job.attemptsMade - (job.stalledCounter ?? 0) > 1;
}

/**
 * What the store knows of jobs that are put aside, job by job. A job that was never put aside is not asked about, and a
 * store that fails here fails no job: the record is for limits and figures, and no token hangs on it.
 */
export class DeferralRecord<J extends Job> {
  /** @param failed - Told what the store did not answer, and why. */
  constructor(
    private readonly deferrals: Deferrals,
    private readonly failed: (error: unknown) => void,
  ) {}

  /** @throws what the store throws: the job can't be judged without it. */
  async find(job: J): Promise<Deferral | undefined> {
    if (!hasReturned(job)) return undefined;
    return this.deferrals.find(job.queueQualifiedName, job.id!, job.attemptsMade);
  }

  /**
   * The job is put aside. To be called before BullMQ is told, as the job may be back soon, in another process. Never
   * rejects.
   *
   * @param options.before - What `forget` gave, if the job has started and that does not count.
   * @param options.excused - It is a pause that puts it aside, which uses up none of what the job may be.
   */
  async note(
    job: J,
    delayMs: number,
    { before, excused = false }: { before?: Deferral | undefined; excused?: boolean } = {},
  ): Promise<void> {
    const { id, attemptsMade: attempt } = job;
    try {
      const fresh = !hasReturned(job);
      const deferral = { job: id!, delayMs: Math.ceil(delayMs), attempt, fresh, before, excused };
      await this.deferrals.note(job.queueQualifiedName, deferral);
    } catch (error) {
      this.failed(error);
    }
  }

  /** The job starts, or ends without having started. Resolves to what was noted of it; never rejects. */
  async forget(job: J): Promise<Deferral | undefined> {
    if (!hasReturned(job)) return undefined;
    try {
      return await this.deferrals.forget(job.queueQualifiedName, job.id!);
    } catch (error) {
      this.failed(error);
      return undefined;
    }
  }
}
