/** Flyball's public API. Adapters have entries of their own: `flyball/bullmq`, `flyball/testing`. */

// The clock a governor waits by, and the connections it takes
export type { Clock } from './core/clock.ts';
// Requests and their answers
export type { RefusalReason } from './core/decide.ts';
export type { Decision, Grant, LimitState, Refusal, Reservation } from './core/decision.ts';
// Errors
export {
  CostExceedsBurstError,
  FlyballError,
  type FlyballErrorCode,
  GovernorClosedError,
  InvalidOptionError,
  isCostExceedsBurstError,
  isFlyballError,
  isGovernorClosedError,
  isInvalidOptionError,
  isRefusedError,
  isStoreUnavailableError,
  isTooManyWaitersError,
  isWaitTooLongError,
  RefusedError,
  StoreUnavailableError,
  TooManyWaitersError,
  WaitTooLongError,
} from './core/errors.ts';
export type { Governor, RequestOptions, ReserveOptions, WaitOptions } from './core/governor.ts';
export type { ColdStart, GovernorOptions } from './core/governor-options.ts';
// Limits
export {
  type LimitOptions,
  type LimitsOptions,
  perDay,
  perHour,
  perMinute,
  perSecond,
  type RateLimit,
  type RateLimitOptions,
} from './core/limit.ts';
export type { Cost, Keys } from './core/request.ts';
// The governor
export { type CreateGovernorOptions, createGovernor } from './create-governor.ts';
export type { RedisClient, RedisConnection } from './store/redis/connection.ts';
