import { type Job, type Processor, Worker, type WorkerListener, type WorkerOptions } from 'bullmq';
import { plainObject } from '../../core/checks.ts';
import { InvalidOptionError } from '../../core/errors.ts';
import { type Governed, governed } from './governed.ts';
import { type DeferralEnd, type DeferralLimit, type GovernOptions, parseGovernOptions } from './options.ts';
import type { Deferred, GoverningState } from './state.ts';

export interface GovernedWorkerOptions<T, R, N extends string> extends WorkerOptions {
  /** How its jobs are governed. */
  govern: GovernOptions<Job<T, R, N>>;
}

/** BullMQ's events of a worker, and one more. */
export interface GovernedWorkerListener<T, R, N extends string> extends WorkerListener<T, R, N> {
  /** A job met `maxDeferrals` or `maxDeferredMs`, and `end` is what becomes of it. */
  deferralLimited: (job: Job<T, R, N>, limit: DeferralLimit & { readonly end: DeferralEnd }) => void;
}

/**
 * BullMQ's Worker with one more option: each job asks a governor before it runs.
 *
 * Its concurrency follows what the limit can feed; `concurrency` is the most. Jobs that would have to wait stay in the
 * queue, in order and with their priority; a job whose key has no room is deferred until its turn. Sandboxed processors
 * (a path or URL) are governed too: in this process, before the job is handed to the sandbox.
 *
 * `close()` ends all holds: their tokens are handed back, and the jobs go back to the head of the queue without an
 * attempt. The governor is not closed with it.
 *
 * @param name - The queue.
 * @param processor - As BullMQ's.
 * @param options - As BullMQ's, and `govern`.
 * @throws {@link InvalidOptionError} `FLYBALL_INVALID_OPTION`.
 *
 * @example
 * const worker = new GovernedWorker('orders', async (job) => call(job.data), {
 *   connection,
 *   concurrency: 50,
 *   govern: { governor, cost: (job) => job.data.items, keys: (job) => ({ shop: job.data.shop }) },
 * });
 */
// biome-ignore lint/suspicious/noExplicitAny: BullMQ's own defaults.
// biome-ignore lint/suspicious/noUnsafeDeclarationMerging: the interface adds only types to methods that BullMQ's class has.
export class GovernedWorker<T = any, R = any, N extends string = string> extends Worker<T, R, N> {
  readonly #governed: Governed<T, R, N>;

  constructor(
    name: string,
    processor: string | URL | Processor<T, R, N>,
    options: GovernedWorkerOptions<T, R, N>,
  ) {
    const { govern, ...workerOptions } = plainObject('options', options) as unknown as typeof options;
    // Before BullMQ opens connections: a mistake must not leave a worker behind that runs ungoverned.
    parseGovernOptions(govern);
    if (processor === undefined || processor === null) {
      throw new InvalidOptionError(
        'processor',
        'a function, or the path or URL of a sandboxed one',
        processor,
      );
    }
    // BullMQ makes an AbortSignal only for a processor of three parameters, and a hold must end by it too.
    const taking: typeof processor =
      typeof processor === 'function' ? (job, token, signal) => processor(job, token, signal) : processor;
    super(name, taking, workerOptions);
    const { governor, ...rest } = govern;
    // BullMQ has made one function of whatever the processor was, and calls it at the first fetch, which is later than now.
    this.#governed = governed(governor, this.processFn, rest);
    this.processFn = this.#governed;
    this.#governed.attach(this);
  }

  /** What it does now and has done. */
  get governing(): GoverningState {
    return this.#governed.governing;
  }

  /** The jobs of its queue that are deferred at this moment, by all its workers. */
  deferred(): Promise<Deferred> {
    return this.#governed.deferred();
  }
}

type Listener<T, R, N extends string> = GovernedWorkerListener<T, R, N>;

// BullMQ's own methods, with the types of one event more.
export interface GovernedWorker<T, R, N extends string> {
  on<E extends keyof Listener<T, R, N>>(event: E, listener: Listener<T, R, N>[E]): this;
  once<E extends keyof Listener<T, R, N>>(event: E, listener: Listener<T, R, N>[E]): this;
  off<E extends keyof Listener<T, R, N>>(event: E, listener: Listener<T, R, N>[E]): this;
}
