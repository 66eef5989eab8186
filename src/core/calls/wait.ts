import { durationMs } from '../checks.ts';
import type { Clock } from '../clock.ts';
import type { Cost } from '../decide/demands.ts';
import { WaitTooLongError } from '../errors.ts';
import type { Attempts } from './attempt.ts';
import type { ReservationHandle } from './grant.ts';
import { checkNames, holderOf, PATIENCE_MS, signalOf, WAIT_NAMES, type WaitOptions } from './options.ts';

const FOREVER = Number.POSITIVE_INFINITY;

/** Waits for a grant: for the start of a reservation, a turn in the line, a slot, the end of a pause. */
export async function waitN(
  attempts: Attempts,
  clock: Clock,
  cost: Cost,
  options: WaitOptions,
): Promise<ReservationHandle> {
  checkNames(options, WAIT_NAMES);
  const { keys, priority, maxWaitMs = FOREVER } = options;
  const signal = signalOf(options.signal);
  const holder = holderOf(options.holder);
  durationMs('maxWaitMs', maxWaitMs, 0, FOREVER);
  const calledMs = clock.monoMs();
  return attempts.waiters.track(async () => {
    const attempt = attempts.begin({ cost, keys, priority, holder, signal });
    try {
      for (let waited = false; ; waited = true) {
        signal?.throwIfAborted();
        const waitedMs = clock.monoMs() - calledMs;
        const remainingMs = Math.max(0, maxWaitMs - waitedMs);
        const answer = await attempt.ask({
          waitedMs,
          maxWaitMs: remainingMs,
          turns: 'keyed',
          maxTurnMs: remainingMs,
          patienceMs: Math.min(remainingMs, PATIENCE_MS),
        });
        if (answer.allowed) {
          if (!(await attempt.hold(answer))) continue;
          answer.waitedMs = waited || answer.startsInMs > 0 ? clock.monoMs() - calledMs : 0;
          return answer;
        }
        const { limit, reason, retryAfterMs } = answer;
        // Nobody knows when a slot comes free: for that it waits as long as it may.
        const isTooLong =
          reason === 'concurrency' ? remainingMs === 0 : retryAfterMs > Math.ceil(remainingMs);
        if (isTooLong) throw new WaitTooLongError(limit, retryAfterMs, maxWaitMs);
        await attempt.sleep(answer, Math.min(retryAfterMs, remainingMs));
      }
    } finally {
      await attempt.end();
    }
  });
}
