import type { Grant } from '../answers.ts';
import { handled } from '../checks.ts';
import type { Clock } from '../clock.ts';
import type { Cost, Keys } from '../decide/demands.ts';
import { isThrottled, type Throttled } from '../downstream/throttled.ts';
import type { ReservationHandle } from './grant.ts';
import type { Outcomes, WorkOutcome } from './outcomes.ts';

export type Work<T> = (grant: Grant) => Promise<T> | T;

/** Work that is run under a grant. */
export interface Running<T> {
  readonly grant: ReservationHandle;
  readonly keys: Keys | undefined;
  readonly work: Work<T>;
  /** What it has cost after all; undefined: what was taken. */
  readonly settle: ((result: T) => Cost) | undefined;
  /** Told of what must not fail the work: a cost that is not valid, a store that does not answer. */
  readonly report: (error: unknown) => void;
}

/** How work ended that did not fail. */
export type Ended<T> =
  | { readonly result: T }
  | {
      /** What it threw, since the downstream answered "too many requests". */
      readonly throttled: Throttled;
      /** How long the downstream asks for, in milliseconds; 0: it does not say. */
      readonly pauseMs: number;
      /** Whether the store keeps that pause. */
      readonly isPaused: boolean;
    };

/**
 * Runs work from its start to its end: tells what became of it, corrects its cost, gives its slots back. Work that is done is
 * not lost: what goes wrong in settling it is reported, and the estimate stays charged.
 *
 * @throws what the work throws, unless that is `Throttled`.
 */
export async function runUnder<T>(
  clock: Clock,
  outcomes: Outcomes,
  { grant, keys, work, settle, report }: Running<T>,
): Promise<Ended<T>> {
  const startedMs = clock.monoMs();
  const tell = (outcome: Omit<WorkOutcome, 'latencyMs'>) =>
    outcomes.tell(grant, keys, { latencyMs: clock.monoMs() - startedMs, ...outcome });
  try {
    const result = await work(grant);
    tell({});
    if (settle !== undefined) await settled(grant, () => settle(result)).catch(report);
    return { result };
  } catch (error) {
    const throttled = isThrottled(error);
    tell({ failed: !throttled, throttled });
    if (!throttled) throw error;
    return { throttled: error, ...(await outcomes.throttled(error, report)) };
  } finally {
    await grant.release();
  }
}

async function settled(grant: Grant, actual: () => Cost): Promise<void> {
  await grant.settle(handled(actual()));
}
