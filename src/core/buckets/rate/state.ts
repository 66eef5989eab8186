import type { RateLimit } from '../../limits/rate.ts';
import { type AdaptiveState, begun } from '../adaptive.ts';
import { MAX_DEBT_UNITS } from '../constants.ts';
import type { DemandOf, View } from '../kind.ts';
import type { BucketState, Moment } from '../moment.ts';
import type { PenaltyState } from './penalty.ts';

export type RateDemand = DemandOf<'rate', RateLimit>;
export type RateView = View<RateDemand, RateState>;

/** The bucket of a rate: what was granted and has not drained yet. */
export interface RateState extends BucketState {
  /** Units owed at `atUs`. More than the capacity means that grants are promised ahead. */
  debt: number;
  /** The latest start that was promised ahead; 0: none was. */
  lastUs: number;
  /** Of `debt`, units of grants that were promised more than RECALL_US ahead: the most that a recall undoes. */
  promised: number;
  terms: RateTerms;
  /** Only of an adaptive limit. */
  adaptive?: AdaptiveState;
  /** Only while it is over a limit with a penalty, or has been punished. */
  penalty?: PenaltyState;
}

/** What a debt was charged under, since a limit may be changed while its buckets live. */
interface RateTerms {
  /** Units that drain in a microsecond. */
  readonly rate: number;
  /** Units of a token. */
  readonly periodUs: number;
  readonly burst: number;
  readonly version: number;
}

/**
 * The bucket of a limit that has no state. That is a full one, unless all buckets are known to be empty at a time: a cold
 * start was asked for, the store lost its data, or the governor was paused. Then it may lie ahead.
 */
export function blank(limit: RateLimit, at: Moment): RateState {
  const { rate, periodUs, burst } = limit;
  // Draining empties it at the end of a pause that is over.
  const fullAtUs = at.pause !== null && at.pause.untilUs <= at.nowUs ? at.pause.untilUs : at.nowUs;
  const aheadUs = Math.max(0, at.coldAtUs - at.nowUs);
  return {
    debt: at.coldAtUs === 0 ? 0 : Math.min(MAX_DEBT_UNITS, burst * periodUs + aheadUs * rate),
    atUs: at.coldAtUs === 0 ? fullAtUs : at.coldAtUs - aheadUs,
    lineUs: 0,
    granted: 0,
    refused: 0,
    lastUs: 0,
    promised: 0,
    pause: null,
    terms: { rate, periodUs, burst, version: at.version },
    ...(limit.adaptive && { adaptive: begun(limit.adaptive, rate / 1_000, at.nowUs) }),
  };
}
