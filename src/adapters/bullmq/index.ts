/** `flyball/bullmq`: BullMQ workers and processors that ask a governor before each job. */
export { isThrottled, Throttled, type ThrottledOptions } from '../../core/downstream/throttled.ts';
export { attemptOf, type Governed, governed } from './governed.ts';
export {
  GovernedWorker,
  type GovernedWorkerListener,
  type GovernedWorkerOptions,
} from './governed-worker.ts';
export { grantOf } from './grants.ts';
export type {
  DeferralEnd,
  DeferralLimit,
  GovernOptions,
  OnDeferralLimit,
  OnRefused,
  RefusedAction,
} from './options.ts';
export type { Deferred, GoverningState } from './state.ts';
