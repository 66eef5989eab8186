import type { RateLimit } from '../../limits/rate.ts';
import type { DemandOf } from '../kind.ts';
import type { RateDemand } from '../rate/state.ts';

/** How a value of a fair limit shares it. Comes right after the demand on the rate itself. */
export interface ShareDemand extends DemandOf<'share', RateLimit> {
  readonly parent: RateDemand;
  readonly key: string;
  readonly weight: number;
}

/** The share of a rate that a request asks for; undefined: the rate is not shared. */
export function shareDemand(
  parent: RateDemand,
  keyOf: (attribute: string) => string,
): ShareDemand | undefined {
  const { limit, cost } = parent;
  if (limit.fair === null) return undefined;
  const { by, weights } = limit.fair;
  const key = keyOf(by);
  const weight = Object.hasOwn(weights, key) ? weights[key]! : 1;
  return { kind: 'share', limit, bucket: `${limit.name}:${key}`, by, cost, parent, key, weight };
}
