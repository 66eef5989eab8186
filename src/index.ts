/** Flyball's public API. Adapters have entries of their own: `flyball/bullmq`, `flyball/testing`. */

export type { Decision, Grant, LimitState, Refusal, Reservation } from './core/answers.ts';
export type {
  Priority,
  RequestOptions,
  ReserveOptions,
  RunOptions,
  WaitOptions,
} from './core/calls/options.ts';
// Steering a running governor
export type {
  ConfigurationView,
  ConfigurationWithHistory,
  ConfigureOptions,
  SteeringOptions,
} from './core/calls/steer.ts';
// The clock a governor waits by, and the connections it takes
export type { Clock } from './core/clock.ts';
export type { Cost, Keys } from './core/decide/demands.ts';
// Requests and their answers
export type { RefusalReason } from './core/decide/verdict.ts';
export type { FeedbackOptions, HeadersLike } from './core/downstream/feedback.ts';
export { isThrottled, Throttled, type ThrottledOptions } from './core/downstream/throttled.ts';
// Errors
export {
  CostExceedsBurstError,
  DeferralLimitError,
  FlyballError,
  type FlyballErrorCode,
  GovernorClosedError,
  InvalidOptionError,
  isCostExceedsBurstError,
  isDeferralLimitError,
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
export type { Governor } from './core/governor.ts';
// Limits
export type { AdaptiveOptions } from './core/limits/adaptive.ts';
export type { ConcurrencyLimit, ConcurrencyLimitOptions } from './core/limits/concurrency.ts';
export type { ColdStart, GovernorOptions } from './core/limits/governor-options.ts';
export type { Limit, LimitOptions, LimitsOptions } from './core/limits/limit.ts';
export {
  perDay,
  perHour,
  perMinute,
  perSecond,
  type RateLimit,
  type RateLimitOptions,
} from './core/limits/rate.ts';
export type { WindowLimit, WindowLimitOptions } from './core/limits/window.ts';
export type { ConfiguredEvent, GovernorEvents } from './core/ports/events.ts';
// The governor
export { type CreateGovernorOptions, createGovernor } from './create-governor.ts';
export type { RedisClient, RedisConnection } from './store/redis/client/connection.ts';
