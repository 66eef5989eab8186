import type { LimitState } from '../answers.ts';
import { SCALE } from '../buckets/constants.ts';
import type { Cost, Demand } from '../decide/demands.ts';
import type { BucketReport } from '../decide/peek.ts';
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
    burst: demand.limit.kind === 'rate' ? demand.limit.burst : demand.limit.max,
    effective: effectiveOf(demand, sight.effective),
    waitMs: Math.ceil(sight.waitUs / 1_000),
    lineMs: Math.ceil(sight.lineUs / 1_000),
    pausedMs: Math.ceil(sight.pausedUs / 1_000),
    granted: sight.granted,
    refused: sight.refused,
  };
}

function effectiveOf(demand: Demand, effective: number): number {
  if (demand.kind === 'window' || demand.kind === 'concurrency') return effective;
  const { rate, periodUs, options } = demand.limit;
  const perPeriod = (unitsPerUs: number) => rounded((unitsPerUs * options.periodMs * 1_000) / periodUs);
  return demand.kind === 'rate' ? perPeriod(effective) : perPeriod((rate * effective) / SCALE);
}

// For people: a rate has three decimals at most.
const rounded = (value: number): number => Math.round(value * 1_000) / 1_000;
