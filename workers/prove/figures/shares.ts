import type { Arrival } from '../../downstream/arrivals.ts';
import { round, totalCost } from '../../measure/measure.ts';
import { within } from '../../measure/rolling.ts';
import { timed } from '../../measure/timed.ts';

export interface SharePlan {
  readonly fromUs: number;
  readonly toUs: number;
  readonly weights: Readonly<Record<string, number>>;
  /** Tokens a second of all together. */
  readonly rate: number;
}

export interface ShareFigures {
  readonly tokens: Readonly<Record<string, number>>;
  /** For each key: its part of all tokens, over its part of all weights. 1: exactly its share. */
  readonly ofShare: Readonly<Record<string, number>>;
  /** All tokens over what the limit allows in that time. */
  readonly used: number;
}

export function shareFigures(arrivals: readonly Arrival[], plan: SharePlan): ShareFigures {
  const { fromUs, toUs, weights, rate } = plan;
  const tokensOf = (key: string) => totalCost(within(timed(arrivals, { key, accepted: true }), fromUs, toUs));
  const tokens = Object.fromEntries(Object.keys(weights).map((key) => [key, tokensOf(key)]));
  const all = Object.values(tokens).reduce((sum, one) => sum + one, 0);
  const allWeights = Object.values(weights).reduce((sum, one) => sum + one, 0);
  return {
    tokens,
    ofShare: Object.fromEntries(
      Object.entries(weights).map(([key, weight]) => [
        key,
        all === 0 ? 0 : round(tokens[key]! / all / (weight / allWeights)),
      ]),
    ),
    used: round(all / ((rate * (toUs - fromUs)) / 1e6)),
  };
}
