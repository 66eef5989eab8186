import type { Job } from 'bullmq';
import type { Refusal } from '../../../core/answers.ts';
import type { RefusedAction } from '../options.ts';
import type { Shared } from '../state.ts';

/** What decides, with the refusal, where a refused job waits. */
export interface Situation {
  /** Whether its worker's fetching can be stopped. */
  readonly attached: boolean;
  /** Whether it comes back from a turn. */
  readonly returning: boolean;
  /** Whether the worker has room for one more job that waits for a turn of its key. */
  readonly roomNearby: boolean;
  /** What is left of `maxHoldMs` for waits nearby, and for holds; milliseconds. */
  readonly nearbyMs: number;
  readonly holdMs: number;
  readonly maxHoldMs: number;
  /** Whether the job is to be deferred if it can't wait here; else it may fail or be dropped. */
  readonly defers: boolean;
}

/**
 * Where a refused job waits before it asks again.
 *
 *   held     In the worker, as one of the few that the feed aims at: for what all jobs wait for.
 *   nearby   In the worker, beside those: for a turn or a slot of its own key.
 *   away     Nowhere in the worker.
 */
export function waitFor(refusal: Refusal, now: Situation): 'held' | 'nearby' | 'away' {
  const { reason, keyed, hasTurn, retryAfterMs } = refusal;
  if (reason === 'concurrency') {
    if (keyed) return now.roomNearby && now.nearbyMs > 0 ? 'nearby' : 'away';
    // As long as it takes: its place in the queue is what it would lose, and the feed fetches few more.
    if (now.attached && (now.holdMs > 0 || now.defers)) return 'held';
  }
  // A near turn of a limit that all jobs meet, and that cannot reserve for this one; or the near end of a pause of all.
  const isSoon = !keyed && retryAfterMs <= now.maxHoldMs && (hasTurn || reason === 'paused');
  if (isSoon && now.attached) return 'held';
  const hasPlace = hasTurn || (keyed && now.returning);
  return hasPlace && retryAfterMs <= now.nearbyMs && now.roomNearby ? 'nearby' : 'away';
}

/**
 * What becomes of a job that does not wait in the worker.
 *
 * @param action - What `onRefused` says of it.
 */
export function leaveFor(
  { keyed, hasTurn }: Refusal,
  action: RefusedAction,
  attached: boolean,
): 'drop' | 'fail' | 'head' | 'requeue' | 'defer' {
  if (action === 'drop' || action === 'fail') return action;
  // All jobs meet a limit without keys: to let others pass would help none of them.
  if (!hasTurn && !keyed && attached) return 'head';
  return action === 'requeue' && !hasTurn ? 'requeue' : 'defer';
}

// A requeued job comes round as soon as the others have had their turn, yet never in a hot loop: each round doubles this.
const REQUEUE_MS = 100;
const MAX_REQUEUE_MS = 60_000;

/** How long a requeued job stays away, or undefined if nothing else waits and it may as well have its turn. */
export async function requeueMs<J extends Job>({ attached }: Shared<J>, job: J): Promise<number | undefined> {
  const counts = await attached
    ?.queue()
    .getJobCounts('wait', 'prioritized')
    .catch(() => undefined);
  if (counts !== undefined && (counts.wait ?? 0) + (counts.prioritized ?? 0) === 0) return undefined;
  const rounds = Math.max(0, job.attemptsStarted - job.attemptsMade - 1);
  return Math.min(MAX_REQUEUE_MS, REQUEUE_MS * 2 ** Math.min(rounds, 20));
}
