import { UnrecoverableError } from 'bullmq';
import type { Refusal } from '../../../core/answers.ts';
import type { Deferral } from '../../../core/calls/desk.ts';
import { DeferralLimitError } from '../../../core/errors.ts';
import { DEFERRAL_ENDS, type DeferralEnd, said } from '../options.ts';
import type { Shared } from '../state.ts';

/** How often and for how long one job may still be deferred (`maxDeferrals`, `maxDeferredMs`), and what becomes of it then. */
export class Room<J> {
  readonly #count: number;
  /** When the job was first deferred, on this process's monotonic clock; undefined: never. */
  readonly #sinceMs: number | undefined;
  #pardoned = false;

  /** @param past - How it was deferred before; undefined: it was not. */
  constructor(
    private readonly job: J,
    private readonly shared: Shared<J>,
    past: Deferral | undefined,
  ) {
    this.#count = past?.count ?? 0;
    this.#sinceMs = past && this.#monoMs - past.ageUs / 1_000;
  }

  /** For how long the job may be deferred now; below 0: not at all. */
  get ms(): number {
    const { maxDeferrals, maxDeferredMs } = this.shared.govern;
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
    const { counters, attached, report } = this.shared;
    const { onDeferralLimit } = this.shared.govern;
    const limit = { count: this.#count, deferredMs: this.#deferredMs, refusal };
    const end = await said('onDeferralLimit', onDeferralLimit, DEFERRAL_ENDS, this.job, limit);
    counters.deferralLimited += 1;
    try {
      (attached?.worker as NodeJS.EventEmitter | undefined)?.emit('deferralLimited', this.job, {
        ...limit,
        end,
      });
    } catch (error) {
      report(error); // the listener's, and not the job's
    }
    if (end === 'fail') {
      counters.failed += 1;
      throw unrecoverable(new DeferralLimitError(limit.count, limit.deferredMs, Math.ceil(delayMs)));
    }
    if (end === 'drop') counters.dropped += 1;
    this.#pardoned = end === 'delay';
    return end;
  }

  get #monoMs(): number {
    return this.shared.govern.governor.clock.monoMs();
  }

  get #deferredMs(): number {
    return this.#sinceMs === undefined ? 0 : Math.max(0, this.#monoMs - this.#sinceMs);
  }
}

/** For what no retry can help, so that no attempt is spent on one. */
export function unrecoverable(cause: Error): Error {
  return Object.assign(new UnrecoverableError(cause.message), { cause });
}
