import { oneOf } from '../../../core/checks.ts';
import type { Clock } from '../../../core/clock.ts';
import type { Deferral } from '../../../core/ports/deferrals.ts';
import { DEFERRAL_ENDS, type DeferralEnd, type DeferralLimit, type Govern } from '../options.ts';

/** How a job was put aside before it came, as far as this process has to know. */
export interface Past {
  readonly count: number;
  /** When it first was, on this process's monotonic clock; undefined: never. */
  readonly sinceMonoMs: number | undefined;
}

/** How often and for how long a job may be put aside, and what then. */
export class DeferralPolicy<J> {
  constructor(
    private readonly govern: Pick<Govern<J>, 'maxDeferrals' | 'maxDeferredMs' | 'onDeferralLimit'>,
    private readonly clock: Pick<Clock, 'monoMs'>,
  ) {}

  /** Whether there is anything to keep to. */
  get bounded(): boolean {
    return (
      this.govern.maxDeferrals < Number.POSITIVE_INFINITY ||
      this.govern.maxDeferredMs < Number.POSITIVE_INFINITY
    );
  }

  pastOf(deferral: Deferral | undefined): Past {
    if (deferral === undefined) return { count: 0, sinceMonoMs: undefined };
    return { count: deferral.count, sinceMonoMs: this.clock.monoMs() - deferral.ageUs / 1_000 };
  }

  /** How long the job may be put aside now; below 0: not at all. */
  roomMs(past: Past): number {
    return past.count >= this.govern.maxDeferrals ? -1 : this.govern.maxDeferredMs - this.#deferredMs(past);
  }

  limitOf(past: Past, refusal: DeferralLimit['refusal']): DeferralLimit {
    return { count: past.count, deferredMs: this.#deferredMs(past), refusal };
  }

  /** What the options say of this job. @throws InvalidOptionError if a function of the user's answers nonsense. */
  async endOf(job: J, limit: DeferralLimit): Promise<DeferralEnd> {
    const { onDeferralLimit } = this.govern;
    if (typeof onDeferralLimit !== 'function') return onDeferralLimit;
    return oneOf('what govern.onDeferralLimit returns', await onDeferralLimit(job, limit), DEFERRAL_ENDS);
  }

  #deferredMs({ sinceMonoMs }: Past): number {
    return sinceMonoMs === undefined ? 0 : Math.max(0, this.clock.monoMs() - sinceMonoMs);
  }
}
