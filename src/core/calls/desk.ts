import type { Clock } from '../clock.ts';
import type { Cost, Keys } from '../decide/demands.ts';
import type { Deferrals } from '../ports/deferrals.ts';
import type { Store } from '../ports/store.ts';
import { type AttemptParts, Attempts } from './attempt.ts';
import type { Outcomes } from './outcomes.ts';
import { type PacedDemand, pacedDemands } from './pace.ts';
import { type Ended, type Running, runUnder } from './run.ts';

// With answers, errors and checks this is all that an adapter may know of core.
export type { Clock } from '../clock.ts';
export { type Cost, type Keys, keyValue, wholeCost } from '../decide/demands.ts';
export { isThrottled, Throttled, type ThrottledOptions } from '../downstream/throttled.ts';
export type { Deferral, Deferrals, DeferredJob, Move } from '../ports/deferrals.ts';
export { type AskTerms, type Attempt, type Attempts, lookAgainMs } from './attempt.ts';
export type { ReservationHandle } from './grant.ts';
export type { Priority } from './options.ts';
export type { PacedDemand } from './pace.ts';
export type { Ended } from './run.ts';

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
  /** What a request asks of each bucket, under the limits in force. */
  demands(cost: Cost, keys: Keys | undefined): Promise<PacedDemand[]>;
}

/** @param parts - Of the governor that is given the desk. */
export function openDesk(
  governor: object,
  { store, clock, outcomes, ...parts }: AttemptParts & { store: Store; clock: Clock; outcomes: Outcomes },
): void {
  const desk: Desk = {
    deferrals: store.deferrals,
    attempts: () => new Attempts({ store, clock, ...parts }),
    run: (running) => runUnder(clock, outcomes, running),
    demands: (cost, keys) => pacedDemands(store, cost, keys),
  };
  Object.defineProperty(governor, DESK, { value: desk });
}

/** Whether a governor made it, of this copy of the package or another. */
export const hasDesk = (value: unknown): boolean =>
  typeof value === 'object' && value !== null && DESK in value;

export const deskOf = (governor: object): Desk => (governor as { [DESK]: Desk })[DESK];
