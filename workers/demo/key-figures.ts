import { percentile, round, roundOrNull, totalCost, utilisation, worstExcess } from '../measure/measure.ts';
import { FLOODING_KEY, jobId, type KeyedTraffic, type PlannedJob, planTraffic } from '../traffic.ts';
import type { DemoOptions } from './options.ts';
import type { Outcome } from './phase.ts';

/** What the keys got while traffic was offered. Asked and served are tokens. */
export interface KeyFigures {
  readonly others: {
    readonly asked: number;
    readonly served: number;
    /** The worst-served of these keys: what it got, over what it asked for. */
    readonly share: number | null;
    /** 99 of 100 of their jobs were no older than this when they reached the service. */
    readonly p99Ms: number | null;
  };
  readonly flooding: {
    /** Tokens a second it got, without the burst. */
    readonly rate: number | null;
    readonly asked: number;
    readonly served: number;
    /** The same as for the whole, for this key's own limit. */
    readonly worstExcess: number;
    /** Its jobs that were left when the demo ended. */
    readonly backlog: number;
  };
}

/** How many jobs are not of the flooding key. */
export function jobsOfOthers({ jobs, cost, seed }: DemoOptions, traffic: KeyedTraffic): number {
  return planTraffic(jobs, cost, seed, traffic).filter(({ key }) => key !== FLOODING_KEY).length;
}

/** Only the flooding key may have work left; a job of another key that is still in its queue counts as lost. */
export function lostOfKeys(options: DemoOptions, traffic: KeyedTraffic, { trace, backlog }: Outcome): number {
  const answered = new Set<string>();
  const answeredOfOthers = new Set<string>();
  for (const [, , job, key, , , refused] of trace.arrivals) {
    if (refused) continue;
    answered.add(job);
    if (key !== FLOODING_KEY) answeredOfOthers.add(job);
  }
  const others = jobsOfOthers(options, traffic) - answeredOfOthers.size;
  return Math.max(others, options.jobs - answered.size - backlog);
}

// What was asked for just before the end cannot have been served. A job has a second to get through.
const GRACE_MS = 1_000;

/** Compares what was asked for (the plan) with what reached the service (its trace). */
export function keyFigures(options: DemoOptions, traffic: KeyedTraffic, governed: Outcome): KeyFigures {
  const { trace, offered, backlog } = governed;
  const plan = planTraffic(options.jobs, options.cost, options.seed, traffic);
  const answered = trace.arrivals.filter((arrival) => arrival[6] === 0);
  const inTime = new Set(
    answered
      .filter(([atUs]) => trace.epochMs + atUs / 1000 <= offered.endedAtMs)
      .map(([, , job]) => job.slice(job.lastIndexOf(':') + 1)),
  );
  const lastAskedMs = offered.endedAtMs - offered.startedAtMs - GRACE_MS;
  const asked = plan.filter(({ atMs }) => atMs <= lastAskedMs);
  const others = asked.filter(({ key }) => key !== FLOODING_KEY);
  const shares = [...new Set(others.map(({ key }) => key))].map((key) => {
    const jobs = others.filter((job) => job.key === key);
    return totalCost(jobs.filter(served)) / totalCost(jobs);
  });
  const agesMs = answered.filter(([, , , key]) => key !== FLOODING_KEY).map((arrival) => arrival[5]);
  const flood = answered
    .filter(([atUs, , , key]) => key === FLOODING_KEY && trace.epochMs + atUs / 1000 <= offered.endedAtMs)
    .map(([atUs, cost]) => ({ atUs, cost }));
  // A key's limit has the default burst, one second's worth.
  const { keyRate } = traffic;
  const share = utilisation(flood, keyRate, keyRate);
  return {
    others: {
      asked: totalCost(others),
      served: totalCost(others.filter(served)),
      share: shares.length > 0 ? round(Math.min(...shares)) : null,
      p99Ms: percentile(agesMs, 0.99),
    },
    flooding: {
      rate: roundOrNull(share === null ? null : share * keyRate),
      asked: totalCost(asked.filter(({ key }) => key === FLOODING_KEY)),
      served: totalCost(flood),
      worstExcess: round(worstExcess(flood, keyRate, keyRate)),
      backlog,
    },
  };

  function served({ n }: PlannedJob): boolean {
    return inTime.has(jobId(n));
  }
}
