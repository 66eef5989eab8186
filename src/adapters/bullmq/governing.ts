import type { Job, Worker } from 'bullmq';
import {
  InvalidOptionError,
  isCostExceedsBurstError,
  isGovernorClosedError,
  isInvalidOptionError,
  isStoreUnavailableError,
} from '../../core/errors.ts';
import type { Cost, Keys } from '../../core/request.ts';
import { Admission, CLOSING } from './admission.ts';
import { Arrivals } from './arrivals.ts';
import { Feed } from './feed.ts';
import { Fetching } from './fetching.ts';
import { asError, unrecoverable } from './job-errors.ts';
import type { Govern } from './options.ts';
import { reachOf } from './reach.ts';
import { Refused } from './refused.ts';
import { type GoverningState, newCounters } from './state.ts';
import { warnOfConflicts } from './warnings.ts';

// A store that does not answer refuses nothing and grants nothing: the jobs stay queued, and it is asked again then.
const STORE_RETRY_MS = 1_000;
const STORE_ERROR_EVERY_MS = 10_000;

/** The governing of one worker: takes each job from the fetch to its start. */
export class Governing<J extends Job> {
  readonly #feed: Feed;
  readonly #refused: Refused<J>;
  readonly #admission: Admission<J>;
  readonly #counters = newCounters();
  #worker: Worker | undefined;
  #fetching: Fetching | undefined;
  readonly #arrivals = new Arrivals();
  #lastStoreErrorMs = Number.NEGATIVE_INFINITY;

  constructor(private readonly govern: Govern<J>) {
    this.#feed = new Feed(Number.MAX_SAFE_INTEGER, Math.max(1, govern.maxHoldMs));
    this.#refused = new Refused(govern, govern.governor.clock);
    this.#admission = new Admission(govern, this.#feed, this.#refused, this.#counters);
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
    this.#admission.attach(worker, this.#fetching);
    this.#refused.attach(worker);
    worker.on('closing', () => {
      this.#fetching?.end();
      this.#admission.close();
    });
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
    const arrival = await this.#arrivals.next(job);
    try {
      const reason = bypassReason(this.govern.bypass(job));
      const cost = handled(this.govern.cost(job));
      const keys = handled(this.govern.keys(job));
      if (reason) return await this.#bypass(job, cost, keys, reason);
      const reach = reachOf(await this.govern.governor.limits(), cost);
      return await this.#admission.ask({ job, token, signal, cost, keys, reach, arrival });
    } catch (error) {
      if (error === CLOSING) return this.#admission.toHead(job, token, arrival);
      if (signal?.aborted && error === signal.reason) throw asError(error);
      if (isStoreUnavailableError(error) || isGovernorClosedError(error))
        return this.#noAnswer(job, token, arrival, error);
      if (isCostExceedsBurstError(error)) throw unrecoverable(error);
      throw asError(error);
    }
  }

  async #noAnswer(job: J, token: string | undefined, arrival: number, error: Error): Promise<never> {
    const { clock } = this.govern.governor;
    if (clock.monoMs() - this.#lastStoreErrorMs >= STORE_ERROR_EVERY_MS) {
      this.#lastStoreErrorMs = clock.monoMs();
      this.#worker?.emit('error', error);
    }
    if (this.#fetching === undefined) return this.#admission.defer({ job, token }, STORE_RETRY_MS);
    this.#admission.shut(STORE_RETRY_MS + this.govern.maxHoldMs);
    return this.#admission.toHead(job, token, arrival);
  }

  async #bypass(job: J, cost: Cost, keys: Keys | undefined, reason: string): Promise<boolean> {
    await this.govern.governor.forceN(cost, keys === undefined ? {} : { keys });
    this.#counters.bypassed += 1;
    try {
      handled(this.govern.onBypass(job, reason));
    } catch (error) {
      this.#worker?.emit('error', asError(error)); // the job is charged, and runs
    }
    return true;
  }

  async #governorWideWaitMs(): Promise<number> {
    const limits = await this.govern.governor.peek({ cost: this.#admission.lastCost }).catch((error) => {
      // The limits have changed, and such a cost is none any more: the next job may tell, by itself.
      if (isCostExceedsBurstError(error) || isInvalidOptionError(error)) return [];
      throw error;
    });
    return Math.max(0, ...limits.filter(({ key }) => key === null).map(({ waitMs }) => waitMs));
  }
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
