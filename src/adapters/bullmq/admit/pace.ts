import { type Cost, deskOf, type Keys, type PacedDemand } from '../../../core/calls/desk.ts';
import { isCostExceedsBurstError, isInvalidOptionError } from '../../../core/errors.ts';
import type { Governor } from '../../../core/governor.ts';

/** What the limits that all jobs meet mean for a job of some cost. */
export interface Reach {
  /** Whether the job meets a limit that all jobs meet: what feeds the worker, and what may make it hold. */
  readonly governorWide: boolean;
  /** Milliseconds by which the job moves the start of the next one like it. */
  readonly intervalMs: number;
  /** Whether all of these limits are fair ones: one that makes a job wait may have room for those behind it. */
  readonly fair: boolean;
}

/** A job that is not valid meets no limit here: it is told so when it asks. */
export async function reachOf(governor: Governor, cost: Cost, keys: Keys | undefined): Promise<Reach> {
  const demands = await deskOf(governor)
    .demands(cost, keys)
    .catch(() => []);
  const ofAll = demands.filter(({ keyed }) => !keyed);
  // A window lets its jobs through at once, and slots come free when jobs end.
  const intervalsMs = ofAll.map(({ kind, intervalMs = 0 }) => (kind === 'rate' ? intervalMs : 0));
  const governorWide = ofAll.length > 0;
  return {
    governorWide,
    intervalMs: Math.max(0, ...intervalsMs),
    fair: governorWide && ofAll.every(({ fair }) => fair),
  };
}

/** At what pace the jobs of one bucket may come. */
export interface Pace {
  readonly bucket: string;
  /** Milliseconds by which a job moves the next one of its bucket. */
  readonly intervalMs: number;
  /** Milliseconds until the bucket has room for it. */
  waitMs(): Promise<number>;
}

/**
 * The pace of a job under the limits in force: that of the slowest limit that gives turns, which are those with keys.
 * Undefined if no such limit has a pace.
 *
 * @throws InvalidOptionError or CostExceedsBurstError for a job that can never pass: it is told so when it comes.
 */
export async function paceOf(
  governor: Governor,
  cost: Cost,
  keys: Keys | undefined,
): Promise<Pace | undefined> {
  const demands = await deskOf(governor).demands(cost, keys);
  const keyed = demands.filter((demand) => demand.keyed);
  // Without a handle on the worker, governor-wide limits give turns as well.
  const [slowest] = (keyed.length > 0 ? keyed : demands)
    .filter(hasPace)
    .sort((a, b) => b.intervalMs - a.intervalMs);
  if (slowest === undefined) return undefined;
  const waitMs = async () => {
    const states = await governor.peek({ cost, ...(keys === undefined ? {} : { keys }) });
    // A fair limit is there twice: as all meet it, and as the share of the key.
    return states.find(({ limit, kind }) => limit === slowest.limit && kind === slowest.kind)?.waitMs ?? 0;
  };
  return { bucket: slowest.bucket, intervalMs: slowest.intervalMs, waitMs };
}

const hasPace = (demand: PacedDemand): demand is PacedDemand & { readonly intervalMs: number } =>
  demand.intervalMs !== undefined;

/** Milliseconds that a job of this cost would have to wait now at the limits that all jobs meet. */
export async function governorWideWaitMs(governor: Governor, cost: Cost): Promise<number> {
  const limits = await governor.peek({ cost }).catch((error) => {
    // The limits have changed, and such a cost is not valid any more: the next job may tell, by itself.
    if (isCostExceedsBurstError(error) || isInvalidOptionError(error)) return [];
    throw error;
  });
  // For a slot one job waits in the worker; the others need not be fetched for that, but are when it is there.
  const waitsMs = limits
    .filter(({ key }) => key === null)
    .map(({ kind, waitMs, lineMs, pausedMs }) =>
      kind === 'concurrency' ? pausedMs : Math.max(waitMs, lineMs),
    );
  return Math.max(0, ...waitsMs);
}
