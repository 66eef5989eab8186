/** `flyball/bullmq`: BullMQ workers and processors that ask a governor before each job. */
export { attemptOf, type Governed, governed } from './governed.ts';
export { GovernedWorker, type GovernedWorkerOptions } from './governed-worker.ts';
export type { GovernOptions, OnRefused, RefusedAction } from './options.ts';
export type { GoverningState } from './state.ts';
