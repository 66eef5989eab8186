/** Flyball's public API. Adapters have entries of their own: `flyball/bullmq`, `flyball/testing`. */

// Limits
export type { AdaptiveOptions } from './core/adaptive-options.ts';
// The clock a governor waits by, and the connections it takes
export type { Clock } from './core/clock.ts';
export type { ConcurrencyLimit, ConcurrencyLimitOptions } from './core/concurrency-limit.ts';
export type { Decision, Grant, LimitState, Refusal, Reservation } from './core/decision.ts';
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
export type { ConfiguredEvent, GovernorEvents } from './core/events.ts';
export type { FeedbackOptions, HeadersLike } from './core/feedback.ts';
export type { Governor } from './core/governor.ts';
export type { ColdStart, GovernorOptions } from './core/governor-options.ts';
export type { Limit, LimitOptions, LimitsOptions } from './core/limit.ts';
export {
  perDay,
  perHour,
  perMinute,
  perSecond,
  type RateLimit,
  type RateLimitOptions,
} from './core/rate-limit.ts';
export type { Cost, Keys } from './core/request.ts';
export type {
  Priority,
  RequestOptions,
  ReserveOptions,
  RunOptions,
  WaitOptions,
} from './core/request-options.ts';
// Steering a running governor
export type {
  ConfigurationView,
  ConfigurationWithHistory,
  ConfigureOptions,
  SteeringOptions,
} from './core/steering.ts';
export { isThrottled, Throttled, type ThrottledOptions } from './core/throttled.ts';
// Requests and their answers
export type { RefusalReason } from './core/verdict.ts';
export type { WindowLimit, WindowLimitOptions } from './core/window-limit.ts';
// The governor
export { type CreateGovernorOptions, createGovernor } from './create-governor.ts';
export type { RedisClient, RedisConnection } from './store/redis/connection.ts';
