/** `flyball/bullmq`: BullMQ workers and processors that ask a governor before each job. */
export { isThrottled, Throttled, type ThrottledOptions } from '../../core/calls/desk.ts';
export { attemptOf, type Governed, governed } from './governed.ts';
export {
  GovernedWorker,
  type GovernedWorkerListener,
  type GovernedWorkerOptions,
} from './governed-worker.ts';
export type {
  DeferralEnd,
  DeferralLimit,
  GovernOptions,
  OnDeferralLimit,
  OnRefused,
  RefusedAction,
} from './options.ts';
export { type Deferred, type GoverningState, grantOf } from './state.ts';
