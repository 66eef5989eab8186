import { round, roundOrNull, spanSeconds, totalCost, utilisation, worstExcess } from '../measure/measure.ts';
import { timed } from '../measure/timed.ts';
import { type KeyFigures, keyFigures, lostOfKeys } from './key-figures.ts';
import type { DemoOptions } from './options.ts';
import type { Outcome } from './phase.ts';

/** The result of a demo, in the order and with the names of its JSON. */
export interface Figures {
  readonly rate: number;
  readonly burst: number;
  readonly processes: number;
  readonly concurrency: number;
  readonly jobs: number;
  /** Jobs the service has answered with success. */
  readonly completed: number;
  /** Jobs that were never answered with success, without those of the flooding key that still wait. */
  readonly lost: number;
  /** Jobs that were answered more than once. */
  readonly duplicated: number;
  /** From the first call to the last. */
  readonly seconds: number;
  readonly utilisation: number | null;
  readonly worstExcess: number;
  readonly downstream429: number;
  /** `null` if there was no ungoverned phase. */
  readonly ungoverned429: number | null;
  /** How often a job had been started when it called the service. */
  readonly startsPerJobMean: number | null;
  readonly startsPerJobMax: number | null;
  readonly deferrals: number;
  readonly failedEvents: number;
  /** While the workers ran: without adding a backlog, but with adding traffic over time. */
  readonly redisCommandsPerJob: number | null;
  readonly keys?: KeyFigures;
}

/** How one phase treated the service. */
export interface Load {
  readonly calls: number;
  readonly refused: number;
  readonly tokensPerSecond: number | null;
  readonly worstExcess: number;
}

export function loadOf({ trace, counters }: Outcome, { rate, burst }: DemoOptions): Load {
  const arrivals = timed(trace.arrivals);
  const seconds = spanSeconds(arrivals);
  return {
    calls: arrivals.length,
    refused: counters.refused,
    tokensPerSecond: seconds > 0 ? round(totalCost(arrivals) / seconds) : null,
    worstExcess: round(worstExcess(arrivals, rate, burst)),
  };
}

export function figuresOf(options: DemoOptions, governed: Outcome, ungoverned: Outcome | undefined): Figures {
  const { rate, burst, processes, concurrency, jobs, keys } = options;
  const { arrivals } = governed.trace;
  const all = timed(arrivals);
  const answered = arrivals.filter((arrival) => arrival[6] === 0);
  const startsOfJob = new Map(answered.map(([, , job, , attempt]) => [job, attempt]));
  const starts = [...startsOfJob.values()];
  const completed = starts.length;
  return {
    rate,
    burst,
    processes,
    concurrency,
    jobs,
    completed,
    lost: keys === undefined ? jobs - completed : lostOfKeys(options, keys, governed),
    duplicated: answered.length - completed,
    seconds: round(spanSeconds(all)),
    utilisation: roundOrNull(utilisation(all, rate, burst)),
    worstExcess: round(worstExcess(all, rate, burst)),
    downstream429: refusedIn(governed),
    ungoverned429: ungoverned === undefined ? null : refusedIn(ungoverned),
    startsPerJobMean: roundOrNull(starts.length > 0 ? starts.reduce((a, b) => a + b) / starts.length : null),
    startsPerJobMax: starts.length > 0 ? starts.reduce((a, b) => Math.max(a, b)) : null,
    deferrals: governed.counters.deferrals,
    failedEvents: governed.failedEvents,
    redisCommandsPerJob: roundOrNull(completed > 0 ? governed.redisCommands / completed : null),
    ...(keys === undefined ? {} : { keys: keyFigures(options, keys, governed) }),
  };
}

function refusedIn({ trace }: Outcome): number {
  return trace.arrivals.reduce((count, arrival) => count + arrival[6], 0);
}
