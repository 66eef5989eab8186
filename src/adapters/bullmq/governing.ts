import { type Job, UnrecoverableError, WaitingError, type Worker } from 'bullmq';
import type { Refusal, Reservation } from '../../core/decision.ts';
import {
  isCostExceedsBurstError,
  isGovernorClosedError,
  isStoreUnavailableError,
  RefusedError,
} from '../../core/errors.ts';
import type { Cost, Keys } from '../../core/request.ts';
import { Waiters } from '../../core/waiters.ts';
import { Feed } from './feed.ts';
import { Fetching } from './fetching.ts';
import type { Govern } from './options.ts';
import { PutBack } from './put-back.ts';
import { type Reach, reachOf } from './reach.ts';
import { Refused } from './refused.ts';
import { warnOfConflicts } from './warnings.ts';

/** What a governed worker does at this moment, and has done since it was made. */
export interface GoverningState {
  /** Jobs whose processor runs. */
  readonly running: number;
  /** Jobs that ask the governor or wait in process for their tokens. */
  readonly held: number;
  /** Jobs that wait in process for a slot of their key. */
  readonly aside: number;
  /** The number of held jobs the feed aims at; below 1 it fetches none. */
  readonly target: number;
  /** Whether the worker fetches jobs. */
  readonly gate: 'open' | 'closed';
  readonly granted: number;
  /** Grants that had to be waited for in process. */
  readonly holds: number;
  /** Jobs put aside until a slot, or to the tail. */
  readonly deferrals: number;
  /** Jobs put back to the head of their queue. */
  readonly returned: number;
  readonly dropped: number;
  readonly failed: number;
  readonly bypassed: number;
}

type Counters = Record<
  'granted' | 'holds' | 'deferrals' | 'returned' | 'dropped' | 'failed' | 'bypassed',
  number
>;

interface Asking<J> {
  readonly job: J;
  readonly token: string | undefined;
  readonly signal: AbortSignal | undefined;
  readonly cost: Cost;
  readonly keys: Keys | undefined;
  readonly reach: Reach;
  readonly arrival: number;
}

/** Thrown into holds when the worker closes. */
const CLOSING = Symbol('closing');

// A store that does not answer refuses nothing and grants nothing: the jobs stay queued, and it is asked again then.
const STORE_RETRY_MS = 1_000;
const STORE_ERROR_EVERY_MS = 10_000;

/** The governing of one worker: takes each job from the fetch to its start. */
export class Governing<J extends Job> {
  readonly #feed: Feed;
  readonly #waiters: Waiters;
  readonly #putBack: PutBack;
  readonly #refused: Refused<J>;
  readonly #counters: Counters = {
    granted: 0,
    holds: 0,
    deferrals: 0,
    returned: 0,
    dropped: 0,
    failed: 0,
    bypassed: 0,
  };
  #worker: Worker | undefined;
  #fetching: Fetching | undefined;
  #closing = false;
  #arrivals = 0;
  /** Jobs that ask whether they may be aside. */
  #claims = 0;
  #lastCost: Cost = 1;
  #lastStoreErrorMs = Number.NEGATIVE_INFINITY;

  constructor(private readonly govern: Govern<J>) {
    const { clock } = govern.governor;
    this.#feed = new Feed(Number.MAX_SAFE_INTEGER, Math.max(1, govern.maxHoldMs));
    this.#waiters = new Waiters(clock, Number.MAX_SAFE_INTEGER); // BullMQ's concurrency bounds them
    this.#putBack = new PutBack(clock);
    this.#refused = new Refused(govern, clock);
  }

  get state(): GoverningState {
    const { running, held, aside, target } = this.#feed;
    const gate = this.#fetching?.open === false ? 'closed' : 'open';
    return { running, held, aside, target, gate, ...this.#counters };
  }

  /** Takes hold of the worker's fetching: from then on its concurrency follows the limit. Once. */
  attach(worker: Worker): void {
    if (this.#worker !== undefined)
      throw new TypeError('this governed processor is attached to a worker already');
    const { governor, maxHoldMs } = this.govern;
    this.#worker = worker;
    this.#feed.setMax(worker.concurrency);
    this.#fetching = new Fetching(worker, this.#feed, governor.clock, maxHoldMs, () =>
      this.#governorWideWaitMs(),
    );
    this.#refused.attach(worker);
    worker.on('closing', () => this.#close());
    warnOfConflicts(worker);
  }

  /**
   * Resolves when the job may run; `run` is what it then is to do. Throws what tells BullMQ what became of it otherwise.
   */
  async process<R>(
    job: J,
    token: string | undefined,
    signal: AbortSignal | undefined,
    run: () => Promise<R>,
  ): Promise<R> {
    this.#feed.arrived();
    this.#fetching?.fetched();
    let started = false;
    try {
      const may = await this.#admit(job, token, signal);
      if (!may) return undefined as R; // dropped: BullMQ completes the job
      started = true;
      this.#feed.started();
      this.#fetching?.apply();
      return await run();
    } finally {
      if (started) this.#feed.ended();
      else this.#feed.left();
      this.#fetching?.apply();
    }
  }

  async #admit(job: J, token: string | undefined, signal: AbortSignal | undefined): Promise<boolean> {
    const arrival = this.#arrivals++;
    try {
      const reason = this.govern.bypass(job);
      const cost = this.govern.cost(job);
      const keys = this.govern.keys(job);
      if (reason) return await this.#bypass(job, cost, keys, reason);
      if (this.#closing) throw CLOSING;
      const reach = reachOf(await this.govern.governor.limits(), cost);
      return await this.#ask({ job, token, signal, cost, keys, reach, arrival });
    } catch (error) {
      if (error === CLOSING) return this.#toHead(job, token, arrival);
      if (signal?.aborted && error === signal.reason) throw asError(error);
      if (isStoreUnavailableError(error) || isGovernorClosedError(error))
        return this.#noAnswer(job, token, arrival, error);
      // No retry can help, so no attempt is spent on one.
      if (isCostExceedsBurstError(error)) throw unrecoverable(error);
      throw error;
    }
  }

  async #ask(asking: Asking<J>): Promise<boolean> {
    const { governor, maxHoldMs } = this.govern;
    const { job, signal, cost, keys, reach } = asking;
    let asideMs = maxHoldMs;
    // Who may not want to be put aside takes no slot but a near one, which is waited for here.
    let takesSlot = !this.#refused.decidesLater;
    let returning = job.attemptsStarted - job.attemptsMade - (job.stalledCounter ?? 0) > 1;
    for (;;) {
      // A hold that only keys ask for is one aside. Without room for it, the job had better have a slot.
      const claims = !reach.governorWide && this.#roomAside;
      if (claims) this.#claims += 1;
      const ask = governor.reserveN(cost, {
        ...(keys === undefined ? {} : { keys }),
        maxWaitMs: reach.governorWide || claims ? maxHoldMs : 0,
        slots: this.#fetching === undefined ? 'all' : 'keyed',
        maxSlotMs: takesSlot ? Number.POSITIVE_INFINITY : asideMs,
        returning,
        patienceMs: asideMs,
      });
      const decision = await ask.finally(() => {
        if (claims) this.#claims -= 1;
      });
      this.#lastCost = cost;
      if (decision.allowed) {
        if (await this.#hold(decision, asking)) return true;
        returning = true;
      } else if (this.#mayStepAside(decision, returning, asideMs)) {
        await this.#aside(decision.retryAfterMs, signal);
        asideMs -= decision.retryAfterMs;
        returning = true;
      } else if (takesSlot) {
        return this.#putAside(decision, asking);
      } else {
        const action = await this.#refused.actionFor(job, decision);
        if (action === 'drop') {
          this.#counters.dropped += 1;
          return false;
        }
        if (action === 'fail') {
          this.#counters.failed += 1;
          throw new RefusedError(decision.limit, decision.retryAfterMs);
        }
        const awayMs = action === 'requeue' ? await this.#refused.requeueMs(job) : undefined;
        if (awayMs !== undefined) return this.#defer(asking, awayMs);
        takesSlot = true;
      }
    }
  }

  /** Waits for the start; false if it was missed and the reservation is lost. */
  async #hold(reservation: Reservation, { reach, signal }: Asking<J>): Promise<boolean> {
    const { startsInMs, startsAtMonoMs } = reservation;
    if (this.#closing) {
      await reservation.cancel();
      throw CLOSING;
    }
    const keyed = startsInMs > 0 && !reach.governorWide;
    if (keyed) this.#feed.steppedAside();
    else {
      const nextWaitMs = startsInMs + reach.intervalMs;
      this.#feed.granted(startsInMs, nextWaitMs);
      this.#fetching?.apply(nextWaitMs);
    }
    try {
      if (startsInMs > 0) {
        this.#counters.holds += 1;
        const lateMs = await this.#waiters.sleep(startsAtMonoMs, signal);
        if (lateMs > this.govern.governor.graceMs) return false;
      }
    } catch (ended) {
      await reservation.cancel().catch(() => false); // lost, never granted twice
      throw ended;
    } finally {
      if (keyed) this.#feed.steppedBack();
    }
    this.#counters.granted += 1;
    return true;
  }

  // Jobs aside must leave room for those of other keys; without a handle on the worker, nobody knows how much there is.
  get #roomAside(): boolean {
    return (
      this.#worker !== undefined && this.#feed.aside + this.#claims < Math.floor(this.#worker.concurrency / 2)
    );
  }

  // A slot of its key that is near is waited for here.
  #mayStepAside(refusal: Refusal, returning: boolean, asideMs: number): boolean {
    const hasPlace = refusal.slotted || (refusal.keyed && returning);
    return hasPlace && refusal.retryAfterMs <= asideMs && this.#roomAside && !this.#closing;
  }

  async #aside(ms: number, signal: AbortSignal | undefined): Promise<void> {
    this.#feed.steppedAside();
    this.#fetching?.apply();
    try {
      await this.#waiters.sleep(this.govern.governor.clock.monoMs() + ms, signal);
    } finally {
      this.#feed.steppedBack();
    }
  }

  #putAside(refusal: Refusal, asking: Asking<J>): Promise<never> {
    if (refusal.slotted || refusal.keyed || this.#fetching === undefined) {
      return this.#defer(asking, refusal.retryAfterMs);
    }
    this.#shut(refusal.retryAfterMs);
    return this.#toHead(asking.job, asking.token, asking.arrival);
  }

  #defer({ job, token }: Pick<Asking<J>, 'job' | 'token'>, delayMs: number): Promise<never> {
    this.#counters.deferrals += 1;
    return this.#refused.delay(job, token, delayMs);
  }

  async #toHead(job: J, token: string | undefined, arrival: number): Promise<never> {
    this.#counters.returned += 1;
    await this.#putBack.put(job, token, arrival);
    throw new WaitingError();
  }

  #shut(waitMs: number): void {
    this.#feed.refused();
    this.#fetching?.apply(waitMs);
  }

  async #noAnswer(job: J, token: string | undefined, arrival: number, error: Error): Promise<never> {
    const { clock } = this.govern.governor;
    if (clock.monoMs() - this.#lastStoreErrorMs >= STORE_ERROR_EVERY_MS) {
      this.#lastStoreErrorMs = clock.monoMs();
      this.#worker?.emit('error', error);
    }
    if (this.#fetching === undefined) return this.#defer({ job, token }, STORE_RETRY_MS);
    this.#shut(STORE_RETRY_MS + this.govern.maxHoldMs);
    return this.#toHead(job, token, arrival);
  }

  async #bypass(job: J, cost: Cost, keys: Keys | undefined, reason: string): Promise<boolean> {
    await this.govern.governor.forceN(cost, keys === undefined ? {} : { keys });
    this.#counters.bypassed += 1;
    this.govern.onBypass(job, reason);
    return true;
  }

  async #governorWideWaitMs(): Promise<number> {
    const limits = await this.govern.governor.peek({ cost: this.#lastCost });
    return Math.max(0, ...limits.filter(({ key }) => key === null).map(({ waitMs }) => waitMs));
  }

  #close(): void {
    this.#closing = true;
    this.#fetching?.end();
    this.#putBack.hurry();
    void this.#waiters.endAll(CLOSING);
  }
}

// cancelJob(id, 'why') aborts with a text, and BullMQ reads a failure's message.
function asError(reason: unknown): Error {
  return reason instanceof Error ? reason : new Error(String(reason ?? 'cancelled'));
}

function unrecoverable(cause: Error): Error {
  const error = new UnrecoverableError(cause.message);
  error.cause = cause;
  return error;
}
