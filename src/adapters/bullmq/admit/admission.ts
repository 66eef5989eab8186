import type { Job } from 'bullmq';
import {
  type AskTerms,
  type Attempt,
  type Attempts,
  type Cost,
  deskOf,
  type Keys,
  lookAgainMs,
  type ReservationHandle,
} from '../../../core/calls/desk.ts';
import { isCostExceedsBurstError, isInvalidOptionError, RefusedError } from '../../../core/errors.ts';
import { type Deferring, hasReturned } from '../defer/defer.ts';
import { type Room, unrecoverable } from '../defer/room.ts';
import type { Fetched } from '../fetch/arrivals.ts';
import type { Gate } from '../fetch/gate.ts';
import { REFUSED_ACTIONS, said } from '../options.ts';
import { asError, isAway, type Shared } from '../state.ts';
import { governorWideWaitMs, type Reach, reachOf } from './pace.ts';
import { leaveFor, requeueMs, waitFor } from './refusal.ts';
import { bypass, holderOf, type JobRequest, requestOf } from './request.ts';

/** What a job may run under. */
export interface Admitted {
  readonly grant: ReservationHandle;
  readonly keys: Keys | undefined;
}

/** A job between its first question and its start; how long it was held, and how long it may still wait nearby. */
interface Candidate<J extends Job> extends Fetched<J>, JobRequest {
  readonly attempt: Attempt;
  readonly reach: Reach;
  readonly room: Room<J>;
  heldMs: number;
  nearbyMs: number;
}

// A store that does not answer refuses nothing and grants nothing: the jobs stay queued, and it is asked again then.
const STORE_RETRY_MS = 1_000;
/** The part of `maxHoldMs` for which a job is held where those behind it are to be looked at. */
const FAIR_HOLD_PART = 5;
/** Thrown into waits when the worker closes. */
const CLOSING = Symbol('closing');

/** Takes a job from the fetch to its start, or out of the worker again. */
export class Admission<J extends Job> {
  readonly #attempts: Attempts;
  /** The cost that was asked about last: what the next job is likely to cost. */
  #lastCost: Cost = 1;
  /** Jobs that ask whether they may wait nearby. */
  #claims = 0;

  constructor(
    private readonly shared: Shared<J>,
    private readonly deferring: Deferring<J>,
  ) {
    this.#attempts = deskOf(shared.govern.governor).attempts();
  }

  /** The worker closes: all waits end, and their jobs go back. */
  close(): void {
    void this.#attempts.end(CLOSING);
  }

  /** Milliseconds that a job would have to wait now at the limits that all jobs meet. */
  governorWideWaitMs(): Promise<number> {
    return governorWideWaitMs(this.shared.govern.governor, this.#lastCost);
  }

  /** What the job may run under; undefined if it is dropped. Throws what tells BullMQ what became of it otherwise. */
  async admit(fetched: Fetched<J>): Promise<Admitted | undefined> {
    const { govern, putBack, report } = this.shared;
    const { job, signal } = fetched;
    try {
      const request = requestOf(govern, job);
      const grant = await this.#grantFor(fetched, request);
      return grant && { grant, keys: request.keys };
    } catch (error) {
      if (error === CLOSING) return putBack.toHead(fetched);
      if (signal?.aborted && error === signal.reason) throw asError(error);
      if (isAway(error)) {
        report(error);
        if (this.#gate === undefined) return this.deferring.deferUnrecorded(fetched, STORE_RETRY_MS);
        this.#gate.shutFor(STORE_RETRY_MS);
        return putBack.toHead(fetched);
      }
      if (isCostExceedsBurstError(error) || isInvalidOptionError(error)) throw unrecoverable(error);
      throw asError(error);
    }
  }

  async #grantFor(fetched: Fetched<J>, request: JobRequest): Promise<ReservationHandle | undefined> {
    const { job, signal } = fetched;
    const { cost, keys, priority } = request;
    if (request.bypass !== undefined) return bypass(this.shared, job, request, request.bypass);
    const reach = await reachOf(this.shared.govern.governor, cost, keys);
    this.#attempts.waiters.check(signal);
    const asked = { cost, keys, priority, holder: holderOf(job), signal, returning: hasReturned(job) };
    const attempt = this.#attempts.begin(asked);
    try {
      const room = await this.deferring.roomOf(job);
      const nearbyMs = this.shared.govern.maxHoldMs;
      return await this.#ask({ ...fetched, ...request, attempt, reach, room, heldMs: 0, nearbyMs });
    } finally {
      void attempt.end();
    }
  }

  async #ask(candidate: Candidate<J>): Promise<ReservationHandle | undefined> {
    const { job, attempt, room, reach } = candidate;
    const { counters, feed, govern, putBack } = this.shared;
    // A job that may fail or be dropped takes only a turn near enough to wait for here. A job over its deferral limit takes
    // none either: the jobs behind it would queue behind nothing.
    let takesTurn = this.#alwaysDefers && room.ms >= 0;
    for (;;) {
      // A hold that only keys ask for is a wait nearby. Without room for it the job takes a turn.
      const claims = !reach.governorWide && this.#roomNearby;
      if (claims) this.#claims += 1;
      const answer = await attempt.ask(this.#terms(candidate, takesTurn, claims)).finally(() => {
        if (claims) this.#claims -= 1;
      });
      this.#lastCost = candidate.cost;
      if (answer.allowed) {
        if (await this.#hold(answer, candidate)) return answer;
        continue;
      }
      const wait = waitFor(answer, {
        attached: this.#gate !== undefined,
        returning: attempt.returning,
        roomNearby: this.#roomNearby,
        nearbyMs: candidate.nearbyMs,
        holdMs: govern.maxHoldMs - candidate.heldMs,
        maxHoldMs: govern.maxHoldMs,
        defers: this.#alwaysDefers,
      });
      if (wait !== 'away') {
        const timeMs = await this.#timed(wait === 'nearby', () => attempt.sleep(answer));
        if (wait === 'nearby') candidate.nearbyMs = Math.max(0, candidate.nearbyMs - timeMs);
        else candidate.heldMs += timeMs;
        continue;
      }
      const action = takesTurn
        ? 'delay'
        : await said('onRefused', govern.onRefused, REFUSED_ACTIONS, job, answer);
      const leaving = leaveFor(answer, action, this.#gate !== undefined);
      if (leaving === 'drop') {
        counters.dropped += 1;
        return undefined;
      }
      if (leaving === 'fail') {
        counters.failed += 1;
        throw new RefusedError(answer.limit, answer.retryAfterMs);
      }
      this.#attempts.waiters.check(candidate.signal);
      if (leaving === 'head') {
        this.#gate?.refused(answer.retryAfterMs);
        return putBack.toHead(candidate);
      }
      const tailMs = leaving === 'requeue' ? await requeueMs(this.shared, job) : undefined;
      const delayMs = tailMs ?? lookAgainMs(answer);
      // A pause is not the job's doing: it uses up none of what it may be deferred.
      const excused = answer.reason === 'paused';
      if (!excused && delayMs > room.ms) {
        if ((await room.exceed(answer, delayMs)) === 'drop') return undefined;
        this.#attempts.waiters.check(candidate.signal);
        // It was allowed to take a turn but got none within its room: ask once more.
        if (takesTurn && !answer.hasTurn) continue;
      }
      if (takesTurn || answer.hasTurn || tailMs !== undefined) {
        if (answer.hasTurn) feed.deferred();
        return this.deferring.defer(candidate, delayMs, { excused });
      }
      takesTurn = true;
    }
  }

  #terms(candidate: Candidate<J>, takesTurn: boolean, claims: boolean): AskTerms {
    const { job, reach, room, nearbyMs: patienceMs } = candidate;
    const { govern } = this.shared;
    const dueMs = (job.timestamp ?? Number.POSITIVE_INFINITY) + (job.opts?.delay ?? 0);
    const nearbyMs = this.#roomNearby || claims ? patienceMs : 0;
    // So short that the feed, which sees to it that jobs are held for less than half of maxHoldMs, fetches on.
    const part = takesTurn && this.#looksBehind(reach) ? FAIR_HOLD_PART : 1;
    return {
      waitedMs: Math.max(0, govern.governor.clock.wallMs() - dueMs),
      maxWaitMs: reach.governorWide || claims ? govern.maxHoldMs / part : 0,
      turns: this.#gate === undefined ? 'all' : 'keyed',
      maxTurnMs: takesTurn ? Math.max(nearbyMs, room.ms) : nearbyMs,
      patienceMs,
    };
  }

  /** Waits for the start; false if it was missed or recalled, and the reservation is lost. */
  async #hold(grant: ReservationHandle, { attempt, reach, heldMs }: Candidate<J>): Promise<boolean> {
    const isNearby = grant.startsInMs > 0 && !reach.governorWide;
    if (!isNearby) {
      // A job that waited for a near turn or in a queue was held all the same.
      const waitMs = Math.max(grant.startsInMs, heldMs);
      const nextWaitMs = this.#looksBehind(reach) ? waitMs : waitMs + reach.intervalMs;
      this.shared.feed.granted(waitMs, nextWaitMs);
      this.#gate?.apply(nextWaitMs);
    }
    if (grant.startsInMs > 0) this.shared.counters.holds += 1;
    let met = false;
    await this.#timed(isNearby, async () => {
      met = await attempt.hold(grant);
    });
    if (met) this.shared.counters.granted += 1;
    return met;
  }

  /** Waits in the worker. @returns for how long, in milliseconds. */
  async #timed(isNearby: boolean, wait: () => Promise<void>): Promise<number> {
    const { feed, govern } = this.shared;
    const { clock } = govern.governor;
    const beganMs = clock.monoMs();
    if (isNearby) feed.stepsNearby();
    this.#gate?.apply();
    try {
      await wait();
    } finally {
      if (isNearby) feed.stepsBack();
    }
    return clock.monoMs() - beganMs;
  }

  get #gate(): Gate | undefined {
    return this.shared.attached?.gate;
  }

  /** Whether every refused job is deferred; else each is asked about before it takes a turn, since it may not want one. */
  get #alwaysDefers(): boolean {
    return this.shared.govern.onRefused === 'delay';
  }

  // Under a fair limit what stands behind a job may be another key's, which has had less. So the worker goes on fetching, and
  // a job that may not start soon is deferred; unless it might rather fail or be dropped: then it should not be fetched.
  #looksBehind({ fair }: Reach): boolean {
    return fair && this.#alwaysDefers;
  }

  // Jobs nearby must leave room for those of other keys; without a handle on the worker, nobody knows how much there is.
  get #roomNearby(): boolean {
    const { feed } = this.shared;
    return this.#gate !== undefined && feed.nearby + this.#claims < Math.floor(feed.max / 2);
  }
}
