import type { Charged } from '../buckets/kind.ts';
import type { Limit } from '../limits/limit.ts';
import type { Demand } from './demands.ts';

/**
 * Why a request was refused: too few tokens, a full window, no free slot, more than its share of a fair limit, work deferred
 * before it, a start too far ahead to be exact, or a pause.
 */
export type RefusalReason = Demand['kind'] | 'line' | 'horizon' | 'paused';

/** What is needed to take a grant back or to correct it. */
export interface Receipt {
  readonly startUs: number;
  /** Whether it was made ahead. A grant that starts at once cannot be cancelled. */
  readonly ahead: boolean;
  /** Version of the limits it was made under. */
  readonly version: number;
  readonly holder: string;
  readonly charges: readonly Charge[];
}

/** What a grant took from one bucket. */
export interface Charge extends Charged {
  readonly demand: Demand;
}

export type Verdict =
  | { readonly granted: true; readonly waitUs: number; readonly receipt: Receipt }
  | {
      readonly granted: false;
      /** The limit that refused. */
      readonly limit: Limit;
      /** The attribute whose value made it refuse; null: it refuses all. */
      readonly by: string | null;
      readonly reason: RefusalReason;
      /** From now until the request may be made again with success, or until its turn. */
      readonly waitUs: number;
      readonly hasTurn: boolean;
    };

/** Told of waiters for whom there is room now. */
export type Wake = (holder: string) => void;
