import type { Job, Processor, Worker } from 'bullmq';
import { plainObject } from '../../core/checks.ts';
import { InvalidOptionError } from '../../core/errors.ts';
import type { Governor } from '../../core/governor.ts';
import { Governing } from './governing.ts';
import { type GovernOptions, parseGovernOptions } from './options.ts';
import type { Deferred, GoverningState } from './state.ts';

/** A processor that asks the governor before each job. */
export interface Governed<T, R, N extends string> {
  (job: Job<T, R, N>, token?: string, signal?: AbortSignal): Promise<R>;
  /**
   * Gives it a handle on the worker that runs it, for the feed. Without one it still governs, but fetches what it then
   * has to defer: more starts per job, and order kept less well.
   */
  attach(worker: Worker<T, R, N>): void;
  /** What it does now and has done. */
  readonly governing: GoverningState;
  /** The jobs of the attached worker's queue that are deferred at this moment, by all its workers. */
  deferred(): Promise<Deferred>;
}

/**
 * Wraps a BullMQ processor, for a `Worker` that is made elsewhere (for example by NestJS).
 *
 * The result has the processor's own signature; token and signal are passed on. A job runs only once its tokens are
 * taken; until then the processor is not called, so nothing of it is ever done twice. A refused job keeps its data,
 * options, attempts, place and priority; it raises no `failed` event.
 *
 * @param governor - What every job asks.
 * @param processor - A function. A sandboxed processor (a path) needs {@link GovernedWorker}.
 * @param options - As `govern` of {@link GovernedWorker}, without `governor`.
 * @throws {@link InvalidOptionError} `FLYBALL_INVALID_OPTION`.
 *
 * @example
 * const processor = governed(governor, async (job) => call(job.data), { cost: (job) => job.data.items });
 * const worker = new Worker('orders', processor, { connection, concurrency: 50 });
 * processor.attach(worker);
 */
export function governed<T, R, N extends string>(
  governor: Governor,
  processor: Processor<T, R, N>,
  options: Omit<GovernOptions<Job<T, R, N>>, 'governor'> = {},
): Governed<T, R, N> {
  if (typeof processor !== 'function') {
    throw new InvalidOptionError(
      'processor',
      'a function; for a sandboxed processor use GovernedWorker',
      processor,
    );
  }
  const governing = new Governing<Job<T, R, N>>(
    parseGovernOptions({ ...plainObject('options', options), governor }),
  );
  // Three parameters, as BullMQ makes an AbortSignal only for processors that take one.
  const run = (job: Job<T, R, N>, token?: string, signal?: AbortSignal): Promise<R> =>
    governing.process(job, token, signal, (ended) => processor(job, token, ended));
  return Object.defineProperties(run, {
    attach: { value: (worker: Worker) => governing.attach(worker) },
    governing: { get: () => governing.state },
    deferred: { value: () => governing.deferred() },
  }) as Governed<T, R, N>;
}

/**
 * The number of this attempt, from 1: how often the job has really run. `job.attemptsStarted` counts starts that were
 * refused too, so a processor that picks a step by it would skip steps.
 */
export function attemptOf(job: Pick<Job, 'attemptsMade'>): number {
  return job.attemptsMade + 1;
}
