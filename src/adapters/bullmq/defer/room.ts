import type { EventEmitter } from 'node:events';
import type { Refusal } from '../../../core/answers.ts';
import type { Deferral } from '../../../core/calls/desk.ts';
import { oneOf } from '../../../core/checks.ts';
import { DeferralLimitError } from '../../../core/errors.ts';
import { DEFERRAL_ENDS, type DeferralEnd, type DeferralLimit, type Govern } from '../options.ts';
import { asError, unrecoverable } from '../queue/job-errors.ts';
import type { Counters } from '../state.ts';

/** What the rooms of one worker's jobs share. */
export interface RoomParts<J> {
  readonly govern: Govern<J>;
  readonly counters: Counters;
  /** Who is told of jobs that meet a limit: the worker, once there is one. */
  readonly events: () => EventEmitter | undefined;
}

/** How often and for how long one job may still be deferred (`maxDeferrals`, `maxDeferredMs`), and what becomes of it then. */
export class Room<J> {
  readonly #count: number;
  /** When the job was first deferred, on this process's monotonic clock; undefined: never. */
  readonly #sinceMs: number | undefined;
  #pardoned = false;

  /** @param past - How it was deferred before; undefined: it was not. */
  constructor(
    private readonly job: J,
    private readonly parts: RoomParts<J>,
    past: Deferral | undefined,
  ) {
    this.#count = past?.count ?? 0;
    this.#sinceMs = past && this.#monoMs - past.ageUs / 1_000;
  }

  /** For how long the job may be deferred now; below 0: not at all. */
  get ms(): number {
    const { maxDeferrals, maxDeferredMs } = this.parts.govern;
    if (this.#pardoned) return Number.POSITIVE_INFINITY;
    return this.#count >= maxDeferrals ? -1 : maxDeferredMs - this.#deferredMs;
  }

  /**
   * The job would be deferred beyond its room. From `'delay'` on it has room without bounds. Throws if it fails: for good, since
   * it has not run, and a retry would only be the next to wait.
   *
   * @param refusal - Why it would be deferred; null: the downstream throttled it.
   */
  async exceed(refusal: Refusal | null, delayMs: number): Promise<Exclude<DeferralEnd, 'fail'>> {
    const { counters } = this.parts;
    const events = this.parts.events();
    const limit = { count: this.#count, deferredMs: this.#deferredMs, refusal };
    const end = await this.#endFor(limit);
    counters.deferralLimited += 1;
    try {
      events?.emit('deferralLimited', this.job, { ...limit, end });
    } catch (error) {
      events?.emit('error', asError(error)); // the listener's, and not the job's
    }
    if (end === 'fail') {
      counters.failed += 1;
      throw unrecoverable(new DeferralLimitError(limit.count, limit.deferredMs, Math.ceil(delayMs)));
    }
    if (end === 'drop') counters.dropped += 1;
    this.#pardoned = end === 'delay';
    return end;
  }

  /** @throws InvalidOptionError if a function of the user's answers nonsense. */
  async #endFor(limit: DeferralLimit): Promise<DeferralEnd> {
    const { onDeferralLimit } = this.parts.govern;
    if (typeof onDeferralLimit !== 'function') return onDeferralLimit;
    return oneOf(
      'what govern.onDeferralLimit returns',
      await onDeferralLimit(this.job, limit),
      DEFERRAL_ENDS,
    );
  }

  get #monoMs(): number {
    return this.parts.govern.governor.clock.monoMs();
  }

  get #deferredMs(): number {
    return this.#sinceMs === undefined ? 0 : Math.max(0, this.#monoMs - this.#sinceMs);
  }
}
