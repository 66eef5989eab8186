import type { Decision, Grant, LimitState, Refusal, Reservation } from './answers.ts';
import { Attempts } from './calls/attempt.ts';
import { openDesk } from './calls/desk.ts';
import type { ReservationHandle } from './calls/grant.ts';
import {
  checkNames,
  REQUEST_NAMES,
  RESERVE_NAMES,
  type RequestOptions,
  type ReserveOptions,
  RUN_NAMES,
  type RunOptions,
  type WaitOptions,
} from './calls/options.ts';
import { Outcomes, type Work } from './calls/outcomes.ts';
import { limitStates, type PeekOptions } from './calls/peek.ts';
import { Reserving, type ReservingParts } from './calls/reserve.ts';
import * as steering from './calls/steer.ts';
import { waitN } from './calls/wait.ts';
import { oneOf } from './checks.ts';
import type { Clock } from './clock.ts';
import type { Cost } from './decide/demands.ts';
import type { FeedbackOptions } from './downstream/feedback.ts';
import {
  GovernorClosedError,
  InvalidOptionError,
  isGovernorClosedError,
  isStoreUnavailableError,
} from './errors.ts';
import type { Limits } from './limits/limit.ts';
import type { GovernorEvents } from './ports/events.ts';
import type { Store } from './ports/store.ts';

/** What a governor is made of; `createGovernor` joins them. */
export interface GovernorParts extends Omit<ReservingParts, 'assertOpen'> {
  readonly name: string;
  readonly maxWaiters: number;
  /** A number from 0 to 1, for jitter. */
  readonly random: () => number;
  /** Tells people what went wrong in work that is done, where nobody waits for it any more. */
  readonly warn: (message: string) => void;
}

/**
 * The control point of one downstream: all code that calls it asks here first. Made by `createGovernor`.
 *
 * Most callers want `run`: it waits, runs the work and gives back what it holds. `allow` never waits, `wait` does, `reserve` says
 * when. With a concurrency limit, release what these three give you. `peek` only looks.
 */
export class Governor {
  readonly name: string;
  /** Time as this governor sees it; adapters wait by it, so that a test's fake clock governs them too. */
  readonly clock: Clock;
  /** A holder that wakes more than this after its start has lost its reservation; milliseconds. */
  readonly graceMs: number;
  readonly #parts: GovernorParts;
  readonly #reserving: Reserving;
  readonly #attempts: Attempts;
  readonly #outcomes: Outcomes;
  #closed: Promise<void> | undefined;

  /** @internal */
  constructor(parts: GovernorParts) {
    const { name, store, clock, graceMs } = parts;
    this.name = name;
    this.clock = clock;
    this.graceMs = graceMs;
    this.#parts = parts;
    this.#outcomes = new Outcomes(store, clock, parts.random);
    this.#reserving = new Reserving({ ...parts, assertOpen: () => this.#assertOpen() });
    this.#attempts = new Attempts(this.#reserving, parts.maxWaiters);
    openDesk(this, this.#reserving, this.#outcomes);
  }

  /** Calls of this process that wait at this moment. */
  get waiting(): number {
    return this.#attempts.waiters.count;
  }

  /** {@link allowN} with cost 1. */
  allow(options?: RequestOptions): Promise<Decision> {
    return this.allowN(1, options);
  }

  /**
   * Takes `cost` tokens if they are there at this moment; never waits.
   *
   * If allowed, the tokens are spent, whatever becomes of the job. If not, none are, from any limit. Decided on the
   * store's clock, all limits of the request together.
   *
   * @param cost - Tokens to take: a whole number from 1 to the smallest burst among the limits, or one per limit.
   * @param options.keys - Values for the limits declared with `by`.
   * @returns `{ allowed: true }`, or the limit that refused and when to come back.
   *
   * @throws {@link InvalidOptionError} `FLYBALL_INVALID_OPTION`: the cost or a key is not valid. Fix the call.
   * @throws {@link CostExceedsBurstError} `FLYBALL_COST_EXCEEDS_BURST`: can never pass. Split the job or raise the burst.
   * @throws {@link StoreUnavailableError} `FLYBALL_STORE_UNAVAILABLE`: nothing was decided.
   * @throws {@link GovernorClosedError} `FLYBALL_GOVERNOR_CLOSED`.
   *
   * @example
   * const decision = await governor.allowN(5, { keys: { shop: 'acme' } });
   * if (!decision.allowed) console.log(`come back in ${decision.retryAfterMs} ms`);
   *
   * @see AllowN in golang.org/x/time/rate; unlike it, a refusal says when to come back.
   */
  async allowN(cost: Cost, options: RequestOptions = {}): Promise<Decision> {
    checkNames(options, REQUEST_NAMES);
    return this.#reserving.reserve(cost, { ...options, maxWaitMs: 0 });
  }

  /** {@link reserveN} with cost 1. */
  reserve(options?: ReserveOptions): Promise<Reservation | Refusal> {
    return this.reserveN(1, options);
  }

  /**
   * Takes `cost` tokens now, to be used from `startsInMs` on.
   *
   * A request reserves only while no limit in it is wider than the one that makes it wait: where a key makes it wait and
   * a governor-wide limit is in the request, it is refused, since the reservation would idle all other keys.
   *
   * @param cost - As for {@link allowN}.
   * @param options.maxWaitMs - Longest time until the start, in milliseconds. Default `Infinity`.
   * @returns the reservation, or a refusal under which nothing was taken.
   * @throws As {@link allowN}.
   *
   * @example
   * const reservation = await governor.reserveN(2, { maxWaitMs: 5_000 });
   * if (reservation.allowed) setTimeout(send, reservation.startsInMs);
   *
   * @see ReserveN in golang.org/x/time/rate. Its rule for refunds is looser and breaks the bound; see `cancel`.
   */
  async reserveN(cost: Cost, options: ReserveOptions = {}): Promise<Reservation | Refusal> {
    checkNames(options, RESERVE_NAMES);
    return this.#reserving.reserve(cost, options);
  }

  /** {@link waitN} with cost 1. */
  wait(options?: WaitOptions): Promise<Grant> {
    return this.waitN(1, options);
  }

  /**
   * Takes `cost` tokens, waiting until they are there.
   *
   * Once this resolves the tokens are spent, whatever becomes of the job. If it rejects, it has none: a wait that is
   * aborted or too long hands its reservation back where that is exact (nothing was granted since), and else the tokens
   * are lost, never granted twice. Waits are measured on the store's clock, so workers whose clocks
   * disagree still agree on the rate. A process that was blocked and wakes more than `graceMs` after its start asks
   * again, so that held work never comes out as a burst.
   *
   * @param cost - As for {@link allowN}.
   * @param options.keys - Values for the limits declared with `by`.
   * @param options.maxWaitMs - Longest wait in milliseconds; 0 never waits. Default `Infinity`.
   * @param options.signal - Ends the wait early.
   * @returns the grant; `waitedMs` is 0 if the tokens were there.
   *
   * @throws As {@link allowN}, and {@link WaitTooLongError} `FLYBALL_WAIT_TOO_LONG`: carries `retryAfterMs`. Come back then.
   * @throws {@link TooManyWaitersError} `FLYBALL_TOO_MANY_WAITERS`: `maxWaiters` calls wait in this process already.
   * @throws `signal.reason` when `signal` aborts.
   *
   * @example
   * const grant = await governor.waitN(3, { keys: { shop: 'acme' }, maxWaitMs: 2_000 });
   *
   * @see WaitN in golang.org/x/time/rate, whose rules these are; unlike it, the reservation lives in the store.
   */
  waitN(cost: Cost, options: WaitOptions = {}): Promise<Grant> {
    return waitN(this.#attempts, this.clock, cost, options);
  }

  /**
   * Waits as {@link waitN} does, then runs `work` and returns its result.
   *
   * The tokens are spent once `work` starts, also if it throws: the call it made reached the downstream. Slots of concurrency
   * limits are renewed while it runs and given back when it ends. Adaptive limits are told how long it took and whether it
   * failed; if it throws a {@link Throttled}, the governor (or its keys) is paused for that long.
   *
   * @param options.cost - Default 1.
   * @param options.settle - Tells from the result what it has cost after all. Work that is done is not lost: if this throws or
   *   gives no valid cost, the result is returned all the same, the estimate stays charged, and the process is warned
   *   (`FlyballWarning`).
   * @throws As {@link waitN}; and whatever `work` throws.
   *
   * @example
   * const reply = await governor.run({ cost: 500, settle: (reply) => reply.usage.tokens }, () => complete(prompt));
   */
  async run<T>(options: RunOptions<T>, work: Work<T>): Promise<T> {
    if (typeof work !== 'function') throw new InvalidOptionError('work', 'a function', work);
    checkNames(options, RUN_NAMES);
    const { cost = 1, settle, ...waitOptions } = options;
    if (settle !== undefined && typeof settle !== 'function') {
      throw new InvalidOptionError('settle', 'a function of the result', settle);
    }
    const grant = await waitN(this.#attempts, this.clock, cost, waitOptions);
    const { keys } = waitOptions;
    const report = (error: unknown) => this.#report(error);
    const ended = await this.#outcomes.run({ grant, keys, work, settle, report });
    if ('throttled' in ended) throw ended.throttled;
    return ended.result;
  }

  /**
   * Tells the governor how the downstream treats calls.
   *
   * What asks for a pause (`retryAfterMs`, Retry-After in both forms, rate-limit headers with nothing left) closes the keys, or
   * the whole governor, in all processes until then; of several the longest wins, and nothing shortens one but
   * {@link resume}. It lasts up to a tenth longer, but at most 30 s, at random. Work resumes from empty buckets. Adaptive limits
   * count the call: only if it was granted after their last cut can it cut them.
   *
   * @throws {@link InvalidOptionError} `FLYBALL_INVALID_OPTION`, {@link StoreUnavailableError} `FLYBALL_STORE_UNAVAILABLE`.
   *
   * @example
   * const reply = await fetch(url);
   * await governor.feedback({ throttled: reply.status === 429, headers: reply.headers, keys: { shop: 'acme' } });
   */
  async feedback(options: FeedbackOptions): Promise<void> {
    this.#assertOpen();
    await this.#outcomes.feedback(options);
  }

  /**
   * Pauses the governor, or one key, in all processes: requests are refused with reason `'paused'`, and those that wait go on
   * waiting. A pause that ends later already stays as it is.
   *
   * Work resumes from empty buckets, in a ramp of a second. What was reserved before asks again if it would start in the pause,
   * in each process that has heard of it.
   *
   * @param options.keys - For example `{ shop: 'acme' }`. Left out: the whole governor.
   * @param options.forMs - For how long, in milliseconds: from 1; what is above ten years counts as that. Left out: until {@link resume}.
   * @throws As {@link feedback}.
   */
  async pause(options?: steering.PauseOptions): Promise<void> {
    await steering.pause(this.#store, options);
  }

  /** Ends a pause before its time: work resumes from empty buckets, in a ramp of a second. @throws As {@link feedback}. */
  async resume(options?: steering.ResumeOptions): Promise<void> {
    await steering.resume(this.#store, options);
  }

  /**
   * Takes as many whole tokens as there are at this moment, from 0 to `most`; a fraction of a token stays where it is.
   *
   * @param most - A whole number from 1.
   * @returns how many were taken: from each limit of the request as many.
   * @throws As {@link allowN}. Not for a governor with a concurrency limit: there would be no grant to release.
   */
  allowAtMost(most: number, options: RequestOptions = {}): Promise<number> {
    return this.#reserving.atMost(most, options);
  }

  /**
   * Takes `cost` tokens whatever the limits hold: for an operator who lets one job pass by hand.
   *
   * This loosens the guarantee: granted cost ≤ burst + rate × W + what was forced within W. The tokens become debt,
   * for which the next requests wait.
   *
   * @throws As {@link allowN}; {@link InvalidOptionError} `FLYBALL_INVALID_OPTION` also if the limits would then owe more than can be
   *   kept exactly.
   */
  forceN(cost: Cost, options: RequestOptions = {}): Promise<ReservationHandle> {
    return this.#reserving.force(cost, options);
  }

  /**
   * Looks at the limits a request would meet; takes nothing, and no place in a line.
   *
   * @param options.cost - The cost asked about. Default 1.
   * @throws As {@link allowN}.
   */
  async peek(options: PeekOptions = {}): Promise<LimitState[]> {
    return limitStates(this.#store, options);
  }

  /** The limits in force, in exact numbers. They are the store's: a newer process may have brought others. */
  async limits(): Promise<Limits> {
    return this.#store.limits();
  }

  /**
   * Sets limits while the governor runs, for all processes that share it: they win over the limits in code until
   * {@link reset}, also after a restart. What was used stays used, in tokens. Takes effect with the next decision everywhere.
   *
   * @param change.limits - As for `createGovernor`; those that are left out stay as they are.
   * @param options.who - Who makes the change, for the history.
   * @returns the configuration in force afterwards.
   *
   * @throws {@link InvalidOptionError} `FLYBALL_INVALID_OPTION`: nothing was changed.
   * @throws {@link StoreUnavailableError} `FLYBALL_STORE_UNAVAILABLE`: it may have been changed; look with {@link configuration}.
   *
   * @example
   * await governor.configure({ limits: { calls: perSecond(50, { burst: 10 }) } }, { who: 'anna' });
   */
  async configure(change: steering.ConfigureOptions, options?: steering.SteeringOptions) {
    return steering.configure(this.#store, this.#parts.instance, change, options);
  }

  /** Removes all that {@link configure} set: the limits in code are in force again. @throws As {@link configure}. */
  async reset(options?: steering.SteeringOptions) {
    return steering.reset(this.#store, this.#parts.instance, options);
  }

  /** The limits in force, which of them an operator set, and the last changes: who, when and what. @throws As {@link allowN}. */
  async configuration() {
    return steering.configuration(this.#store);
  }

  /**
   * Listens to what happens to this governor, whichever process does it. With Redis the first listener opens a second
   * connection. An error that a listener throws ends in the process's `uncaughtException`, never in a decision.
   *
   * @returns a function that removes the listener.
   */
  on<Name extends keyof GovernorEvents>(
    event: Name,
    listener: (value: GovernorEvents[Name]) => void,
  ): () => void {
    this.#assertOpen();
    oneOf('event', event, ['configured', 'paused', 'resumed']);
    if (typeof listener !== 'function') throw new InvalidOptionError('listener', 'a function', listener);
    this.#reserving.listen();
    return this.#reserving.events.on(event, listener);
  }

  /**
   * Ends all waits with a {@link GovernorClosedError}, hands their reservations back and closes the store's own
   * connection (never one that the caller gave). Slots of work that still runs are kept no longer, and lapse after their
   * lease. Idempotent; resolves when all of it is done.
   */
  close(): Promise<void> {
    this.#closed ??= (async () => {
      await this.#attempts.end(new GovernorClosedError(this.name));
      this.#reserving.close();
      this.#outcomes.close();
      await this.#parts.store.close();
    })();
    return this.#closed;
  }

  // A store that is away says so to the next call; a mistake would stay unseen.
  #report(error: unknown): void {
    if (isStoreUnavailableError(error) || isGovernorClosedError(error)) return;
    this.#parts.warn(`governor "${this.name}": ${error instanceof Error ? error.message : String(error)}`);
  }

  /** @throws {@link GovernorClosedError} */
  get #store(): Store {
    this.#assertOpen();
    return this.#parts.store;
  }

  #assertOpen(): void {
    if (this.#closed !== undefined) throw new GovernorClosedError(this.name);
  }
}
