import type { Stats } from '../downstream/arrivals.ts';
import type { Counters } from '../process/messages.ts';
import type { Children } from './children.ts';
import type { DemoOptions } from './options.ts';
import type { Service } from './service.ts';

/** What a phase works with. */
export interface Stage {
  readonly options: DemoOptions;
  readonly redisUrl: string;
  readonly service: Service;
  readonly children: Children;
  /** Aborted when the demo has to end; its reason is thrown wherever the phase is. */
  readonly signal: AbortSignal;
  /** Says what is being done while there is nothing to show. */
  readonly say: (line: string) => void;
  readonly show: (progress: Progress) => void;
}

export interface PhasePlan {
  readonly governed: boolean;
  readonly jobs: number;
  /** With traffic of many keys: the jobs that have to be done before the phase may end. */
  readonly jobsOfOthers?: number;
  readonly queueNames: readonly string[];
  /** The phase ends after so long, done or not. */
  readonly maxMs?: number;
}

/** What is seen while a phase runs. */
export interface Progress {
  readonly governed: boolean;
  readonly jobs: number;
  readonly elapsedMs: number;
  readonly stats: Stats;
  readonly counters: Counters;
  /** Jobs put aside until later, now. */
  readonly delayed: number;
}

/** Waits for `work`, but no longer than until the demo has to end. */
export async function orAbort<Value>(signal: AbortSignal, work: Promise<Value>): Promise<Value> {
  signal.throwIfAborted();
  let onAbort!: () => void;
  const aborted = new Promise<never>((_, reject) => {
    onAbort = () => reject(signal.reason);
    signal.addEventListener('abort', onAbort, { once: true });
  });
  try {
    return await Promise.race([work, aborted]);
  } finally {
    signal.removeEventListener('abort', onAbort);
  }
}
