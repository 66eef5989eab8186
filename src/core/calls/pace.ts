import { type Cost, demandsOf, type Keys } from '../decide/demands.ts';
import { kindOfLimit } from '../limits/limit.ts';
import type { Store } from '../ports/store.ts';

/** What a job asks of one bucket, for who paces jobs. */
export interface PacedDemand {
  readonly limit: string;
  readonly kind: 'rate' | 'window' | 'concurrency' | 'share';
  readonly bucket: string;
  /** Whether only requests with the same key meet it. */
  readonly keyed: boolean;
  /** Whether it is of a fair limit. */
  readonly fair: boolean;
  /** Milliseconds in which the limit lets so much through; undefined where that is not a matter of time alone. */
  readonly intervalMs: number | undefined;
}

/**
 * What a request asks of each bucket, under the limits in force.
 *
 * @throws {@link InvalidOptionError} and {@link CostExceedsBurstError} for a request that can never pass.
 */
export async function pacedDemands(
  store: Pick<Store, 'limits'>,
  cost: Cost,
  keys: Keys | undefined,
): Promise<PacedDemand[]> {
  return demandsOf(await store.limits(), cost, keys).map((demand) => ({
    limit: demand.limit.name,
    kind: demand.kind,
    bucket: demand.bucket,
    keyed: demand.by !== null,
    fair: demand.limit.kind === 'rate' && demand.limit.fair !== null,
    intervalMs: toMs(kindOfLimit(demand.limit).intervalUs(demand.limit, demand.cost)),
  }));
}

const toMs = (us: number | undefined): number | undefined => (us === undefined ? undefined : us / 1_000);
