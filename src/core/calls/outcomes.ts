import type { Grant } from '../answers.ts';
import { handled } from '../checks.ts';
import type { Clock } from '../clock.ts';
import { type Cost, type Keys, keyedDemandsOf } from '../decide/demands.ts';
import { type FeedbackOptions, parseFeedback } from '../downstream/feedback.ts';
import { Reports } from '../downstream/reports.ts';
import { isThrottled, pauseOf, type Throttled } from '../downstream/throttled.ts';
import { InvalidOptionError, isInvalidOptionError } from '../errors.ts';
import type { Store } from '../ports/store.ts';
import { ReservationHandle } from './grant.ts';
import { toUs } from './options.ts';

export type Work<T> = (grant: Grant) => Promise<T> | T;

/** Work that is run under a grant. */
export interface Running<T> {
  readonly grant: ReservationHandle;
  readonly keys: Keys | undefined;
  readonly work: Work<T>;
  /** What it has cost after all; undefined: what was taken. */
  readonly settle: ((result: T) => Cost) | undefined;
  /** Told of what must not fail the work: a cost that is not valid, a store that does not answer. */
  readonly report: (error: unknown) => void;
}

/** How work ended that did not fail. */
export type Ended<T> =
  | { readonly result: T }
  | {
      /** What it threw, since the downstream answered "too many requests". */
      readonly throttled: Throttled;
      /** How long the downstream asks for, in milliseconds; 0: it does not say. */
      readonly pauseMs: number;
      /** Whether the store keeps that pause. */
      readonly isPaused: boolean;
    };

// A downstream that told many callers to come back at one time must not be met by all of them then.
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

  /**
   * Runs work from its start to its end: tells what became of it, corrects its cost, gives its slots back. Work that is done is
   * not lost: what goes wrong in settling it is reported, and the estimate stays charged.
   *
   * @throws what the work throws, unless that is `Throttled`.
   */
  async run<T>({ grant, keys, work, settle, report }: Running<T>): Promise<Ended<T>> {
    const startedMs = this.clock.monoMs();
    const tell = (failed: boolean, throttled: boolean) => {
      const latencyMs = this.clock.monoMs() - startedMs;
      if (grant.isWatched)
        this.#reports.add(keys, { grantedUs: grant.grantedUs, latencyMs, failed, throttled });
    };
    try {
      const result = await work(grant);
      tell(false, false);
      try {
        if (settle !== undefined) await grant.settle(handled(settle(result)));
      } catch (error) {
        report(error);
      }
      return { result };
    } catch (error) {
      const throttled = isThrottled(error);
      tell(!throttled, throttled);
      if (!throttled) throw error;
      return { throttled: error, ...(await this.#throttled(error, report)) };
    } finally {
      await grant.release();
    }
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
   * Work was throttled: pauses the keys that it names, or the governor. Never rejects.
   *
   * @param report - Told why a pause was not kept as it was asked for.
   */
  async #throttled(
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
