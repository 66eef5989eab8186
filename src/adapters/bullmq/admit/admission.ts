import { type Job, WaitingError, type Worker } from 'bullmq';
import type { Refusal } from '../../../core/answers.ts';
import { RECALL_US } from '../../../core/buckets/constants.ts';
import type { ReservationHandle } from '../../../core/calls/grant.ts';
import type { Priority } from '../../../core/calls/options.ts';
import type { Place } from '../../../core/calls/slot-queue.ts';
import { RECALLED, Waiters } from '../../../core/calls/waiters.ts';
import type { Cost, Keys } from '../../../core/decide/demands.ts';
import { RefusedError } from '../../../core/errors.ts';
import { PAUSED_LOOK_MS } from '../../../core/pauses.ts';
import type { Deferring } from '../defer/deferring.ts';
import { hasReturned } from '../defer/record.ts';
import type { Feed } from '../fetch/feed.ts';
import type { Fetching } from '../fetch/fetching.ts';
import { PutBack } from '../fetch/put-back.ts';
import type { Govern } from '../options.ts';
import type { Counters } from '../state.ts';
import type { Reach } from './reach.ts';
import type { Refused } from './refused.ts';

/** A job that asks to run. */
export interface Asking<J> {
  readonly job: J;
  readonly token: string | undefined;
  readonly signal: AbortSignal | undefined;
  readonly cost: Cost;
  readonly keys: Keys | undefined;
  readonly priority: Priority;
  readonly reach: Reach;
  /** Its place in the order in which this worker fetched its jobs. */
  readonly arrival: number;
}

// The end tells jobs of one queue apart.
const MAX_HOLDER_LENGTH = 200;

/** The part of `maxHoldMs` for which a job is held where those behind it are to be looked at. */
const FAIR_HOLD_PART = 5;

/** Thrown into holds when the worker closes. */
export const CLOSING = Symbol('closing');

/**
 * Takes a job from its first question to its start, or out of the worker again: the hold, the wait aside for a near slot,
 * and what becomes of it if neither will do.
 */
export class Admission<J extends Job> {
  readonly #waiters: Waiters;
  readonly #putBack: PutBack;
  readonly #endRecall: () => void;
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
    private readonly deferring: Deferring<J>,
    private readonly counters: Counters,
  ) {
    const { clock } = govern.governor;
    this.#waiters = new Waiters(clock, Number.MAX_SAFE_INTEGER); // BullMQ's concurrency bounds them
    this.#putBack = new PutBack(clock);
    this.#endRecall = govern.governor.onRecall(() => this.#waiters.recall());
  }

  /** From now on there is a worker whose fetching can be stopped. */
  attach(worker: Worker, fetching: Fetching): void {
    this.#worker = { worker, fetching };
  }

  /** The worker closes: all holds end, and their jobs go back. */
  close(): void {
    this.#closing = true;
    this.#endRecall();
    this.#putBack.hurry();
    void this.#waiters.endAll(CLOSING);
  }

  /** What the job may run under; undefined if it is dropped. Throws what tells BullMQ what became of it otherwise. */
  async ask(asking: Asking<J>): Promise<ReservationHandle | undefined> {
    const { governor } = this.govern;
    if (this.#closing) throw CLOSING;
    const holder = holderOf(asking.job);
    const place = governor.enterQueue(holder);
    try {
      return await this.#ask(asking, place);
    } finally {
      place.leave();
      // Those behind it must not wait for a place that nobody will take.
      if (place.isTaken) void governor.leaveQueue(asking.cost, asking.keys, holder).catch(() => {});
    }
  }

  async #ask(asking: Asking<J>, place: Place): Promise<ReservationHandle | undefined> {
    const { governor, maxHoldMs } = this.govern;
    const { job, signal, cost, keys, priority, reach } = asking;
    const dueMs = (job.timestamp ?? Number.POSITIVE_INFINITY) + (job.opts?.delay ?? 0);
    const beganMs = governor.clock.monoMs();
    let held = false;
    let asideMs = maxHoldMs;
    const past = await this.deferring.pastOf(job);
    let pardoned = false;
    // Who may not want to be put aside takes no slot but a near one, which is waited for here.
    let takesTurn = !this.refused.decidesLater && this.deferring.roomMs(past) >= 0;
    let returning = hasReturned(job);
    for (;;) {
      const nearMs = this.#roomAside ? asideMs : 0;
      // Nor does who may not wait for it: those behind would wait for nothing.
      const roomMs = pardoned ? Number.POSITIVE_INFINITY : this.deferring.roomMs(past);
      // A hold that only keys ask for is one aside. Without room for it, the job had better have a slot.
      const claims = !reach.governorWide && this.#roomAside;
      if (claims) this.#claims += 1;
      place.asks();
      const ask = governor.reserveQueued(cost, {
        ...(keys === undefined ? {} : { keys }),
        priority,
        holder: place.holder,
        waitedMs: Math.max(0, governor.clock.wallMs() - dueMs),
        maxWaitMs: reach.governorWide || claims ? (takesTurn ? this.#longestHoldMs(reach) : maxHoldMs) : 0,
        turns: this.#worker === undefined ? 'all' : 'keyed',
        maxTurnMs: takesTurn ? Math.max(nearMs, roomMs) : nearMs,
        returning,
        patienceMs: asideMs,
      });
      const decision = await ask.finally(() => {
        if (claims) this.#claims -= 1;
      });
      this.lastCost = cost;
      place.isTaken = !decision.allowed && decision.reason === 'concurrency';
      if (decision.allowed) {
        const heldMs = held ? governor.clock.monoMs() - beganMs : 0;
        if (await this.#hold(decision, asking, heldMs)) return decision;
        returning = true;
      } else if (this.#mayQueue(decision, beganMs)) {
        held ||= !decision.keyed;
        await this.#inQueue(decision, asking, place);
      } else if (this.#mayHoldForTurn(decision)) {
        held = true;
        await this.#sleep(governor.clock.monoMs() + decision.retryAfterMs, signal);
        returning = true;
      } else if (this.#mayStepAside(decision, returning, asideMs)) {
        await this.#aside(decision.retryAfterMs, signal);
        asideMs -= decision.retryAfterMs;
        returning = true;
      } else {
        const action = takesTurn ? 'delay' : await this.refused.actionFor(job, decision);
        if (action === 'drop') {
          this.counters.dropped += 1;
          return undefined;
        }
        if (action === 'fail') {
          this.counters.failed += 1;
          throw new RefusedError(decision.limit, decision.retryAfterMs);
        }
        if (this.#closing) throw CLOSING;
        // All jobs meet a limit without keys: to let others pass would help none of them.
        if (!decision.hasTurn && !decision.keyed && this.#worker !== undefined) {
          this.shut(decision.retryAfterMs);
          return this.toHead(job, asking.token, asking.arrival);
        }
        const requeues = action === 'requeue' && !decision.hasTurn;
        const awayMs = requeues ? await this.refused.requeueMs(job) : undefined;
        // A pause may be ended early, and a job that is put aside hears nothing of it.
        const waitMs =
          decision.reason === 'paused'
            ? Math.min(decision.retryAfterMs, PAUSED_LOOK_MS)
            : decision.retryAfterMs;
        const delayMs = awayMs ?? waitMs;
        // A pause is not the job's doing: it uses up none of what it may be deferred.
        if (!pardoned && decision.reason !== 'paused' && delayMs > this.deferring.roomMs(past)) {
          if ((await this.deferring.atLimit(job, past, decision, delayMs)) === 'drop') return undefined;
          if (this.#closing) throw CLOSING;
          pardoned = true;
          // Who takes slots was given none, and asks once more.
          if (takesTurn && !decision.hasTurn) continue;
        }
        if (takesTurn || decision.hasTurn || awayMs !== undefined) {
          if (decision.hasTurn) this.feed.deferred();
          return this.deferring.defer(asking, delayMs, { excused: decision.reason === 'paused' });
        }
        takesTurn = true;
      }
    }
  }

  /** Waits for the start; false if it was missed or recalled, and the reservation is lost. */
  async #hold(
    reservation: ReservationHandle,
    { reach, signal }: Asking<J>,
    heldMs: number,
  ): Promise<boolean> {
    const { startsInMs, startsAtMonoMs } = reservation;
    if (this.#closing) {
      await reservation.cancel().catch(() => false); // lost, never granted twice
      throw CLOSING;
    }
    const { clock, graceMs } = this.govern.governor;
    const keyed = startsInMs > 0 && !reach.governorWide;
    if (keyed) this.feed.steppedAside();
    else {
      // A job that waited for a near slot or in a queue was held all the same.
      const waitMs = Math.max(startsInMs, heldMs);
      const nextWaitMs = this.#looksBehind(reach) ? waitMs : waitMs + reach.intervalMs;
      this.feed.granted(waitMs, nextWaitMs);
      this.#worker?.fetching.apply(nextWaitMs);
    }
    const endWatch = reservation.watch();
    try {
      if (startsInMs > 0) {
        this.counters.holds += 1;
        await this.#waiters.sleep(startsAtMonoMs, signal, { recallable: startsInMs > RECALL_US / 1_000 });
      }
      signal?.throwIfAborted();
      if (clock.monoMs() - startsAtMonoMs > graceMs || !reservation.stands()) {
        await reservation.release();
        return false;
      }
    } catch (ended) {
      if (ended === RECALLED) return false;
      await reservation.cancel().catch(() => false); // lost, never granted twice
      throw ended;
    } finally {
      endWatch();
      if (keyed) this.feed.steppedBack();
    }
    this.counters.granted += 1;
    return true;
  }

  /**
   * Whether a job that found no slot of a concurrency limit waits for one here. Of a limit that all jobs meet, for as long as
   * it takes: its place in the queue is what it would lose, and the feed fetches few besides it.
   */
  #mayQueue({ reason, keyed }: Refusal, beganMs: number): boolean {
    if (reason !== 'concurrency' || this.#closing) return false;
    const waits = this.govern.governor.clock.monoMs() - beganMs < this.govern.maxHoldMs;
    if (keyed) return waits && this.#roomAside;
    return this.#worker !== undefined && (waits || !this.refused.decidesLater);
  }

  async #inQueue(refusal: Refusal, { signal }: Asking<J>, place: Place): Promise<void> {
    if (place.woken()) return;
    const untilMs = this.govern.governor.clock.monoMs() + refusal.retryAfterMs;
    if (refusal.keyed) this.feed.steppedAside();
    this.#worker?.fetching.apply();
    try {
      await this.#sleep(untilMs, signal, place.onWake);
    } finally {
      if (refusal.keyed) this.feed.steppedBack();
    }
  }

  // A near slot of a limit that all jobs meet, and that cannot reserve for this one; or the near end of a pause of all.
  #mayHoldForTurn({ hasTurn, reason, keyed, retryAfterMs }: Refusal): boolean {
    const isNear = !keyed && retryAfterMs <= this.govern.maxHoldMs;
    return isNear && (hasTurn || reason === 'paused') && this.#worker !== undefined;
  }

  // Whoever is recalled asks again: that is what its sleep was for.
  async #sleep(untilMs: number, signal: AbortSignal | undefined, onWake?: (wake: () => void) => void) {
    try {
      await this.#waiters.sleep(untilMs, signal, { recallable: true, ...(onWake && { onWake }) });
    } catch (ended) {
      if (ended !== RECALLED) throw ended;
    }
  }

  // Under a fair limit what stands behind a job may be another key's, which has had less. So the worker goes on fetching, and
  // who may not start soon is put aside; unless it might rather fail or be dropped, and had better not be fetched.
  #looksBehind({ fair }: Reach): boolean {
    return fair && !this.refused.decidesLater;
  }

  // So short that the feed, which sees to it that jobs are held for less than half of maxHoldMs, fetches on.
  #longestHoldMs(reach: Reach): number {
    const { maxHoldMs } = this.govern;
    return this.#looksBehind(reach) ? maxHoldMs / FAIR_HOLD_PART : maxHoldMs;
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
    const hasPlace = refusal.hasTurn || (refusal.keyed && returning);
    return hasPlace && refusal.retryAfterMs <= asideMs && this.#roomAside && !this.#closing;
  }

  async #aside(ms: number, signal: AbortSignal | undefined): Promise<void> {
    this.feed.steppedAside();
    this.#worker?.fetching.apply();
    try {
      await this.#sleep(this.govern.governor.clock.monoMs() + ms, signal);
    } finally {
      this.feed.steppedBack();
    }
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

// The same in whichever process the job starts: one that was restarted after its worker froze takes its slot over.
function holderOf(job: Job): string {
  const holder = `${job.queueQualifiedName}:${job.id}`;
  return holder.length <= MAX_HOLDER_LENGTH ? holder : holder.slice(-MAX_HOLDER_LENGTH);
}
