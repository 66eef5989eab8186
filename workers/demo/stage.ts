import type { Stats } from '../downstream/arrivals.ts';
import type { Ground } from '../parent/conduct.ts';
import type { Service } from '../parent/service.ts';
import type { Counters } from '../process/messages.ts';
import type { DemoOptions } from './options.ts';

/** What a phase works with. */
export interface Stage extends Ground {
  readonly options: DemoOptions;
  readonly service: Service;
  /** Says what happens while there is nothing to show. */
  readonly say: (line: string) => void;
  readonly show: (progress: Progress) => void;
}

export interface PhasePlan {
  readonly governed: boolean;
  readonly jobs: number;
  /** With traffic of many keys: the jobs that must be done before the phase may end. */
  readonly jobsOfOthers?: number;
  readonly queueNames: readonly string[];
  /** The phase ends after this long, done or not. */
  readonly maxMs?: number;
}

/** What is seen while a phase runs. */
export interface Progress {
  readonly governed: boolean;
  readonly jobs: number;
  readonly elapsedMs: number;
  readonly stats: Stats;
  readonly counters: Counters;
  /** Jobs that are deferred now. */
  readonly delayed: number;
}
