import type { Queue, Worker } from 'bullmq';
import type { Grant } from '../../core/answers.ts';
import { isGovernorClosedError, isStoreUnavailableError } from '../../core/errors.ts';
import { Feed } from './fetch/feed.ts';
import type { Gate } from './fetch/gate.ts';
import { PutBack } from './fetch/put-back.ts';
import type { Govern } from './options.ts';

const STORE_ERROR_EVERY_MS = 10_000;

/** What a governed worker does at this moment, and has done since it was made. */
export interface GoverningState extends Readonly<Counters> {
  /** Jobs whose processor runs. */
  readonly running: number;
  /** Jobs that ask the governor or wait in process for their tokens. */
  readonly held: number;
  /** Jobs that wait in process for a turn of their key. */
  readonly nearby: number;
  /** The number of held jobs the feed aims at; below 1 it fetches none. */
  readonly target: number;
  /** Whether the worker fetches jobs. */
  readonly gate: 'open' | 'shut';
}

/** A user may throw anything, `cancelJob(id, 'why')` aborts with a text, and BullMQ reads a failure's message. */
export function asError(reason: unknown): Error {
  return reason instanceof Error ? reason : new Error(String(reason ?? 'no reason was given'));
}

/** Whether the store gave no answer, which says nothing about the job. */
export const isAway = (error: unknown): boolean =>
  isStoreUnavailableError(error) || isGovernorClosedError(error);

/** What is counted since the worker was made. */
class Counters {
  granted = 0;
  /** Grants that had to be waited for in process. */
  holds = 0;
  /** Jobs deferred until a turn, or to the tail. */
  deferrals = 0;
  /** Jobs put back to the head of their queue. */
  returned = 0;
  dropped = 0;
  failed = 0;
  bypassed = 0;
  /** Jobs that met `maxDeferrals` or `maxDeferredMs`, whatever became of them then. */
  deferralLimited = 0;
  /** Jobs that ran and threw `Throttled`. */
  throttled = 0;
}

/** What the parts share that govern one worker. */
export class Shared<J> {
  readonly counters = new Counters();
  readonly feed: Feed;
  readonly putBack: PutBack;
  /** The worker, once there is one whose fetching can be stopped. */
  attached: { readonly worker: Worker; readonly gate: Gate; readonly queue: () => Queue } | undefined;
  #lastStoreErrorMs = Number.NEGATIVE_INFINITY;

  constructor(readonly govern: Govern<J>) {
    this.feed = new Feed(Number.MAX_SAFE_INTEGER, govern.maxHoldMs);
    this.putBack = new PutBack(govern.governor.clock, this.counters);
  }

  get state(): GoverningState {
    const { running, held, nearby, target } = this.feed;
    const gate = this.attached?.gate.open === false ? 'shut' : 'open';
    return { running, held, nearby, target, gate, ...this.counters };
  }

  /** Tells the worker's error event: of a store that does not answer now and then, of anything else each time. */
  readonly report = (reason: unknown): void => {
    const error = asError(reason);
    if (isAway(error)) {
      const nowMs = this.govern.governor.clock.monoMs();
      if (nowMs - this.#lastStoreErrorMs < STORE_ERROR_EVERY_MS) return;
      this.#lastStoreErrorMs = nowMs;
    }
    this.attached?.worker.emit('error', error);
  };
}

/** The jobs of a queue that are deferred at this moment, by all workers of it. */
export interface Deferred {
  readonly count: number;
  /** Milliseconds since the one that has been deferred for longest first was; 0: no job is. */
  readonly oldestMs: number;
}

/** The grants that jobs run under. */
export const grants = new WeakMap<object, Grant>();

/**
 * The grant that a job runs under, for its processor: the fencing number of its slot (`fence`), the signal that aborts when
 * the slot was lost, and `settle`. Undefined outside a governed processor.
 *
 * @example
 * const worker = new GovernedWorker('orders', (job) => write(job.data, { fence: grantOf(job)?.fence }), options);
 */
export const grantOf = (job: object): Grant | undefined => grants.get(job);
