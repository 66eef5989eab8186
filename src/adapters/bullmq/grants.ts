import type { Grant } from '../../core/answers.ts';

const grants = new WeakMap<object, Grant>();

/** The job runs under this grant from now on. */
export function giveGrant(job: object, grant: Grant): void {
  grants.set(job, grant);
}

/**
 * The grant that a job runs under, for its processor: the fencing number of its slot (`fence`), the signal that aborts when
 * the slot was lost, and `settle`. Undefined outside a governed processor, and for a job that bypassed the limits.
 *
 * @example
 * const worker = new GovernedWorker('orders', (job) => write(job.data, { fence: grantOf(job)?.fence }), options);
 */
export const grantOf = (job: object): Grant | undefined => grants.get(job);
