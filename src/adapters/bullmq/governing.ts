import { DelayedError, type Job, WaitingError, type Worker } from 'bullmq';
import { type Deferral, deskOf, type Ended } from '../../core/calls/desk.ts';
import { handled } from '../../core/checks.ts';
import { InvalidOptionError } from '../../core/errors.ts';
import { Admission, type Admitted } from './admit/admission.ts';
import { paceOf } from './admit/pace.ts';
import { Deferring } from './defer/defer.ts';
import { Retimer } from './defer/retimer.ts';
import { Arrivals, type Fetched } from './fetch/arrivals.ts';
import { Gate } from './fetch/gate.ts';
import type { Govern } from './options.ts';
import { isWorker, lazyQueueOf } from './queue/queue-of.ts';
import { warnOfConflicts } from './queue/warnings.ts';
import { type Deferred, type GoverningState, grants, Shared } from './state.ts';

// A throttled job that was not told for how long must not be the next call again.
const LEAST_AWAY_MS = 1_000;

type Run<R> = (signal: AbortSignal | undefined) => Promise<R>;

/** The governing of one worker: joins the parts that take each of its jobs from the fetch to the end. */
export class Governing<J extends Job> {
  readonly #shared: Shared<J>;
  readonly #arrivals = new Arrivals();
  readonly #deferring: Deferring<J>;
  readonly #retimer: Retimer<J>;
  readonly #admission: Admission<J>;

  constructor(private readonly govern: Govern<J>) {
    const { governor } = govern;
    this.#shared = new Shared(govern);
    this.#deferring = new Deferring(this.#shared);
    this.#admission = new Admission(this.#shared, this.#deferring);
    const pace = async (job: J) => paceOf(governor, handled(govern.cost(job)), handled(govern.keys(job)));
    this.#retimer = new Retimer(governor, pace, this.#shared.report);
  }

  get state(): GoverningState {
    return this.#shared.state;
  }

  /** The jobs of the worker's queue that are deferred. */
  async deferred(): Promise<Deferred> {
    const { attached } = this.#shared;
    if (attached !== undefined) return this.#deferring.deferredOf(attached.queue());
    throw new InvalidOptionError('worker', 'one that was given with attach(worker) first', undefined);
  }

  /** Takes hold of the worker's fetching: from then on its concurrency follows the limit. Once. */
  attach(worker: Worker): void {
    if (this.#shared.attached !== undefined)
      throw new TypeError('this governed processor is attached to a worker already');
    if (!isWorker(worker)) throw new InvalidOptionError('worker', 'the BullMQ Worker that runs it', worker);
    const { governor, maxHoldMs } = this.govern;
    const waitMs = () => this.#admission.governorWideWaitMs();
    const gate = new Gate(worker, this.#shared.feed, governor.clock, maxHoldMs, waitMs);
    // From here on nothing fails: an attempt that did must not use up the processor.
    const queue = lazyQueueOf(worker);
    this.#shared.attached = { worker, gate, queue };
    this.#retimer.attach(worker, queue);
    worker.on('closing', () => {
      gate.end();
      this.#shared.putBack.hurry();
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
    run: Run<R>,
  ): Promise<R> {
    const { feed } = this.#shared;
    feed.arrived();
    this.#shared.attached?.gate.fetched();
    let started = false;
    try {
      const fetched = { job, token, signal, arrival: await this.#arrivals.next(job) };
      const admitted = await this.#admission.admit(fetched).catch((error) => {
        const goesBack = error instanceof DelayedError || error instanceof WaitingError;
        if (!goesBack) void this.#deferring.forget(job);
        throw error;
      });
      const before = this.#deferring.forget(job);
      if (admitted === undefined) return undefined as R; // dropped: BullMQ completes the job
      started = true;
      feed.started();
      this.#shared.attached?.gate.apply();
      const ended = await this.#run(fetched, admitted, run);
      if ('result' in ended) return ended.result;
      await this.#throttled(fetched, ended, await before);
      return undefined as R; // dropped
    } finally {
      if (started) feed.ended();
      else feed.left();
      this.#shared.attached?.gate.apply();
    }
  }

  #run<R>({ job, signal }: Fetched<J>, { grant, keys }: Admitted, run: Run<R>): Promise<Ended<R>> {
    const { governor, settle } = this.govern;
    return deskOf(governor).run({
      grant,
      keys,
      work: () => {
        grants.set(job, grant);
        const signals = signal ? [signal, grant.signal] : [grant.signal];
        return run(grant.fence === null ? signal : AbortSignal.any(signals));
      },
      settle: settle && ((result) => settle(job, result)),
      report: this.#shared.report,
    });
  }

  /** The downstream throttled a job that ran. Resolves if it is dropped, and else throws what tells BullMQ that it goes back. */
  async #throttled(
    fetched: Fetched<J>,
    { throttled, pauseMs, isPaused }: Exclude<Ended<unknown>, { result: unknown }>,
    before: Deferral | undefined,
  ): Promise<void> {
    const { attached, counters, putBack } = this.#shared;
    counters.throttled += 1;
    const awayMs = Math.max(pauseMs, LEAST_AWAY_MS);
    if (throttled.keys !== undefined || attached === undefined) {
      return this.#deferring.deferThrottled(fetched, awayMs, before);
    }
    // Once the store knows of it, it is the store that says when it ends: it may be ended early.
    if (isPaused) attached.gate.refused(awayMs);
    else attached.gate.shutFor(awayMs);
    return putBack.toHead(fetched);
  }
}
