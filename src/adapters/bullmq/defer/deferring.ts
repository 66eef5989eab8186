import type { EventEmitter } from 'node:events';
import { DelayedError, type Job } from 'bullmq';
import type { Refusal } from '../../../core/answers.ts';
import { DeferralLimitError } from '../../../core/errors.ts';
import type { Deferral } from '../../../core/ports/deferrals.ts';
import { asError, unrecoverable } from '../job-errors.ts';
import type { DeferralEnd, Govern } from '../options.ts';
import type { Counters } from '../state.ts';
import { DeferralPolicy, type Past } from './policy.ts';
import type { DeferralRecord } from './record.ts';

interface Aside<J> {
  readonly job: J;
  readonly token: string | undefined;
}

/** Puts jobs aside until a time, within what their policy allows, and keeps the record of it. */
export class Deferring<J extends Job> {
  readonly #policy: DeferralPolicy<J>;
  #events: EventEmitter | undefined;

  constructor(
    private readonly govern: Govern<J>,
    private readonly record: DeferralRecord<J>,
    private readonly counters: Counters,
  ) {
    this.#policy = new DeferralPolicy(govern, govern.governor.clock);
  }

  /** From now on there is somebody to tell of jobs that meet a limit. */
  attach(worker: EventEmitter): void {
    this.#events = worker;
  }

  /** How the job was put aside before it came. Asks the store only if that decides anything. */
  async pastOf(job: J): Promise<Past> {
    return this.#policy.pastOf(this.#policy.bounded ? await this.record.find(job) : undefined);
  }

  /** How long the job may be put aside now; below 0: not at all. */
  roomMs(past: Past): number {
    return this.#policy.roomMs(past);
  }

  /**
   * The job would be put aside beyond what its policy allows. Throws if it fails: for good, since it has not run, and a
   * retry would only be the next to wait.
   *
   * @param refusal - Why it would be put aside; null: the downstream throttled it.
   */
  async atLimit(
    job: J,
    past: Past,
    refusal: Refusal | null,
    delayMs: number,
  ): Promise<Exclude<DeferralEnd, 'fail'>> {
    const limit = this.#policy.limitOf(past, refusal);
    const end = await this.#policy.endOf(job, limit);
    this.counters.deferralLimited += 1;
    try {
      this.#events?.emit('deferralLimited', job, { ...limit, end });
    } catch (error) {
      this.#events?.emit('error', asError(error)); // the listener's, and not the job's
    }
    if (end === 'delay') return end;
    this.counters[end === 'drop' ? 'dropped' : 'failed'] += 1;
    if (end === 'drop') return end;
    throw unrecoverable(new DeferralLimitError(limit.count, limit.deferredMs, Math.ceil(delayMs)));
  }

  /**
   * Puts aside a job that ran, and was throttled by the downstream; resolves if it is dropped.
   *
   * @param before - What was noted of it before it started.
   */
  async deferThrottled(aside: Aside<J>, delayMs: number, before: Deferral | undefined): Promise<void> {
    const past = this.#policy.pastOf(before);
    if (delayMs > this.#policy.roomMs(past)) {
      if ((await this.atLimit(aside.job, past, null, delayMs)) === 'drop') return;
    }
    return this.defer(aside, delayMs, { before });
  }

  /** Puts the job aside for a time. Always throws what tells BullMQ so. */
  defer(
    aside: Aside<J>,
    delayMs: number,
    noted: { before?: Deferral | undefined; excused?: boolean } = {},
  ): Promise<never> {
    // Sent first, so that it is there before the job can be back; not waited for, since no token hangs on it.
    void this.record.note(aside.job, delayMs, noted);
    return this.#move(aside, delayMs);
  }

  /** The same, when the store that would keep the record does not answer. */
  deferUnrecorded(aside: Aside<J>, delayMs: number): Promise<never> {
    return this.#move(aside, delayMs);
  }

  async #move({ job, token }: Aside<J>, delayMs: number): Promise<never> {
    this.counters.deferrals += 1;
    await job.moveToDelayed(Math.ceil(this.govern.governor.clock.wallMs() + delayMs), token);
    throw new DelayedError();
  }
}
