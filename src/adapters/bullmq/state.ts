import type { Grant } from '../../core/answers.ts';

/** What a governed worker does at this moment, and has done since it was made. */
export interface GoverningState {
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
  readonly granted: number;
  /** Grants that had to be waited for in process. */
  readonly holds: number;
  /** Jobs deferred until a turn, or to the tail. */
  readonly deferrals: number;
  /** Jobs put back to the head of their queue. */
  readonly returned: number;
  readonly dropped: number;
  readonly failed: number;
  readonly bypassed: number;
  /** Jobs that met `maxDeferrals` or `maxDeferredMs`, whatever became of them then. */
  readonly deferralLimited: number;
  /** Jobs that ran and threw `Throttled`. */
  readonly throttled: number;
}

/** The jobs of a queue that are deferred at this moment, by all workers of it. */
export interface Deferred {
  readonly count: number;
  /** Milliseconds since the one that has been deferred for longest first was; 0: none is. */
  readonly oldestMs: number;
}

const COUNTED = [
  'granted',
  'holds',
  'deferrals',
  'returned',
  'dropped',
  'failed',
  'bypassed',
  'deferralLimited',
  'throttled',
] as const;

/** What is counted since the worker was made. */
export type Counters = Record<(typeof COUNTED)[number], number>;

export const newCounters = (): Counters => Object.fromEntries(COUNTED.map((name) => [name, 0])) as Counters;

const grants = new WeakMap<object, Grant>();

/** The job runs under this grant from now on. */
export function giveGrant(job: object, grant: Grant): void {
  grants.set(job, grant);
}

/**
 * The grant that a job runs under, for its processor: the fencing number of its slot (`fence`), the signal that aborts when
 * the slot was lost, and `settle`. Undefined outside a governed processor.
 *
 * @example
 * const worker = new GovernedWorker('orders', (job) => write(job.data, { fence: grantOf(job)?.fence }), options);
 */
export const grantOf = (job: object): Grant | undefined => grants.get(job);
