import type { Grant } from '../answers.ts';
import type { Clock } from '../clock.ts';
import type { Cost, Keys } from '../decide/demands.ts';
import { isThrottled } from '../downstream/throttled.ts';
import { InvalidOptionError, isInvalidOptionError } from '../errors.ts';
import type { ReservationHandle } from './grant.ts';
import { checkNames, RUN_NAMES, type RunOptions } from './options.ts';
import type { Outcomes, WorkOutcome } from './outcomes.ts';
import type { Waiting } from './wait.ts';

export type Work<T> = (grant: Grant) => Promise<T> | T;

/** Runs work under a grant: waits for it, tells what became of the work, corrects its cost, gives its slots back. */
export class Running {
  constructor(
    private readonly clock: Clock,
    private readonly waiting: Waiting,
    private readonly outcomes: Outcomes,
  ) {}

  async run<T>(options: RunOptions<T>, work: Work<T>): Promise<T> {
    if (typeof work !== 'function') throw new InvalidOptionError('work', 'a function', work);
    checkNames(options, RUN_NAMES);
    const { cost = 1, settle, ...waitOptions } = options;
    if (settle !== undefined && typeof settle !== 'function') {
      throw new InvalidOptionError('settle', 'a function of the result', settle);
    }
    const grant = await this.waiting.waitN(cost, waitOptions);
    try {
      const result = await this.#told(work, grant, waitOptions.keys);
      if (settle !== undefined) await settled(grant, settle(result));
      return result;
    } finally {
      await grant.release();
    }
  }

  async #told<T>(work: Work<T>, grant: ReservationHandle, keys: Keys | undefined): Promise<T> {
    const startedMs = this.clock.monoMs();
    const tell = (outcome: Omit<WorkOutcome, 'latencyMs'>) =>
      this.outcomes.tell(grant, keys, { latencyMs: this.clock.monoMs() - startedMs, ...outcome });
    try {
      const result = await work(grant);
      tell({});
      return result;
    } catch (error) {
      const throttled = isThrottled(error);
      tell({ failed: !throttled, throttled });
      if (throttled) await this.outcomes.throttled(error);
      throw error;
    }
  }
}

// Work that is done is not to fail because the store is away: then the estimate stays charged.
async function settled(grant: Grant, actual: Cost): Promise<void> {
  await grant.settle(actual).catch((error: unknown) => {
    if (isInvalidOptionError(error)) throw error;
  });
}
