import { RECALL_US } from '../buckets/constants.ts';
import { durationMs } from '../checks.ts';
import type { Clock } from '../clock.ts';
import type { Cost } from '../decide/demands.ts';
import { WaitTooLongError } from '../errors.ts';
import { PAUSED_LOOK_MS } from '../pauses.ts';
import type { Store } from '../ports/store.ts';
import type { ReservationHandle } from './grant.ts';
import {
  checkNames,
  DEFAULT_PATIENCE_MS,
  holderOf,
  signalOf,
  WAIT_NAMES,
  type WaitOptions,
} from './options.ts';
import type { Reserving } from './reserve.ts';
import { RECALLED, type Waiters } from './waiters.ts';

const FOREVER = Number.POSITIVE_INFINITY;

/** Waits for grants: for the start of a reservation, for a slot in the line, in the queue for slots, for the end of a pause. */
export class Waiting {
  constructor(
    private readonly store: Pick<Store, 'leave'>,
    private readonly clock: Clock,
    private readonly graceMs: number,
    private readonly waiters: Waiters,
    private readonly reserving: Reserving,
  ) {
    reserving.onRecall(() => waiters.recall());
  }

  async waitN(cost: Cost, options: WaitOptions): Promise<ReservationHandle> {
    checkNames(options, WAIT_NAMES);
    const { keys, priority, maxWaitMs = FOREVER } = options;
    const signal = signalOf(options.signal);
    durationMs('maxWaitMs', maxWaitMs, 0, FOREVER);
    const holder = holderOf(options.holder) ?? this.reserving.nextHolder();
    const calledMs = this.clock.monoMs();
    return this.waiters.track(async () => {
      const place = this.reserving.slotQueue.enter(holder);
      let returning = false;
      try {
        for (let waited = false; ; waited = true) {
          signal?.throwIfAborted();
          const waitedMs = this.clock.monoMs() - calledMs;
          const remainingMs = Math.max(0, maxWaitMs - waitedMs);
          place.asks();
          const decision = await this.reserving.reserve(
            cost,
            {
              ...(keys === undefined ? {} : { keys }),
              ...(priority === undefined ? {} : { priority }),
              holder,
              waitedMs,
              maxWaitMs: remainingMs,
              turns: 'keyed',
              maxTurnMs: remainingMs,
              returning,
              patienceMs: Math.min(remainingMs, DEFAULT_PATIENCE_MS),
            },
            true,
          );
          if (decision.allowed) {
            place.isTaken = false;
            if (!(await this.#startMet(decision, signal))) {
              await decision.release();
              returning = true;
              continue;
            }
            const noWait = !waited && decision.startsInMs === 0;
            decision.waitedMs = noWait ? 0 : this.clock.monoMs() - calledMs;
            return decision;
          }
          const { limit, reason, retryAfterMs } = decision;
          place.isTaken = reason === 'concurrency';
          if (place.isTaken ? remainingMs === 0 : retryAfterMs > Math.ceil(remainingMs)) {
            throw new WaitTooLongError(limit, retryAfterMs, maxWaitMs);
          }
          returning ||= decision.hasTurn;
          if (place.woken()) continue;
          const longestMs = reason === 'paused' ? PAUSED_LOOK_MS : remainingMs;
          const sleepMs = Math.min(retryAfterMs, remainingMs, longestMs);
          await this.#sleep(
            this.clock.monoMs() + sleepMs,
            signal,
            place.isTaken || reason === 'paused' ? place.onWake : undefined,
          );
        }
      } finally {
        place.leave();
        // Those behind it must not wait for a place that nobody will take.
        if (place.isTaken) await this.store.leave({ cost, keys, holder }).catch(() => {});
      }
    });
  }

  // Whoever is recalled asks again: that is what its sleep was for.
  async #sleep(untilMonoMs: number, signal: AbortSignal | undefined, onWake?: (wake: () => void) => void) {
    try {
      await this.waiters.sleep(untilMonoMs, signal, { recallable: true, ...(onWake && { onWake }) });
    } catch (ended) {
      if (ended !== RECALLED) throw ended;
    }
  }

  /** Whether the start was met; false if the process came to it too late or it was recalled, and the reservation is lost. */
  async #startMet(reservation: ReservationHandle, signal: AbortSignal | undefined): Promise<boolean> {
    const { startsInMs, startsAtMonoMs } = reservation;
    const endWatch = reservation.watch();
    try {
      if (startsInMs > 0) {
        await this.waiters.sleep(startsAtMonoMs, signal, { recallable: startsInMs > RECALL_US / 1_000 });
      }
      return this.clock.monoMs() - startsAtMonoMs <= this.graceMs && reservation.stands();
    } catch (ended) {
      if (ended === RECALLED) return false;
      await reservation.cancel().catch(() => false);
      throw ended;
    } finally {
      endWatch();
    }
  }
}
