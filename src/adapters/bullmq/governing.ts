import { DelayedError, type Job, type Queue, WaitingError, type Worker } from 'bullmq';
import type { ReservationHandle } from '../../core/calls/grant.ts';
import type { Cost, Keys } from '../../core/decide/demands.ts';
import { isThrottled, pauseOf, type Throttled } from '../../core/downstream/throttled.ts';
import {
  InvalidOptionError,
  isCostExceedsBurstError,
  isGovernorClosedError,
  isInvalidOptionError,
  isStoreUnavailableError,
} from '../../core/errors.ts';
import type { Deferral } from '../../core/ports/deferrals.ts';
import { Admission, CLOSING } from './admit/admission.ts';
import { reachOf } from './admit/reach.ts';
import { Refused } from './admit/refused.ts';
import { Deferring } from './defer/deferring.ts';
import { paceOf } from './defer/pace.ts';
import { DeferralRecord } from './defer/record.ts';
import { Retimer } from './defer/retimer.ts';
import { deferredOf } from './deferred.ts';
import { Arrivals } from './fetch/arrivals.ts';
import { Feed } from './fetch/feed.ts';
import { Fetching } from './fetch/fetching.ts';
import { giveGrant } from './grants.ts';
import { asError, unrecoverable } from './job-errors.ts';
import type { Govern } from './options.ts';
import { lazyQueueOf } from './queue/queue-of.ts';
import { warnOfConflicts } from './queue/warnings.ts';
import { type Deferred, type GoverningState, newCounters } from './state.ts';

// A store that does not answer refuses nothing and grants nothing: the jobs stay queued, and it is asked again then.
const STORE_RETRY_MS = 1_000;
const STORE_ERROR_EVERY_MS = 10_000;
// A job that was turned away without being told for how long is not to be the next call again.
const LEAST_AWAY_MS = 1_000;

/** What a job may run under. */
interface Admitted {
  readonly grant: ReservationHandle;
  readonly keys: Keys | undefined;
}

/** The governing of one worker: takes each job from the fetch to its start. */
export class Governing<J extends Job> {
  readonly #feed: Feed;
  readonly #refused: Refused<J>;
  readonly #record: DeferralRecord<J>;
  readonly #deferring: Deferring<J>;
  readonly #retimer: Retimer<J>;
  readonly #admission: Admission<J>;
  readonly #counters = newCounters();
  #worker: Worker | undefined;
  #fetching: Fetching | undefined;
  #queue: (() => Queue) | undefined;
  #throttledUntilMonoMs = Number.NEGATIVE_INFINITY;
  readonly #arrivals = new Arrivals();
  #lastStoreErrorMs = Number.NEGATIVE_INFINITY;

  constructor(private readonly govern: Govern<J>) {
    this.#feed = new Feed(Number.MAX_SAFE_INTEGER, Math.max(1, govern.maxHoldMs));
    const { governor } = govern;
    const failed = (error: unknown) => this.#tell(asError(error));
    this.#refused = new Refused(govern);
    this.#record = new DeferralRecord(governor.deferrals, failed);
    this.#retimer = new Retimer(
      governor,
      async (job: J) => paceOf(governor, handled(govern.cost(job)), handled(govern.keys(job))),
      failed,
    );
    this.#deferring = new Deferring(govern, this.#record, this.#counters);
    this.#admission = new Admission(govern, this.#feed, this.#refused, this.#deferring, this.#counters);
  }

  get state(): GoverningState {
    const { running, held, aside, target } = this.#feed;
    const gate = this.#fetching?.open === false ? 'closed' : 'open';
    return { running, held, aside, target, gate, ...this.#counters };
  }

  /** The jobs of the worker's queue that are put aside. */
  async deferred(): Promise<Deferred> {
    if (this.#queue === undefined) {
      throw new InvalidOptionError('worker', 'one given with attach(), whose queue it is about', undefined);
    }
    return deferredOf(this.govern.governor.deferrals, this.#queue());
  }

  /** Takes hold of the worker's fetching: from then on its concurrency follows the limit. Once. */
  attach(worker: Worker): void {
    if (this.#worker !== undefined)
      throw new TypeError('this governed processor is attached to a worker already');
    if (!isWorker(worker)) throw new InvalidOptionError('worker', 'the BullMQ Worker that runs it', worker);
    const { governor, maxHoldMs } = this.govern;
    const fetching = new Fetching(worker, this.#feed, governor.clock, maxHoldMs, () =>
      this.#governorWideWaitMs(),
    );
    // From here on nothing fails: an attempt that did must not use up the processor.
    this.#worker = worker;
    this.#fetching = fetching;
    this.#queue = lazyQueueOf(worker);
    this.#admission.attach(worker, fetching);
    this.#deferring.attach(worker);
    this.#refused.attach(worker);
    this.#retimer.attach(worker, this.#queue);
    worker.on('closing', () => {
      this.#fetching?.end();
      this.#admission.close();
    });
    warnOfConflicts(worker);
  }

  /**
   * Resolves with what `run` does once the job may run. Throws what tells BullMQ what became of it otherwise.
   *
   * @param run - Given a signal that aborts also when the job has lost its slot.
   */
  async process<R>(
    job: J,
    token: string | undefined,
    signal: AbortSignal | undefined,
    run: (signal: AbortSignal | undefined) => Promise<R>,
  ): Promise<R> {
    this.#feed.arrived();
    this.#fetching?.fetched();
    let started = false;
    try {
      const arrival = await this.#arrivals.next(job);
      const admitted = await this.#admit(job, token, signal, arrival).catch((error) => {
        if (!goesBack(error)) void this.#record.forget(job);
        throw error;
      });
      const before = this.#record.forget(job);
      if (admitted === undefined) return undefined as R; // dropped: BullMQ completes the job
      started = true;
      this.#feed.started();
      this.#fetching?.apply();
      try {
        return await this.#run(job, admitted, signal, run);
      } catch (error) {
        if (!isThrottled(error)) throw error;
        await this.#throttled(job, token, arrival, error, await before, admitted.grant);
        return undefined as R; // dropped
      }
    } finally {
      if (started) this.#feed.ended();
      else this.#feed.left();
      this.#fetching?.apply();
    }
  }

  /** Runs the job under its grant: its slots are kept meanwhile, and given back; adaptive limits hear of it. */
  async #run<R>(
    job: J,
    { grant, keys }: Admitted,
    signal: AbortSignal | undefined,
    run: (signal: AbortSignal | undefined) => Promise<R>,
  ): Promise<R> {
    const { governor, settle } = this.govern;
    const { clock } = governor;
    const startedMs = clock.monoMs();
    giveGrant(job, grant);
    const told = (outcome: { failed?: boolean }) =>
      governor.tell(grant, keys, { latencyMs: clock.monoMs() - startedMs, ...outcome });
    try {
      const ended =
        grant.fence === null ? signal : AbortSignal.any([grant.signal, ...(signal ? [signal] : [])]);
      const result = await run(ended);
      told({});
      // The job is done: what its settling meets must not run it again.
      if (settle !== undefined) await this.#settle(() => grant.settle(handled(settle(job, result))));
      return result;
    } catch (error) {
      if (!isThrottled(error)) told({ failed: true });
      throw error;
    } finally {
      await grant.release();
    }
  }

  async #settle(settle: () => Promise<void>): Promise<void> {
    try {
      await settle();
    } catch (error) {
      this.#tell(asError(error));
    }
  }

  async #admit(
    job: J,
    token: string | undefined,
    signal: AbortSignal | undefined,
    arrival: number,
  ): Promise<Admitted | undefined> {
    try {
      const reason = bypassReason(this.govern.bypass(job));
      const cost = handled(this.govern.cost(job));
      const keys = handled(this.govern.keys(job));
      if (reason) return { grant: await this.#bypass(job, cost, keys, reason), keys };
      const priority = handled(this.govern.priority(job));
      const reach = reachOf(await this.govern.governor.limits(), cost);
      const grant = await this.#admission.ask({ job, token, signal, cost, keys, priority, reach, arrival });
      return grant && { grant, keys };
    } catch (error) {
      if (error === CLOSING) return this.#admission.toHead(job, token, arrival);
      if (signal?.aborted && error === signal.reason) throw asError(error);
      if (isStoreUnavailableError(error) || isGovernorClosedError(error))
        return this.#noAnswer(job, token, arrival, error);
      if (isCostExceedsBurstError(error) || isInvalidOptionError(error)) throw unrecoverable(error);
      throw asError(error);
    }
  }

  async #noAnswer(job: J, token: string | undefined, arrival: number, error: Error): Promise<never> {
    this.#tell(error);
    if (this.#fetching === undefined) return this.#deferring.deferUnrecorded({ job, token }, STORE_RETRY_MS);
    this.#admission.shut(STORE_RETRY_MS + this.govern.maxHoldMs);
    return this.#admission.toHead(job, token, arrival);
  }

  /** The downstream throttled a job that ran. Resolves if it is dropped, and else throws what tells BullMQ that it goes back. */
  async #throttled(
    job: J,
    token: string | undefined,
    arrival: number,
    throttled: Throttled,
    before: Deferral | undefined,
    grant: ReservationHandle,
  ): Promise<void> {
    this.#counters.throttled += 1;
    const { governor } = this.govern;
    // Should the others not hear of it, this job goes back all the same.
    const { keys } = throttled;
    const pauseMs = pauseOf(throttled, governor.clock.wallMs());
    const retryAfterMs = Math.max(pauseMs, LEAST_AWAY_MS);
    const feedback = { throttled: true, retryAfterMs: pauseMs, grant };
    const told = await governor.feedback({ ...feedback, ...(keys !== undefined && { keys }) }).then(
      () => true,
      (error) => {
        this.#tell(asError(error));
        // Keys that are none must not mean no pause.
        if (keys === undefined || !isInvalidOptionError(error)) return false;
        return governor.feedback(feedback).then(
          () => true,
          () => false,
        );
      },
    );
    if (keys !== undefined || this.#fetching === undefined) {
      return this.#deferring.deferThrottled({ job, token }, retryAfterMs, before);
    }
    const untilMonoMs = governor.clock.monoMs() + retryAfterMs;
    // Once the store knows of it, it is the store that says when it ends: it may be ended early.
    if (!told || pauseMs === 0)
      this.#throttledUntilMonoMs = Math.max(this.#throttledUntilMonoMs, untilMonoMs);
    this.#admission.shut(retryAfterMs + this.govern.maxHoldMs);
    return this.#admission.toHead(job, token, arrival);
  }

  /** Tells the worker's error event: of a store that does not answer now and then, of anything else each time. */
  #tell(error: Error): void {
    if (isGovernorClosedError(error) || isStoreUnavailableError(error)) {
      const nowMs = this.govern.governor.clock.monoMs();
      if (nowMs - this.#lastStoreErrorMs < STORE_ERROR_EVERY_MS) return;
      this.#lastStoreErrorMs = nowMs;
    }
    this.#worker?.emit('error', error);
  }

  async #bypass(job: J, cost: Cost, keys: Keys | undefined, reason: string): Promise<ReservationHandle> {
    const grant = await this.govern.governor.forceN(cost, keys === undefined ? {} : { keys });
    this.#counters.bypassed += 1;
    try {
      handled(this.govern.onBypass(job, reason));
    } catch (error) {
      this.#worker?.emit('error', asError(error)); // the job is charged, and runs
    }
    return grant;
  }

  async #governorWideWaitMs(): Promise<number> {
    const limits = await this.govern.governor.peek({ cost: this.#admission.lastCost }).catch((error) => {
      // The limits have changed, and such a cost is none any more: the next job may tell, by itself.
      if (isCostExceedsBurstError(error) || isInvalidOptionError(error)) return [];
      throw error;
    });
    // For a slot one job waits in the worker; the others need not be fetched for that, but are when it is there.
    const waitsMs = limits
      .filter(({ key }) => key === null)
      .map(({ kind, waitMs, lineMs, pausedMs }) =>
        kind === 'concurrency' ? pausedMs : Math.max(waitMs, lineMs),
      );
    return Math.max(0, this.#throttledUntilMonoMs - this.govern.governor.clock.monoMs(), ...waitsMs);
  }
}

const goesBack = (error: unknown): boolean => error instanceof DelayedError || error instanceof WaitingError;

// By what is used of it: another copy of BullMQ has another class.
function isWorker(value: unknown): value is Worker {
  if (typeof value !== 'object' || value === null) return false;
  const { concurrency, pause, resume, on, name } = value as Partial<Worker>;
  return (
    typeof concurrency === 'number' &&
    typeof name === 'string' &&
    [pause, resume, on].every((method) => typeof method === 'function')
  );
}

/** Anything but a text is no reason: a promise, which `async` would make of it, must not let every job pass. */
function bypassReason(reason: unknown): string | undefined {
  if (reason === undefined || reason === null || reason === false || reason === '') return undefined;
  if (typeof reason === 'string') return reason;
  handled(reason);
  throw new InvalidOptionError(
    'what govern.bypass returns',
    'a reason (a string), undefined or false',
    reason,
  );
}

/** A promise where a value is wanted is refused later; its own rejection must not end the process meanwhile. */
function handled<T>(value: T): T {
  if (value instanceof Promise) value.catch(() => {});
  return value;
}
