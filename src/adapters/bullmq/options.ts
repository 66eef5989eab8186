import type { Job } from 'bullmq';
import type { Refusal } from '../../core/decision.ts';
import { InvalidOptionError } from '../../core/errors.ts';
import { Governor } from '../../core/governor.ts';
import { durationMs, knownNames, oneOf, plainObject } from '../../core/options.ts';
import type { Cost, Keys } from '../../core/request.ts';

/** What becomes of a refused job. */
export type RefusedAction = 'delay' | 'requeue' | 'fail' | 'drop';

/** Decides it job by job; may be asynchronous. */
export type OnRefused<J> = (job: J, refusal: Refusal) => RefusedAction | Promise<RefusedAction>;

// biome-ignore lint/suspicious/noExplicitAny: BullMQ's own default, so that a Job of any data is accepted.
export interface GovernOptions<J = Job<any, any, any>> {
  /** The governor that every job asks before it runs. It has its own connection and is not closed by the worker. */
  governor: Governor;
  /** Tokens a job takes. Called at each start of the job. Default: 1. */
  cost?: Cost | ((job: J) => Cost);
  /** Values for the limits declared with `by`. Called at each start of the job. */
  keys?: Keys | ((job: J) => Keys);
  /**
   * The longest a job waits in this process for its tokens, in milliseconds: 0 to 3,600,000, default 1,000. BullMQ renews
   * its lock meanwhile. Longer lets fewer workers follow a slow limit with fewer starts per job; shorter lets a worker
   * follow a change sooner.
   */
  maxHoldMs?: number;
  /**
   * What becomes of a job that would have to wait longer. `'delay'` (default): it is put aside until its slot.
   * `'requeue'`: it goes to the tail, so that others run first; at its slot if nothing else waits. `'fail'`: it fails
   * with a RefusedError, which is an attempt. `'drop'`: it completes without having run. Or a function.
   */
  onRefused?: RefusedAction | OnRefused<J>;
  /**
   * For an operator: a job for which this returns a reason (a string) runs as soon as it is fetched, whatever the limits
   * hold. Its cost is charged as debt. Each use is told to `onBypass`. (A worker that a governor-wide limit would keep
   * waiting for longer than `maxHoldMs` fetches nothing until that has passed, this job included.)
   */
  bypass?: (job: J) => string | undefined | false;
  /** Told of each job that bypassed the limits. Default: a warning of the process. */
  onBypass?: (job: J, reason: string) => void;
}

/** The same, checked and complete. */
export interface Govern<J> {
  readonly governor: Governor;
  readonly cost: (job: J) => Cost;
  readonly keys: (job: J) => Keys | undefined;
  readonly maxHoldMs: number;
  readonly onRefused: RefusedAction | OnRefused<J>;
  readonly bypass: (job: J) => string | undefined | false;
  readonly onBypass: (job: J, reason: string) => void;
}

export const REFUSED_ACTIONS = ['delay', 'requeue', 'fail', 'drop'] as const;
const NAMES = ['governor', 'cost', 'keys', 'maxHoldMs', 'onRefused', 'bypass', 'onBypass'];

/** @throws {@link InvalidOptionError} */
export function parseGovernOptions<J extends { id?: string | undefined }>(options: unknown): Govern<J> {
  const given = plainObject('govern', options) as Partial<GovernOptions<J>>;
  knownNames('govern', given, NAMES);
  const { governor, cost = 1, keys, maxHoldMs = 1_000, onRefused = 'delay', bypass, onBypass } = given;
  if (!isGovernor(governor))
    throw new InvalidOptionError('govern.governor', 'what createGovernor() returns', governor);
  for (const [name, value] of Object.entries({ bypass, onBypass })) {
    if (value !== undefined && typeof value !== 'function') {
      throw new InvalidOptionError(`govern.${name}`, 'a function', value);
    }
  }
  return Object.freeze({
    governor,
    cost: typeof cost === 'function' ? cost : () => cost,
    keys: typeof keys === 'function' ? keys : () => keys,
    maxHoldMs: durationMs('govern.maxHoldMs', maxHoldMs, 0, 3_600_000),
    onRefused:
      typeof onRefused === 'function' ? onRefused : oneOf('govern.onRefused', onRefused, REFUSED_ACTIONS),
    bypass: bypass ?? (() => undefined),
    onBypass:
      onBypass ??
      ((job, reason) =>
        process.emitWarning(
          `job ${job.id} bypassed governor "${governor.name}": ${reason}`,
          'FlyballWarning',
        )),
  });
}

// Structurally, so that a governor made by another copy of the package is one too.
function isGovernor(value: unknown): value is Governor {
  return (
    value instanceof Governor ||
    (typeof value === 'object' && value !== null && 'reserveN' in value && 'peek' in value)
  );
}
