import type { Completion } from '../../downstream/completions.ts';
import { round, roundOrNull } from '../../measure/measure.ts';
import { leastInAny, mostInAny } from '../../measure/rolling.ts';

export interface MinutePlan {
  /** When the run was at full load; microseconds of the service's clock. */
  readonly fromUs: number;
  readonly toUs: number;
  readonly requestsPerMinute: number;
  readonly tokensPerMinute: number;
}

export interface MinuteFigures {
  readonly requests: number;
  readonly tokens: number;
  readonly refused: number;
  /** The share of the limit in the rolling minute with the most. */
  readonly mostTokensShare: number;
  readonly mostRequestsShare: number;
  /** The share of the limit in the rolling minute with the least; null if the run was shorter. */
  readonly leastTokensShare: number | null;
}

const MINUTE_US = 60_000_000;

/** Requests count when they arrive, tokens when they are known, as the provider counts them. */
export function minuteFigures(completions: readonly Completion[], plan: MinutePlan): MinuteFigures {
  const requests = completions.map(({ atUs }) => ({ atUs, cost: 1 }));
  const tokens = completions
    .filter(({ endUs }) => endUs !== null)
    .map(({ endUs, tokens: cost }) => ({ atUs: endUs!, cost }))
    .sort((a, b) => a.atUs - b.atUs);
  const least = leastInAny(tokens, MINUTE_US, plan.fromUs, plan.toUs);
  return {
    requests: requests.length,
    tokens: tokens.reduce((sum, { cost }) => sum + cost, 0),
    refused: completions.filter(({ refused }) => refused).length,
    mostTokensShare: round(mostInAny(tokens, MINUTE_US) / plan.tokensPerMinute),
    mostRequestsShare: round(mostInAny(requests, MINUTE_US) / plan.requestsPerMinute),
    leastTokensShare: roundOrNull(least === null ? null : least / plan.tokensPerMinute),
  };
}
