import type { Refusal } from '../answers.ts';
import { RECALL_US } from '../buckets/constants.ts';
import type { Cost, Keys } from '../decide/demands.ts';
import type { ReservationHandle } from './grant.ts';
import type { AskOptions, Priority } from './options.ts';
import type { Reserving } from './reserve.ts';
import type { Place } from './slot-queue.ts';
import { RECALLED, Waiters } from './waiters.ts';

/** A pause may be ended early, and the message that says so may be lost: a call that waits for its end looks again after this long. */
const PAUSED_LOOK_MS = 4_000;

/** What is asked for. */
export interface Asked {
  readonly cost: Cost;
  readonly keys: Keys | undefined;
  readonly priority?: Priority | undefined;
  /** Default: a new holder. */
  readonly holder?: string | undefined;
  readonly signal?: AbortSignal | undefined;
  /** It was given a turn before, and comes back from it. Default false. */
  readonly returning?: boolean;
}

/** On which terms it asks now. */
export type AskTerms = Omit<AskOptions, 'keys' | 'priority' | 'holder' | 'returning' | 'queue'>;

/** Attempts that wait in this process, and end together. */
export class Attempts {
  readonly waiters: Waiters;
  readonly #stopRecalls: () => void;

  /** @param maxWaiters - The most calls that may wait at a time; counted by `waiters.track`. */
  constructor(
    private readonly reserving: Reserving,
    maxWaiters = Number.POSITIVE_INFINITY,
  ) {
    this.waiters = new Waiters(reserving.parts.clock, maxWaiters);
    this.#stopRecalls = reserving.recalls.on('recalled', () => this.waiters.recall());
  }

  begin(asked: Asked): Attempt {
    return new Attempt(this.reserving, this.waiters, asked);
  }

  /** Ends all waits with `reason`, and those that would begin later. */
  end(reason: unknown): Promise<void> {
    this.#stopRecalls();
    return this.waiters.endAll(reason);
  }
}

/**
 * One attempt to start, from the first question to the start. Its caller asks, and then
 *
 *   granted   holds until the start. If that was missed, it asks again.
 *   refused   sleeps until it may ask again, or gives up: that is for the caller to decide.
 *
 * The attempt keeps the place in the queue for slots, and knows whether it comes back from a turn. It must be ended.
 */
export class Attempt {
  readonly #place: Place;
  /** Whether it was given a turn and comes back from it. */
  returning: boolean;

  constructor(
    private readonly reserving: Reserving,
    private readonly waiters: Waiters,
    private readonly asked: Asked,
  ) {
    this.#place = reserving.slotQueue.enter(asked.holder ?? reserving.nextHolder());
    this.returning = asked.returning ?? false;
  }

  async ask(terms: AskTerms): Promise<ReservationHandle | Refusal> {
    const { cost, keys, priority } = this.asked;
    const asker = { keys, priority, holder: this.#place.holder, returning: this.returning, queue: true };
    this.#place.asks();
    const answer = await this.reserving.reserve(cost, { ...terms, ...asker });
    this.#place.isTaken = !answer.allowed && answer.reason === 'concurrency';
    return answer;
  }

  /**
   * Waits for the start.
   *
   * @returns false if the process came to it too late or it was recalled: the grant is lost, and is to be asked for again.
   * @throws what ended the wait; the grant was handed back.
   */
  async hold(grant: ReservationHandle): Promise<boolean> {
    const { clock, graceMs } = this.reserving.parts;
    const { startsInMs, startsAtMonoMs } = grant;
    const { signal } = this.asked;
    const endWatch = grant.watch();
    try {
      if (startsInMs === 0) this.waiters.check(signal);
      else await this.waiters.sleep(startsAtMonoMs, signal, { recallable: startsInMs > RECALL_US / 1_000 });
      if (clock.monoMs() - startsAtMonoMs <= graceMs && grant.stands()) return true;
    } catch (ended) {
      if (ended !== RECALLED) {
        await grant.cancel().catch(() => false); // lost, never granted twice
        throw ended;
      }
    } finally {
      endWatch();
    }
    await grant.release();
    this.returning = true;
    return false;
  }

  /** Waits until the refused request may be made again: for so long, or until it is woken or recalled. */
  async sleep(refusal: Refusal, ms = refusal.retryAfterMs): Promise<void> {
    this.returning ||= refusal.hasTurn;
    if (this.#place.woken()) return;
    const untilMs = this.reserving.parts.clock.monoMs() + Math.min(ms, lookAgainMs(refusal));
    const isWoken = this.#place.isTaken || refusal.reason === 'paused';
    const how = { recallable: true, ...(isWoken && { onWake: this.#place.onWake }) };
    await this.waiters.sleep(untilMs, this.asked.signal, how).catch((ended) => {
      // A recalled call asks again: that is what the sleep was for.
      if (ended !== RECALLED) throw ended;
    });
  }

  async end(): Promise<void> {
    const { cost, keys } = this.asked;
    const { holder, isTaken } = this.#place;
    this.#place.leave();
    // Those behind it must not wait for a place that nobody will take.
    if (isTaken) await this.reserving.parts.store.leave({ cost, keys, holder }).catch(() => {});
  }
}

/** When to ask again after a refusal, at the latest, in milliseconds. */
export const lookAgainMs = ({ reason, retryAfterMs }: Refusal): number =>
  reason === 'paused' ? Math.min(retryAfterMs, PAUSED_LOOK_MS) : retryAfterMs;
