import type { Sight } from './decide.ts';
import type { LimitState } from './decision.ts';
import type { Leg } from './request.ts';
import { WHOLE } from './share.ts';

/** What a limit looks like, in the units that people write limits in. */
export function limitState(leg: Leg, sight: Sight): LimitState {
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
