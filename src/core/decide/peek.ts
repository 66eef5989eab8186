import { type Buckets, kindOf } from '../buckets/kinds.ts';
import type { Moment } from '../buckets/moment.ts';
import type { Terms } from './ask.ts';
import type { Demand } from './demands.ts';
import { viewsOf } from './view.ts';

/** What a bucket looks like to a request that takes nothing. Times are microseconds from now. */
export interface BucketReport {
  /** Whole tokens, or free slots. */
  readonly remaining: number;
  readonly waitUs: number;
  readonly lineUs: number;
  readonly pausedUs: number;
  readonly granted: number;
  readonly refused: number;
  /** The limit as it is now: units a microsecond of a rate or a share, slots, or tokens of a window. */
  readonly effective: number;
}

export function peek(
  buckets: Buckets,
  demands: readonly Demand[],
  priority: Terms['priority'],
  at: Moment,
): BucketReport[] {
  return viewsOf(buckets, demands, { priority, holder: '' }, at).map((view) => {
    const { waitUs, lineUs, pausedUs, state } = view;
    const kind = kindOf(view.demand);
    return {
      remaining: pausedUs > 0 ? 0 : kind.remaining(view),
      waitUs,
      lineUs: lineUs === 0 ? 0 : lineUs - at.nowUs,
      pausedUs,
      granted: state.granted,
      refused: state.refused,
      effective: kind.effective(view),
    };
  });
}
