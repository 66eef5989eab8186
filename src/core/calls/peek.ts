import type { LimitState } from '../answers.ts';
import { WHOLE } from '../buckets/share/share.ts';
import type { Sight } from '../decide/acquire.ts';
import type { Cost, Leg } from '../decide/legs.ts';
import type { Store } from '../ports/store.ts';
import { checkNames, classOf, type RequestOptions } from './options.ts';

/** What is looked at: the limits that such a request would meet. */
export interface PeekOptions extends Omit<RequestOptions, 'holder'> {
  /** The cost asked about. Default 1. */
  cost?: Cost;
}

/** @throws {@link InvalidOptionError} for options that are none; and as the store. */
export async function limitStates(store: Pick<Store, 'peek'>, options: PeekOptions): Promise<LimitState[]> {
  checkNames(options, ['keys', 'priority', 'cost']);
  const { cost = 1, keys, priority } = options;
  const sights = await store.peek({ cost, keys, holder: '' }, classOf(priority));
  return sights.map(({ leg, sight }) => limitState(leg, sight));
}

/** What a limit looks like, in the units that people write limits in. */
function limitState(leg: Leg, sight: Sight): LimitState {
  return {
    limit: leg.limit.name,
    kind: leg.kind,
    key: leg.by === null ? null : leg.bucket.slice(leg.limit.name.length + 1),
    remaining: sight.remaining,
    burst: leg.limit.kind === 'rate' ? leg.limit.burst : leg.limit.max,
    effective: effectiveOf(leg, sight.effective),
    waitMs: Math.ceil(sight.waitUs / 1_000),
    lineMs: Math.ceil(sight.lineUs / 1_000),
    pausedMs: Math.ceil(sight.pausedUs / 1_000),
    granted: sight.granted,
    refused: sight.refused,
  };
}

function effectiveOf(leg: Leg, effective: number): number {
  if (leg.kind === 'window' || leg.kind === 'concurrency') return effective;
  const { rate, periodUs, options } = leg.limit;
  const perPeriod = (unitsPerUs: number) => rounded((unitsPerUs * options.periodMs * 1_000) / periodUs);
  return leg.kind === 'rate' ? perPeriod(effective) : perPeriod((rate * effective) / WHOLE);
}

// For people: a rate has three decimals at most.
const rounded = (value: number): number => Math.round(value * 1_000) / 1_000;
