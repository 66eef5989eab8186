import { type Job, WaitingError, type Worker } from 'bullmq';
import type { Refusal, Reservation } from '../../core/decision.ts';
import { RefusedError } from '../../core/errors.ts';
import type { Cost, Keys } from '../../core/request.ts';
import { Waiters } from '../../core/waiters.ts';
import type { Feed } from './feed.ts';
import type { Fetching } from './fetching.ts';
import type { Govern } from './options.ts';
import { PutBack } from './put-back.ts';
import type { Reach } from './reach.ts';
import type { Refused } from './refused.ts';
import type { Counters } from './state.ts';

/** A job that asks to run. */
export interface Asking<J> {
  readonly job: J;
  readonly token: string | undefined;
  readonly signal: AbortSignal | undefined;
  readonly cost: Cost;
  readonly keys: Keys | undefined;
  readonly reach: Reach;
  /** Its place in the order in which this worker fetched its jobs. */
  readonly arrival: number;
}

/** Thrown into holds when the worker closes. */
export const CLOSING = Symbol('closing');

/**
 * Takes a job from its first question to its start, or out of the worker again: the hold, the wait aside for a near slot,
 * and what becomes of it if neither will do.
 */
export class Admission<J extends Job> {
  readonly #waiters: Waiters;
  readonly #putBack: PutBack;
  #closing = false;
  /** The cost that was asked about last: what the next job is likely to cost. */
  lastCost: Cost = 1;
  #worker: { readonly worker: Worker; readonly fetching: Fetching } | undefined;
  /** Jobs that ask whether they may be aside. */
  #claims = 0;

  constructor(
    private readonly govern: Govern<J>,
    private readonly feed: Feed,
    private readonly refused: Refused<J>,
    private readonly counters: Counters,
  ) {
    const { clock } = govern.governor;
    this.#waiters = new Waiters(clock, Number.MAX_SAFE_INTEGER); // BullMQ's concurrency bounds them
    this.#putBack = new PutBack(clock);
  }

  /** From now on there is a worker whose fetching can be stopped. */
  attach(worker: Worker, fetching: Fetching): void {
    this.#worker = { worker, fetching };
  }

  /** The worker closes: all holds end, and their jobs go back. */
  close(): void {
    this.#closing = true;
    this.#putBack.hurry();
    void this.#waiters.endAll(CLOSING);
  }

  /** Whether the job may run; false if it is dropped. Throws what tells BullMQ what became of it otherwise. */
  async ask(asking: Asking<J>): Promise<boolean> {
    const { governor, maxHoldMs } = this.govern;
    const { job, signal, cost, keys, reach } = asking;
    if (this.#closing) throw CLOSING;
    let asideMs = maxHoldMs;
    // Who may not want to be put aside takes no slot but a near one, which is waited for here.
    let takesSlot = !this.refused.decidesLater;
    let returning = job.attemptsStarted - job.attemptsMade - (job.stalledCounter ?? 0) > 1;
    for (;;) {
      // A hold that only keys ask for is one aside. Without room for it, the job had better have a slot.
      const claims = !reach.governorWide && this.#roomAside;
      if (claims) this.#claims += 1;
      const ask = governor.reserveN(cost, {
        ...(keys === undefined ? {} : { keys }),
        maxWaitMs: reach.governorWide || claims ? maxHoldMs : 0,
        slots: this.#worker === undefined ? 'all' : 'keyed',
        maxSlotMs: takesSlot ? Number.POSITIVE_INFINITY : this.#roomAside ? asideMs : 0,
        returning,
        patienceMs: asideMs,
      });
      const decision = await ask.finally(() => {
        if (claims) this.#claims -= 1;
      });
      this.lastCost = cost;
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
        const action = await this.refused.actionFor(job, decision);
        if (action === 'drop') {
          this.counters.dropped += 1;
          return false;
        }
        if (action === 'fail') {
          this.counters.failed += 1;
          throw new RefusedError(decision.limit, decision.retryAfterMs);
        }
        if (this.#closing) throw CLOSING;
        // All jobs meet a limit without keys: to let others pass would help none of them.
        if (decision.slotted || (!decision.keyed && this.#worker !== undefined))
          return this.#putAside(decision, asking);
        const awayMs = action === 'requeue' ? await this.refused.requeueMs(job) : undefined;
        if (awayMs !== undefined) return this.defer(asking, awayMs);
        takesSlot = true;
      }
    }
  }

  /** Waits for the start; false if it was missed and the reservation is lost. */
  async #hold(reservation: Reservation, { reach, signal }: Asking<J>): Promise<boolean> {
    const { startsInMs, startsAtMonoMs } = reservation;
    if (this.#closing) {
      await reservation.cancel().catch(() => false); // lost, never granted twice
      throw CLOSING;
    }
    const keyed = startsInMs > 0 && !reach.governorWide;
    if (keyed) this.feed.steppedAside();
    else {
      const nextWaitMs = startsInMs + reach.intervalMs;
      this.feed.granted(startsInMs, nextWaitMs);
      this.#worker?.fetching.apply(nextWaitMs);
    }
    try {
      const { clock, graceMs } = this.govern.governor;
      if (startsInMs > 0) {
        this.counters.holds += 1;
        await this.#waiters.sleep(startsAtMonoMs, signal);
      }
      signal?.throwIfAborted();
      if (clock.monoMs() - startsAtMonoMs > graceMs) return false;
    } catch (ended) {
      await reservation.cancel().catch(() => false); // lost, never granted twice
      throw ended;
    } finally {
      if (keyed) this.feed.steppedBack();
    }
    this.counters.granted += 1;
    return true;
  }

  // Jobs aside must leave room for those of other keys; without a handle on the worker, nobody knows how much there is.
  get #roomAside(): boolean {
    return (
      this.#worker !== undefined &&
      this.feed.aside + this.#claims < Math.floor(this.#worker.worker.concurrency / 2)
    );
  }

  // A slot of its key that is near is waited for here.
  #mayStepAside(refusal: Refusal, returning: boolean, asideMs: number): boolean {
    const hasPlace = refusal.slotted || (refusal.keyed && returning);
    return hasPlace && refusal.retryAfterMs <= asideMs && this.#roomAside && !this.#closing;
  }

  async #aside(ms: number, signal: AbortSignal | undefined): Promise<void> {
    this.feed.steppedAside();
    this.#worker?.fetching.apply();
    try {
      await this.#waiters.sleep(this.govern.governor.clock.monoMs() + ms, signal);
    } finally {
      this.feed.steppedBack();
    }
  }

  #putAside(refusal: Refusal, asking: Asking<J>): Promise<never> {
    if (refusal.slotted || refusal.keyed || this.#worker === undefined) {
      return this.defer(asking, refusal.retryAfterMs);
    }
    this.shut(refusal.retryAfterMs);
    return this.toHead(asking.job, asking.token, asking.arrival);
  }

  /** Puts the job aside for a time. */
  defer({ job, token }: Pick<Asking<J>, 'job' | 'token'>, delayMs: number): Promise<never> {
    this.counters.deferrals += 1;
    return this.refused.delay(job, token, delayMs);
  }

  /** Puts the job back to the head of its queue. Only while the worker does not fetch: it would have it again at once. */
  async toHead(job: J, token: string | undefined, arrival: number): Promise<never> {
    this.counters.returned += 1;
    await this.#putBack.put(job, token, arrival);
    throw new WaitingError();
  }

  /** Stops fetching until a job would have to wait for less. */
  shut(waitMs: number): void {
    this.feed.refused();
    this.#worker?.fetching.apply(waitMs);
  }
}
