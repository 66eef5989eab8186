import type { Clock } from './clock.ts';
import type { Terms, Verdict } from './decide.ts';
import type { Decision, Grant, LimitState, Refusal, Reservation } from './decision.ts';
import { GovernorClosedError, InvalidOptionError, WaitTooLongError } from './errors.ts';
import type { Limits } from './limit.ts';
import { durationMs, knownNames, oneOf, plainObject } from './options.ts';
import type { Cost, Keys } from './request.ts';
import type { Store } from './store.ts';
import { StoreClock } from './store-clock.ts';
import { Waiters } from './waiters.ts';

/** Options of one request. */
export interface RequestOptions {
  /** Values for the limits declared with `by`, for example `{ shop: 'acme' }`. */
  keys?: Keys;
}

export interface ReserveOptions extends RequestOptions {
  /** Longest time until the start, in milliseconds; 0: now or not at all. Default `Infinity`. */
  maxWaitMs?: number;
  /**
   * Which refusals give a place in the line. `'none'` (default): none. `'keyed'`: those of limits with `by`. `'all'`:
   * governor-wide limits too.
   */
  slots?: 'none' | 'keyed' | 'all';
  /** Longest time until a slot, in milliseconds. Default `Infinity`. */
  maxSlotMs?: number;
  /** This request was given a slot before and comes back from it. Default false. */
  returning?: boolean;
  /** A returning request that must wait no longer than this keeps its place; milliseconds, default 1,000. */
  patienceMs?: number;
}

export interface WaitOptions extends RequestOptions {
  /** Longest wait in milliseconds; 0 never waits. Default `Infinity`. */
  maxWaitMs?: number;
  /** Ends the wait early; the call rejects with the signal's reason. */
  signal?: AbortSignal;
}

/** What a governor is made of; `createGovernor` joins them. */
export interface GovernorParts {
  readonly name: string;
  readonly store: Store;
  readonly clock: Clock;
  readonly maxWaiters: number;
  readonly graceMs: number;
}

const DEFAULT_PATIENCE_MS = 1_000;
const FOREVER = Number.POSITIVE_INFINITY;

const REQUEST_NAMES = ['keys'];
const RESERVE_NAMES = [...REQUEST_NAMES, 'maxWaitMs', 'slots', 'maxSlotMs', 'returning', 'patienceMs'];
const WAIT_NAMES = [...REQUEST_NAMES, 'maxWaitMs', 'signal'];

/** The control point of one downstream: all who act on it ask here first. Made by `createGovernor`. */
export class Governor {
  readonly name: string;
  /** Time as this governor sees it; adapters wait by it, so that a test's fake clock governs them too. */
  readonly clock: Clock;
  /** A holder that wakes more than this after its start has lost its reservation; milliseconds. */
  readonly graceMs: number;
  readonly #store: Store;
  readonly #waiters: Waiters;
  readonly #storeClock: StoreClock;
  #closed: Promise<void> | undefined;

  /** @internal */
  constructor(parts: GovernorParts) {
    this.name = parts.name;
    this.clock = parts.clock;
    this.graceMs = parts.graceMs;
    this.#store = parts.store;
    this.#waiters = new Waiters(parts.clock, parts.maxWaiters);
    this.#storeClock = new StoreClock(parts.graceMs);
  }

  /** Calls of this process that wait at this moment. */
  get waiting(): number {
    return this.#waiters.count;
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
   * @throws {@link InvalidOptionError} `FLYBALL_INVALID_OPTION`: the cost or a key is none. Mend the call.
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
    const decision = await this.#reserve(cost, { ...options, maxWaitMs: 0 });
    return decision.allowed ? { allowed: true } : decision;
  }

  /** {@link reserveN} with cost 1. */
  reserve(options?: ReserveOptions): Promise<Reservation | Refusal> {
    return this.reserveN(1, options);
  }

  /**
   * Takes `cost` tokens now, to be used from `startsInMs` on.
   *
   * A request reserves only while no limit in it is wider than the one that makes it wait: where a key makes it wait and
   * a governor-wide limit is in the request, it is refused, since the reservation would idle all other keys. With
   * `slots` a refusal gives a place in the key's line instead, which charges nothing.
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
    return this.#reserve(cost, options);
  }

  async #reserve(cost: Cost, options: ReserveOptions): Promise<Reservation | Refusal> {
    const { keys, returning = false } = options;
    if (typeof returning !== 'boolean') throw new InvalidOptionError('returning', 'true or false', returning);
    const slots = oneOf('slots', options.slots ?? 'none', ['none', 'keyed', 'all']);
    const maxSlotMs = durationMs('maxSlotMs', options.maxSlotMs ?? FOREVER, 0, FOREVER);
    const askedMs = this.clock.monoMs();
    const verdict = await this.#acquire(cost, keys, {
      maxWaitUs: toUs(durationMs('maxWaitMs', options.maxWaitMs ?? FOREVER, 0, FOREVER)),
      maxSlotUs: slots === 'none' ? 0 : toUs(maxSlotMs),
      slots: slots === 'all' ? 'all' : 'keyed',
      returning,
      patienceUs: toUs(durationMs('patienceMs', options.patienceMs ?? DEFAULT_PATIENCE_MS, 0, FOREVER)),
    });
    if (!verdict.granted) {
      const { limit, reason, waitUs, slotted } = verdict;
      return {
        allowed: false,
        limit: limit.name,
        keyed: limit.by !== null,
        reason,
        retryAfterMs: Math.ceil(waitUs / 1_000),
        slotted,
      };
    }
    const { startUs } = verdict.receipt;
    const repliedMs = this.clock.monoMs();
    const decidedMs = this.#storeClock.localMs(startUs - verdict.waitUs, askedMs, repliedMs);
    if (decidedMs === undefined && options.maxWaitMs !== 0) {
      // Granted, but nobody knows how long ago: as good as missed. The next reply is vouched for by this one.
      await this.#store.cancel(verdict.receipt);
      return this.#reserve(cost, options);
    }
    const startsInMs = verdict.waitUs / 1_000;
    let cancelled: Promise<boolean> | undefined;
    return {
      allowed: true,
      startsInMs,
      startsAtMonoMs: (decidedMs ?? repliedMs) + startsInMs,
      cancel: () => {
        cancelled ??= this.#store.cancel(verdict.receipt);
        return cancelled;
      },
    };
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
  async waitN(cost: Cost, options: WaitOptions = {}): Promise<Grant> {
    checkNames(options, WAIT_NAMES);
    const { keys, signal } = options;
    if (signal !== undefined && !(signal instanceof AbortSignal)) {
      throw new InvalidOptionError('signal', 'an AbortSignal', signal);
    }
    const maxWaitMs = durationMs('maxWaitMs', options.maxWaitMs ?? FOREVER, 0, FOREVER);
    const calledMs = this.clock.monoMs();
    return this.#waiters.track(async () => {
      let returning = false;
      for (let waited = false; ; waited = true) {
        signal?.throwIfAborted();
        const remainingMs = Math.max(0, maxWaitMs - (this.clock.monoMs() - calledMs));
        const decision = await this.#reserve(cost, {
          ...(keys === undefined ? {} : { keys }),
          maxWaitMs: remainingMs,
          slots: 'keyed',
          maxSlotMs: remainingMs,
          returning,
          patienceMs: Math.min(remainingMs, DEFAULT_PATIENCE_MS),
        });
        if (decision.allowed) {
          if (!(await this.#startMet(decision, signal))) {
            returning = true;
            continue;
          }
          const noWait = !waited && decision.startsInMs === 0;
          return { waitedMs: noWait ? 0 : this.clock.monoMs() - calledMs };
        }
        if (decision.retryAfterMs > Math.ceil(remainingMs)) {
          throw new WaitTooLongError(decision.limit, decision.retryAfterMs, maxWaitMs);
        }
        returning ||= decision.slotted;
        await this.#waiters.sleep(this.clock.monoMs() + decision.retryAfterMs, signal);
      }
    });
  }

  /**
   * Waits as {@link waitN} does, then runs `work` and returns its result.
   *
   * The tokens are spent once `work` starts, also if it throws: the call it made reached the downstream.
   *
   * @throws As {@link waitN}; and whatever `work` throws.
   *
   * @example
   * const reply = await governor.run({ cost: 5, maxWaitMs: 2_000 }, () => fetch(url));
   */
  async run<T>(options: WaitOptions & { cost?: Cost }, work: (grant: Grant) => Promise<T> | T): Promise<T> {
    if (typeof work !== 'function') throw new InvalidOptionError('work', 'a function', work);
    const { cost = 1, ...waitOptions } = plainObject('options', options) as typeof options;
    return work(await this.waitN(cost, waitOptions));
  }

  /**
   * Takes `cost` tokens whatever the limits hold: for an operator who lets one job pass by hand.
   *
   * This loosens the guarantee: granted cost ≤ burst + rate × W + what was forced within W. The tokens become debt,
   * which whoever comes after waits for.
   *
   * @throws As {@link allowN}.
   */
  async forceN(cost: Cost, options: RequestOptions = {}): Promise<void> {
    this.#assertOpen();
    checkNames(options, REQUEST_NAMES);
    if (await this.#store.force({ cost, keys: options.keys })) return;
    throw new InvalidOptionError('cost', 'no more than what the limits can owe and still be exact', cost);
  }

  /**
   * Looks at the limits a request would meet; takes nothing, and no place in a line.
   *
   * @param options.cost - The cost asked about. Default 1.
   * @throws As {@link allowN}.
   */
  async peek(options: RequestOptions & { cost?: Cost } = {}): Promise<LimitState[]> {
    this.#assertOpen();
    checkNames(options, [...REQUEST_NAMES, 'cost']);
    const sights = await this.#store.peek({ cost: options.cost ?? 1, keys: options.keys });
    return sights.map(({ leg, sight }) => ({
      limit: leg.limit.name,
      key: leg.limit.by === null ? null : leg.bucket.slice(leg.limit.name.length + 1),
      remaining: sight.remaining,
      burst: leg.limit.burst,
      waitMs: Math.ceil(sight.waitUs / 1_000),
      lineMs: Math.ceil(sight.lineUs / 1_000),
      granted: sight.granted,
      refused: sight.refused,
    }));
  }

  /** The limits in force, in exact numbers. They are the store's: a newer process may have brought others. */
  async limits(): Promise<Limits> {
    this.#assertOpen();
    return this.#store.limits();
  }

  /**
   * Ends all waits with a {@link GovernorClosedError}, hands their reservations back and closes the store's own
   * connection (never one that the caller gave). Idempotent; resolves when all of it is done.
   */
  close(): Promise<void> {
    this.#closed ??= (async () => {
      await this.#waiters.endAll(new GovernorClosedError(this.name));
      await this.#store.close();
    })();
    return this.#closed;
  }

  async #acquire(cost: Cost, keys: Keys | undefined, terms: Terms): Promise<Verdict> {
    this.#assertOpen();
    return this.#store.acquire({ cost, keys }, terms);
  }

  /** Whether the start was met; false if the process came to it too late, and the reservation is lost. */
  async #startMet(reservation: Reservation, signal: AbortSignal | undefined): Promise<boolean> {
    try {
      if (reservation.startsInMs > 0) await this.#waiters.sleep(reservation.startsAtMonoMs, signal);
      return this.clock.monoMs() - reservation.startsAtMonoMs <= this.graceMs;
    } catch (ended) {
      await reservation.cancel().catch(() => false);
      throw ended;
    }
  }

  #assertOpen(): void {
    if (this.#closed !== undefined) throw new GovernorClosedError(this.name);
  }
}

// On the path of every decision: most requests have no options, or few.
function checkNames(options: object, known: readonly string[]): void {
  knownNames('options', plainObject('options', options), known);
}

const toUs = (ms: number): number => Math.min(Math.floor(ms * 1_000), Number.MAX_SAFE_INTEGER);
