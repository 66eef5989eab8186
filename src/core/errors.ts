/**
 * The error catalogue: one class and one stable code per error that a caller may want to tell apart.
 * Codes are never reused. docs/errors.md has an entry for each, and a test holds the two together.
 */

/** Codes of all errors that Flyball throws. */
export type FlyballErrorCode =
  | 'FLYBALL_INVALID_OPTION'
  | 'FLYBALL_COST_EXCEEDS_BURST'
  | 'FLYBALL_WAIT_TOO_LONG'
  | 'FLYBALL_TOO_MANY_WAITERS'
  | 'FLYBALL_GOVERNOR_CLOSED'
  | 'FLYBALL_STORE_UNAVAILABLE'
  | 'FLYBALL_REFUSED'
  | 'FLYBALL_DEFERRAL_LIMIT';

// Registered, so that a guard recognises an error made by another copy of the package.
const MARK = Symbol.for('flyball.error');

/** What all errors of Flyball have in common: a stable `code`. */
export abstract class FlyballError extends Error {
  abstract readonly code: FlyballErrorCode;

  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = new.target.name;
    Object.defineProperty(this, MARK, { value: true });
  }
}

/** An option, a cost or a key is not what it must be. Never retry: the call is wrong. */
export class InvalidOptionError extends FlyballError {
  readonly code = 'FLYBALL_INVALID_OPTION';

  /**
   * @param option - The option's path, for example `limits.calls.burst`.
   * @param expected - What it must be, in words.
   * @param received - What came.
   */
  constructor(
    readonly option: string,
    readonly expected: string,
    readonly received: unknown,
  ) {
    super(`${option}: expected ${expected}, received ${show(received)}`);
  }
}

/** The cost is larger than a limit's burst: it can never pass. Never retry: split the job or raise the burst. */
export class CostExceedsBurstError extends FlyballError {
  readonly code = 'FLYBALL_COST_EXCEEDS_BURST';

  constructor(
    readonly limit: string,
    readonly cost: number,
    readonly burst: number,
  ) {
    super(`cost ${cost} exceeds the burst ${burst} of limit "${limit}": it can never pass`);
  }
}

/** The wait would be longer than `maxWaitMs`. Nothing was taken. Come back after `retryAfterMs`. */
export class WaitTooLongError extends FlyballError {
  readonly code = 'FLYBALL_WAIT_TOO_LONG';

  constructor(
    readonly limit: string,
    readonly retryAfterMs: number,
    readonly maxWaitMs: number,
  ) {
    super(`limit "${limit}" asks for a wait of ${retryAfterMs} ms, longer than maxWaitMs ${maxWaitMs}`);
  }
}

/** `maxWaiters` calls are waiting in this process already. Nothing was taken. Shed load, or raise the option. */
export class TooManyWaitersError extends FlyballError {
  readonly code = 'FLYBALL_TOO_MANY_WAITERS';

  constructor(readonly maxWaiters: number) {
    super(`${maxWaiters} calls are waiting already (option maxWaiters)`);
  }
}

/** The governor was closed. Reservations of calls that were waiting have been handed back. */
export class GovernorClosedError extends FlyballError {
  readonly code = 'FLYBALL_GOVERNOR_CLOSED';

  constructor(readonly governor: string) {
    super(`governor "${governor}" is closed`);
  }
}

/** The store gave no usable answer; `cause` is the client's error. Never a refusal: nothing was decided. */
export class StoreUnavailableError extends FlyballError {
  readonly code = 'FLYBALL_STORE_UNAVAILABLE';

  constructor(message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
  }
}

/** A job was refused and its policy says that a refusal is a failure (`onRefused: 'fail'`). */
export class RefusedError extends FlyballError {
  readonly code = 'FLYBALL_REFUSED';

  constructor(
    readonly limit: string,
    readonly retryAfterMs: number,
  ) {
    super(`refused by limit "${limit}"; room in ${retryAfterMs} ms`);
  }
}

/** A job was deferred as often, or for as long, as its policy allows (`maxDeferrals`, `maxDeferredMs`). It never ran. */
export class DeferralLimitError extends FlyballError {
  readonly code = 'FLYBALL_DEFERRAL_LIMIT';

  /**
   * @param count - How often it was deferred.
   * @param deferredMs - Since it first was.
   * @param retryAfterMs - What it would have had to wait for once more.
   */
  constructor(
    readonly count: number,
    readonly deferredMs: number,
    readonly retryAfterMs: number,
  ) {
    super(
      `deferred ${count} times in ${Math.round(deferredMs)} ms and would wait ${retryAfterMs} ms more: ` +
        'over maxDeferrals or maxDeferredMs',
    );
  }
}

/** Whether `error` was thrown by Flyball, by whichever copy of the package. */
export function isFlyballError(error: unknown): error is FlyballError {
  return typeof error === 'object' && error !== null && MARK in error;
}

const guard =
  <E extends FlyballError>(code: E['code']) =>
  (error: unknown): error is E =>
    isFlyballError(error) && error.code === code;

export const isInvalidOptionError = guard<InvalidOptionError>('FLYBALL_INVALID_OPTION');
export const isCostExceedsBurstError = guard<CostExceedsBurstError>('FLYBALL_COST_EXCEEDS_BURST');
export const isWaitTooLongError = guard<WaitTooLongError>('FLYBALL_WAIT_TOO_LONG');
export const isTooManyWaitersError = guard<TooManyWaitersError>('FLYBALL_TOO_MANY_WAITERS');
export const isGovernorClosedError = guard<GovernorClosedError>('FLYBALL_GOVERNOR_CLOSED');
export const isStoreUnavailableError = guard<StoreUnavailableError>('FLYBALL_STORE_UNAVAILABLE');
export const isRefusedError = guard<RefusedError>('FLYBALL_REFUSED');
export const isDeferralLimitError = guard<DeferralLimitError>('FLYBALL_DEFERRAL_LIMIT');

function show(value: unknown): string {
  if (typeof value === 'string') return JSON.stringify(value.length > 80 ? `${value.slice(0, 80)}…` : value);
  if (typeof value === 'bigint') return `${value}n`;
  if (typeof value === 'function') return 'a function';
  if (typeof value === 'object' && value !== null) {
    try {
      const text = JSON.stringify(value);
      return text.length > 80 ? `${text.slice(0, 80)}…` : text;
    } catch {
      return 'an object';
    }
  }
  return String(value);
}
