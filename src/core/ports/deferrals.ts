/** What is known of a job that is deferred. Times in whole microseconds of the store's clock. */
export interface Deferral {
  /** How often it was deferred; without those that are excused. */
  readonly count: number;
  /** When it first was; later by as much as was excused since. */
  readonly firstUs: number;
  /** How long ago that is. */
  readonly ageUs: number;
}

/** One deferral, as it is noted. */
export interface NewDeferral {
  readonly job: string;
  /** From now until its turn, as the queue is told: whole milliseconds. */
  readonly delayMs: number;
  /** Attempts that the job has made. What was noted under another number is of a job that has run since. */
  readonly attempt: number;
  /** The job was never deferred before: what is noted under its id is of another job, which is gone. */
  readonly fresh: boolean;
  /** What was forgotten when it started, if that start does not count. */
  readonly before?: Pick<Deferral, 'count' | 'firstUs'> | undefined;
  /** It is not the job's doing, but a pause's: it is not counted, nor is the time until its turn. */
  readonly excused?: boolean;
}

/** A job that is deferred, as it is found again: by its delay then, and the attempts that it had made. */
export interface DeferredJob extends Pick<NewDeferral, 'job' | 'delayMs' | 'attempt'> {
  readonly turnUs: number;
}

/** A new turn for a job that is deferred, from now on. */
export type Move = Pick<NewDeferral, 'job' | 'delayMs'>;

/** How long an entry is kept after its turn. A job that is not back by then was removed. */
export const KEPT_US = 86_400_000_000;

/**
 * The jobs that are deferred now, queue by queue: part of the {@link Store} port, with the same clock and the same
 * errors. No decision reads it. A job enters it with its first deferral and leaves it when it starts, so that it costs
 * nothing where nothing is deferred. test/store/contract/deferrals.ts is the suite that every store passes.
 */
export interface Deferrals {
  /** A job is deferred, once more or for the first time. Drops a few entries whose jobs never came back. */
  note(queue: string, deferral: NewDeferral): Promise<Deferral>;
  /** What is noted of a job that has made so many attempts. */
  find(queue: string, job: string, attempt: number): Promise<Deferral | undefined>;
  /** The job is not deferred any more; what was noted of it. */
  forget(queue: string, job: string): Promise<Deferral | undefined>;
  /** How many are deferred, and the one that has been for longest. */
  oldest(
    queue: string,
  ): Promise<{ readonly count: number; readonly oldest?: { job: string; ageUs: number } }>;
  /**
   * Those with turns after `afterUs`, in order of their turns: `count` of them, and those that share the turn of the last.
   * So the last turn of one page is where the next begins.
   */
  list(queue: string, afterUs: number, count: number): Promise<DeferredJob[]>;
  /** Gives jobs new turns; those that are not deferred any more are left out. */
  move(queue: string, moves: readonly Move[]): Promise<void>;
  /**
   * Claims the re-timing of a queue after a change of the limits.
   *
   * @param version - Of the limits.
   * @param forMs - How long the claim holds.
   * @param again - It is the caller's already, and is prolonged.
   * @returns false if another has claimed it, or a later version.
   */
  claim(queue: string, version: number, forMs: number, again: boolean): Promise<boolean>;
}
