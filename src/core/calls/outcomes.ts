import type { Clock } from '../clock.ts';
import { type Keys, keyedDemandsOf } from '../decide/demands.ts';
import { type FeedbackOptions, parseFeedback } from '../downstream/feedback.ts';
import { type Outcome, Reports } from '../downstream/reports.ts';
import { pauseOf, type Throttled } from '../downstream/throttled.ts';
import { InvalidOptionError, isInvalidOptionError } from '../errors.ts';
import type { Store } from '../ports/store.ts';
import { ReservationHandle } from './grant.ts';
import { toUs } from './options.ts';

/** What became of a grant's work. */
export type WorkOutcome = Pick<Outcome, 'latencyMs'> & Partial<Pick<Outcome, 'failed' | 'throttled'>>;

// Somebody whom many were told to come back to at the same time is not to be met by all of them at that time.
const JITTER_SHARE = 0.1;
const MAX_JITTER_MS = 30_000;

/** What becomes of calls, as the downstream has it: adaptive limits are told, and what asks for a pause gets one. */
export class Outcomes {
  readonly #reports: Reports;

  /** @param random - A number from 0 to 1, for jitter. */
  constructor(
    private readonly store: Pick<Store, 'limits' | 'pause' | 'report'>,
    private readonly clock: Clock,
    private readonly random: () => number,
  ) {
    this.#reports = new Reports(store, clock);
  }

  /** Of work whose grant no adaptive limit watches, nobody is told. */
  tell(
    grant: ReservationHandle,
    keys: Keys | undefined,
    { latencyMs, failed = false, throttled = false }: WorkOutcome,
  ): void {
    if (!grant.isWatched) return;
    this.#reports.add(keys, { grantedUs: grant.grantedUs, latencyMs, failed, throttled });
  }

  /** @throws {@link InvalidOptionError} for options that are not valid; and as the store. */
  async feedback(options: FeedbackOptions): Promise<void> {
    const feedback = parseFeedback(options, this.clock.wallMs());
    const { throttled, failed, latencyMs, pauseMs, keys, grant } = feedback;
    // Here, since a report is sent later, when nobody hears that its keys are not valid.
    if (keys !== undefined) keyedDemandsOf(await this.store.limits(), keys);
    const grantedUs = grant === undefined ? Number.MAX_SAFE_INTEGER : grantedUsOf(grant);
    if (throttled || failed || latencyMs !== undefined) {
      this.#reports.add(keys, { grantedUs, latencyMs: latencyMs ?? 0, failed, throttled });
    }
    if (pauseMs > 0) await this.#pauseFor(pauseMs, keys);
  }

  /**
   * Work was throttled: pauses whom it asks for. Never rejects.
   *
   * @param report - Told why a pause was not kept as it was asked for.
   */
  async throttled(
    error: Throttled,
    report: (error: unknown) => void,
  ): Promise<{ readonly pauseMs: number; readonly isPaused: boolean }> {
    const pauseMs = pauseOf(error, this.clock.wallMs());
    const pause = (keys: Keys | undefined): Promise<boolean> =>
      this.#pauseFor(pauseMs, keys).then(
        () => true,
        (refused: unknown) => {
          report(refused);
          // Invalid keys must not turn a pause into no pause: pause the whole governor.
          return keys !== undefined && isInvalidOptionError(refused) && pause(undefined);
        },
      );
    return { pauseMs, isPaused: pauseMs > 0 && (await pause(error.keys)) };
  }

  close(): void {
    this.#reports.close();
  }

  async #pauseFor(ms: number, keys: Keys | undefined): Promise<void> {
    const jitterMs = Math.min(ms * JITTER_SHARE, MAX_JITTER_MS) * this.random();
    await this.store.pause(keys, toUs(ms + jitterMs));
  }
}

function grantedUsOf(grant: unknown): number {
  if (grant instanceof ReservationHandle) return grant.grantedUs;
  throw new InvalidOptionError('grant', 'a grant of this governor', grant);
}
