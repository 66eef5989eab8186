import { type Cost, type Keys, type Leg, legsOf } from '../../../core/decide/legs.ts';
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
  const legs = legsOf(await governor.limits(), cost, keys);
  const keyed = legs.filter(({ by }) => by !== null);
  let slowest: { leg: Leg; intervalMs: number } | undefined;
  // Without a handle on the worker, governor-wide limits give slots as well.
  for (const leg of keyed.length > 0 ? keyed : legs) {
    const intervalMs = intervalOf(leg);
    if (intervalMs !== undefined && intervalMs > (slowest?.intervalMs ?? -1)) slowest = { leg, intervalMs };
  }
  if (slowest === undefined) return undefined;
  const { leg, intervalMs } = slowest;
  const waitMs = async () => {
    const states = await governor.peek({ cost, ...(keys === undefined ? {} : { keys }) });
    // A fair limit is there twice: as all meet it, and as the share of the key.
    return states.find(({ limit, kind }) => limit === leg.limit.name && kind === leg.kind)?.waitMs ?? 0;
  };
  return { bucket: leg.bucket, intervalMs, waitMs };
}

/** Milliseconds that the tokens of a leg take to come; undefined where that is not a matter of time alone. */
function intervalOf({ kind, limit, cost }: Leg): number | undefined {
  if (kind === 'concurrency') return undefined;
  if (limit.kind === 'window') return (cost * limit.windowUs) / limit.max / 1_000;
  return (cost * limit.periodUs) / limit.rate / 1_000;
}
