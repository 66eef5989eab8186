import type { LimitState } from '../answers.ts';
import { kindOf } from '../buckets/kinds.ts';
import type { Cost, Demand } from '../decide/demands.ts';
import type { BucketReport } from '../decide/peek.ts';
import { kindOfLimit } from '../limits/limit.ts';
import type { Store } from '../ports/store.ts';
import { checkNames, classOf, type RequestOptions } from './options.ts';

/** What is looked at: the limits that such a request would meet. */
export interface PeekOptions extends Omit<RequestOptions, 'holder'> {
  /** The cost asked about. Default 1. */
  cost?: Cost;
}

/** @throws {@link InvalidOptionError} for options that are not valid; and as the store. */
export async function limitStates(store: Pick<Store, 'peek'>, options: PeekOptions): Promise<LimitState[]> {
  checkNames(options, ['keys', 'priority', 'cost']);
  const { cost = 1, keys, priority } = options;
  const sights = await store.peek({ cost, keys, holder: '' }, classOf(priority));
  return sights.map(({ demand, sight }) => limitState(demand, sight));
}

/** What a limit looks like, in the units that people write limits in. */
function limitState(demand: Demand, sight: BucketReport): LimitState {
  return {
    limit: demand.limit.name,
    kind: demand.kind,
    key: demand.by === null ? null : demand.bucket.slice(demand.limit.name.length + 1),
    remaining: sight.remaining,
    burst: kindOfLimit(demand.limit).size(demand.limit),
    effective: kindOf(demand).inLimitUnits?.(demand.limit, sight.effective) ?? sight.effective,
    waitMs: Math.ceil(sight.waitUs / 1_000),
    lineMs: Math.ceil(sight.lineUs / 1_000),
    pausedMs: Math.ceil(sight.pausedUs / 1_000),
    granted: sight.granted,
    refused: sight.refused,
  };
}
