import { type Cost, type Demand, demandsOf, type Keys } from '../../../core/decide/demands.ts';
import type { Governor } from '../../../core/governor.ts';

/** At what pace the jobs of one bucket may come. */
export interface Pace {
  readonly bucket: string;
  /** Milliseconds by which a job moves the next one of its bucket. */
  readonly intervalMs: number;
  /** Milliseconds until the bucket has room for it. */
  waitMs(): Promise<number>;
}

/**
 * The pace of a job under the limits in force: that of the slowest limit that gives slots, which are those with keys.
 * Undefined if no such limit has a pace.
 *
 * @throws InvalidOptionError or CostExceedsBurstError if the job is none that can pass: it learns so when it comes.
 */
export async function paceOf(
  governor: Pick<Governor, 'limits' | 'peek'>,
  cost: Cost,
  keys: Keys | undefined,
): Promise<Pace | undefined> {
  const demands = demandsOf(await governor.limits(), cost, keys);
  const keyed = demands.filter(({ by }) => by !== null);
  let slowest: { demand: Demand; intervalMs: number } | undefined;
  // Without a handle on the worker, governor-wide limits give slots as well.
  for (const demand of keyed.length > 0 ? keyed : demands) {
    const intervalMs = intervalOf(demand);
    if (intervalMs !== undefined && intervalMs > (slowest?.intervalMs ?? -1))
      slowest = { demand, intervalMs };
  }
  if (slowest === undefined) return undefined;
  const { demand, intervalMs } = slowest;
  const waitMs = async () => {
    const states = await governor.peek({ cost, ...(keys === undefined ? {} : { keys }) });
    // A fair limit is there twice: as all meet it, and as the share of the key.
    return states.find(({ limit, kind }) => limit === demand.limit.name && kind === demand.kind)?.waitMs ?? 0;
  };
  return { bucket: demand.bucket, intervalMs, waitMs };
}

/** Milliseconds that the tokens of a demand take to come; undefined where that is not a matter of time alone. */
function intervalOf({ kind, limit, cost }: Demand): number | undefined {
  if (kind === 'concurrency') return undefined;
  if (limit.kind === 'window') return (cost * limit.windowUs) / limit.max / 1_000;
  return (cost * limit.periodUs) / limit.rate / 1_000;
}
