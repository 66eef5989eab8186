import type { Job, Queue, Worker } from 'bullmq';
import type { Refusal } from '../../../core/answers.ts';
import { oneOf } from '../../../core/checks.ts';
import { type Govern, REFUSED_ACTIONS, type RefusedAction } from '../options.ts';
import { queueOf } from '../queue/queue-of.ts';

// A requeued job comes round as soon as the others have had their turn, yet never in a hot loop: each round doubles this.
const REQUEUE_MS = 100;
const MAX_REQUEUE_MS = 60_000;

/** What happens to a job that may not run now. */
export class Refused<J extends Job> {
  #queue: Queue | undefined;

  constructor(private readonly govern: Pick<Govern<J>, 'onRefused'>) {}

  /** The worker's queue can be asked whether other jobs wait (for `'requeue'`). */
  attach(worker: Worker): void {
    if (this.govern.onRefused !== 'requeue' && typeof this.govern.onRefused !== 'function') return;
    this.#queue = queueOf(worker);
    worker.on('closing', () => void this.#queue?.close().catch(() => {}));
  }

  /** Whether a refused job is asked about before it takes a slot, since it may not want one. */
  get decidesLater(): boolean {
    return this.govern.onRefused !== 'delay';
  }

  /** What the options say of this job. @throws InvalidOptionError if a function of the user's answers nonsense. */
  async actionFor(job: J, refusal: Refusal): Promise<RefusedAction> {
    const { onRefused } = this.govern;
    if (typeof onRefused !== 'function') return onRefused;
    return oneOf('what govern.onRefused returns', await onRefused(job, refusal), REFUSED_ACTIONS);
  }

  /** How long a requeued job stays away, or undefined if nothing else waits and it may as well have its slot. */
  async requeueMs(job: J): Promise<number | undefined> {
    const counts = await this.#queue?.getJobCounts('wait', 'prioritized').catch(() => undefined);
    if (counts !== undefined && (counts.wait ?? 0) + (counts.prioritized ?? 0) === 0) return undefined;
    const rounds = Math.max(0, job.attemptsStarted - job.attemptsMade - 1);
    return Math.min(MAX_REQUEUE_MS, REQUEUE_MS * 2 ** Math.min(rounds, 20));
  }
}
