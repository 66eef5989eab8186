import { type Cost, demandsOf, type Keys } from '../decide/demands.ts';
import { kindOfLimit } from '../limits/limit.ts';
import type { Deferrals } from '../ports/deferrals.ts';
import { Attempts } from './attempt.ts';
import type { Ended, Outcomes, Running } from './outcomes.ts';
import type { Reserving } from './reserve.ts';

// With answers, errors and checks this is all that an adapter may know of core.
export type { Clock } from '../clock.ts';
export { type Cost, type Keys, keyValue, wholeCost } from '../decide/demands.ts';
export { isThrottled, Throttled, type ThrottledOptions } from '../downstream/throttled.ts';
export type { Deferral, Deferrals, DeferredJob, Move } from '../ports/deferrals.ts';
export { type AskTerms, type Attempt, type Attempts, lookAgainMs } from './attempt.ts';
export type { ReservationHandle } from './grant.ts';
export type { Priority } from './options.ts';
export type { Ended } from './outcomes.ts';

// Registered, so that an adapter knows a governor that another copy of the package made.
const DESK = Symbol.for('flyball.desk');

/** Where adapters come in: what they need of a governor that its users do not. */
export interface Desk {
  /** The jobs that are deferred now. */
  readonly deferrals: Deferrals;
  /** Attempts to start that end together, with the worker that makes them. */
  attempts(): Attempts;
  /** Runs work under its grant, from its start to its end. */
  run<T>(running: Running<T>): Promise<Ended<T>>;
  /**
   * What a request asks of each bucket, under the limits in force.
   *
   * @throws {@link InvalidOptionError} and {@link CostExceedsBurstError} for a request that can never pass.
   */
  demands(cost: Cost, keys: Keys | undefined): Promise<PacedDemand[]>;
}

/** What a job asks of one bucket, for adapters that pace jobs. */
export interface PacedDemand {
  readonly limit: string;
  readonly kind: 'rate' | 'window' | 'concurrency' | 'share';
  readonly bucket: string;
  /** Whether only requests with the same key meet it. */
  readonly keyed: boolean;
  /** Whether it is of a fair limit. */
  readonly fair: boolean;
  /** Milliseconds in which the limit lets so much through; undefined where that is not a matter of time alone. */
  readonly intervalMs: number | undefined;
}

/** Gives a governor its desk. */
export function openDesk(governor: object, reserving: Reserving, outcomes: Outcomes): void {
  const { store } = reserving.parts;
  const desk: Desk = {
    deferrals: store.deferrals,
    attempts: () => new Attempts(reserving),
    run: (running) => outcomes.run(running),
    demands: async (cost, keys) =>
      demandsOf(await store.limits(), cost, keys).map(({ limit, kind, bucket, by, cost }) => {
        const intervalUs = kindOfLimit(limit).intervalUs(limit, cost);
        return {
          limit: limit.name,
          kind,
          bucket,
          keyed: by !== null,
          fair: limit.kind === 'rate' && limit.fair !== null,
          intervalMs: intervalUs === undefined ? undefined : intervalUs / 1_000,
        };
      }),
  };
  Object.defineProperty(governor, DESK, { value: desk });
}

/** Whether a governor made it, of this copy of the package or another. */
export const hasDesk = (value: unknown): boolean =>
  typeof value === 'object' && value !== null && DESK in value;

export const deskOf = (governor: object): Desk => (governor as { [DESK]: Desk })[DESK];
