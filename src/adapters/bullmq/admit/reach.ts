import type { Cost } from '../../../core/decide/demands.ts';
import type { Limits } from '../../../core/limits/limit.ts';

/** What the limits that all jobs meet mean for a job of some cost. */
export interface Reach {
  /** Whether the job meets a limit that all jobs meet: what feeds the worker, and what may make it hold. */
  readonly governorWide: boolean;
  /** Milliseconds by which the job moves the start of the next one like it. */
  readonly intervalMs: number;
  /** Whether all of these limits are fair ones: one that makes a job wait may have room for those behind it. */
  readonly fair: boolean;
}

const own = (cost: Exclude<Cost, number>, name: string): number =>
  (cost && Object.hasOwn(cost, name) ? cost[name] : undefined) ?? 1;

export function reachOf(limits: Limits, cost: Cost): Reach {
  let governorWide = false;
  let intervalMs = 0;
  let fair = true;
  for (const limit of limits) {
    // Whether the cost is one at all is the governor's to say. (A fair limit has no `by`: all jobs meet it.)
    const tokens = typeof cost === 'number' ? cost : own(cost, limit.name);
    if (limit.by !== null || tokens === 0) continue;
    governorWide = true;
    fair &&= limit.kind === 'rate' && limit.fair !== null;
    // A window lets its jobs through at once, and slots come free when jobs end.
    if (limit.kind === 'rate')
      intervalMs = Math.max(intervalMs, (tokens * limit.periodUs) / limit.rate / 1_000);
  }
  return { governorWide, intervalMs, fair: governorWide && fair };
}
