import { SCALE } from '../constants.ts';
import type { View } from '../kind.ts';
import type { BucketState } from '../moment.ts';
import type { RateView } from '../rate/state.ts';
import type { ShareDemand } from './demand.ts';
import type { ShareGroup } from './group.ts';

/**
 * Fairness: how the values of an attribute share one limit, by weight and max-min: what one does not use is the others'.
 *
 * Each value has a bucket that drains at its share of the limit. Its share is its weight among the weights of those that
 * use theirs (the active ones), of what the light users leave. While the limit itself has half its burst to spare, anyone
 * may pass: nothing is held back for somebody who does not come. The rate's own bucket is charged like any other, so nothing
 * here can break its bound. lua/includes/buckets/share/ is the same in Lua.
 */
export interface ShareState extends BucketState {
  /** What it owes, in 1/{@link SCALE} of the rate for each microsecond. */
  debt: number;
  /** Units that drain in a microsecond, as that was last. */
  share: number;
}

export interface ShareView extends View<ShareDemand, ShareState> {
  readonly group: ShareGroup;
  readonly parent: RateView;
  /** How long it has owed nothing. */
  readonly idleUs: number;
}

export const blank = (nowUs: number): ShareState => ({
  debt: 0,
  atUs: nowUs,
  lineUs: 0,
  granted: 0,
  refused: 0,
  pause: null,
  share: SCALE,
});
