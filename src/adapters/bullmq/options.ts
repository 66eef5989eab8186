import type { Job } from 'bullmq';
import type { Refusal } from '../../core/answers.ts';
import { type Cost, hasDesk, type Keys, keyValue, type Priority, wholeCost } from '../../core/calls/desk.ts';
import { durationMs, knownNames, oneOf, plainObject, wholeNumber } from '../../core/checks.ts';
import { InvalidOptionError, isInvalidOptionError } from '../../core/errors.ts';
import type { Governor } from '../../core/governor.ts';

/** What becomes of a refused job. */
export type RefusedAction = 'delay' | 'requeue' | 'fail' | 'drop';

/** Decides it job by job; may be asynchronous. */
export type OnRefused<J> = (job: J, refusal: Refusal) => RefusedAction | Promise<RefusedAction>;

/** What becomes of a job that was deferred as often, or for as long, as it may be. */
export type DeferralEnd = 'fail' | 'drop' | 'delay';

/** A job that meets `maxDeferrals` or `maxDeferredMs`. */
export interface DeferralLimit {
  /** How often it was deferred. */
  readonly count: number;
  /** Milliseconds since it first was. */
  readonly deferredMs: number;
  /** Why it would be deferred once more; null: its processor threw `Throttled`. */
  readonly refusal: Refusal | null;
}

/** Decides it job by job; may be asynchronous. */
export type OnDeferralLimit<J> = (job: J, limit: DeferralLimit) => DeferralEnd | Promise<DeferralEnd>;

// biome-ignore lint/suspicious/noExplicitAny: BullMQ's own default, so that a Job of any data is accepted.
export interface GovernOptions<J = Job<any, any, any>> {
  /** The governor that every job asks before it runs. It has its own connection and is not closed by the worker. */
  governor: Governor;
  /** Tokens a job takes. Called at each start of the job. Default: 1. */
  cost?: Cost | ((job: J) => Cost);
  /** Values for the limits declared with `by`. Called at each start of the job. */
  keys?: Keys | ((job: J) => Keys);
  /**
   * How urgent a job is, to limits with `reserve`. Called at each start of the job. Default `'normal'`. A job that has waited
   * for 10 s since it was due counts as one class more urgent. (In which order jobs are fetched is BullMQ's own `priority`.)
   */
  priority?: Priority | ((job: J) => Priority);
  /**
   * What a job has cost after all, told from its result; see `Grant.settle`. Not called for a job that failed, whose estimate
   * then stays charged. Default: what `cost` said.
   */
  // biome-ignore lint/suspicious/noExplicitAny: BullMQ's own default for what a processor returns.
  settle?: (job: J, result: any) => Cost;
  /**
   * The longest a job waits in this process for its tokens, in milliseconds: 0 to 3,600,000, default 1,000. BullMQ renews
   * its lock meanwhile. Longer lets fewer workers follow a slow limit with fewer starts per job; shorter lets a worker
   * follow a change sooner.
   */
  maxHoldMs?: number;
  /**
   * What becomes of a job that would have to wait longer. `'delay'` (default): it is deferred until its turn.
   * `'requeue'`: it goes to the tail, so that others run first; at its turn if nothing else waits. `'fail'`: it fails
   * with a RefusedError, which is an attempt. `'drop'`: it completes without having run. Or a function.
   */
  onRefused?: RefusedAction | OnRefused<J>;
  /** How often a job may be deferred before a start: a whole number from 1. Default: no limit. */
  maxDeferrals?: number;
  /**
   * How long a job may be deferred in all before a start, in milliseconds, from its first deferral to its next turn: 1
   * or more. Default: no limit.
   */
  maxDeferredMs?: number;
  /**
   * What becomes of a job that would be deferred beyond that. `'fail'` (default): it fails with a DeferralLimitError,
   * for good, whatever `attempts` it has left. `'drop'`: it completes without having run. Or a function, which may also
   * answer `'delay'`: once more.
   */
  onDeferralLimit?: Exclude<DeferralEnd, 'delay'> | OnDeferralLimit<J>;
  /**
   * For an operator: a job for which this returns a reason (a string) runs as soon as it is fetched, whatever the limits
   * hold. Its cost is charged as debt. Each use is told to `onBypass`. (A worker that a governor-wide limit would keep
   * waiting for longer than `maxHoldMs` fetches nothing until that has passed, this job included.)
   */
  bypass?: (job: J) => string | undefined | false;
  /** Told of each job that bypassed the limits. Default: a warning of the process. */
  onBypass?: (job: J, reason: string) => void;
}

/** The same, checked and complete; without a limit of deferrals these are `Infinity`. */
export type Govern<J> = Readonly<
  Required<Omit<GovernOptions<J>, 'cost' | 'keys' | 'priority' | 'settle'>> & {
    cost: (job: J) => Cost;
    keys: (job: J) => Keys | undefined;
    priority: (job: J) => Priority;
    settle: GovernOptions<J>['settle'] | undefined;
  }
>;

export const REFUSED_ACTIONS = ['delay', 'requeue', 'fail', 'drop'] as const;
export const DEFERRAL_ENDS = ['fail', 'drop', 'delay'] as const;
const NAMES = [
  'governor',
  'cost',
  'keys',
  'priority',
  'settle',
  'maxHoldMs',
  'onRefused',
  'maxDeferrals',
  'maxDeferredMs',
  'onDeferralLimit',
  'bypass',
  'onBypass',
];
const FOREVER = Number.POSITIVE_INFINITY;

/** @throws {@link InvalidOptionError} */
export function parseGovernOptions<J extends { id?: string | undefined }>(options: unknown): Govern<J> {
  const given = plainObject('govern', options) as Partial<GovernOptions<J>>;
  knownNames('govern', given, NAMES);
  const { governor, cost = 1, keys, priority = 'normal', settle, maxHoldMs = 1_000 } = given;
  const { onRefused = 'delay', bypass = () => undefined, onBypass } = given;
  const { maxDeferrals, maxDeferredMs = FOREVER, onDeferralLimit = 'fail' } = given;
  if (governor === undefined || !hasDesk(governor))
    throw new InvalidOptionError('govern.governor', 'what createGovernor() returns', governor);
  for (const [name, value] of Object.entries({ settle, bypass, onBypass })) {
    if (value !== undefined && typeof value !== 'function') {
      throw new InvalidOptionError(`govern.${name}`, 'a function', value);
    }
  }
  return Object.freeze({
    governor,
    cost: perJob<J, Cost>(cost, checkCost),
    keys: perJob<J, Keys | undefined>(keys, checkKeys),
    priority: perJob<J, Priority>(priority, (value) => oneOf('priority', value, ['high', 'normal', 'low'])),
    settle,
    maxHoldMs: durationMs('govern.maxHoldMs', maxHoldMs, 0, 3_600_000),
    onRefused:
      typeof onRefused === 'function' ? onRefused : oneOf('govern.onRefused', onRefused, REFUSED_ACTIONS),
    maxDeferrals:
      maxDeferrals === undefined
        ? FOREVER
        : wholeNumber('govern.maxDeferrals', maxDeferrals, 1, Number.MAX_SAFE_INTEGER),
    maxDeferredMs: durationMs('govern.maxDeferredMs', maxDeferredMs, 1, FOREVER),
    onDeferralLimit:
      typeof onDeferralLimit === 'function'
        ? onDeferralLimit
        : oneOf('govern.onDeferralLimit', onDeferralLimit, ['fail', 'drop']),
    bypass,
    onBypass:
      onBypass ??
      ((job, reason) =>
        process.emitWarning(
          `job ${job.id} bypassed governor "${governor.name}": ${reason}`,
          'FlyballWarning',
        )),
  });
}

/**
 * A value given in place of a function is the same for all jobs, so what is wrong with it is said when the worker is made, not by
 * its first job. Whether the limits have such names is the store's to say, and may change.
 */
function perJob<J, T>(given: T | ((job: J) => T), check: (value: T) => unknown): (job: J) => T {
  if (typeof given === 'function') return given as (job: J) => T;
  try {
    check(given);
  } catch (error) {
    if (!isInvalidOptionError(error)) throw error;
    // The checks are those of a request; the option they speak of here is another one.
    throw new InvalidOptionError(`govern.${error.option}`, error.expected, error.received);
  }
  return () => given;
}

/** What an option says of one job: itself, or what the user's function answers. @throws InvalidOptionError for nonsense. */
export async function said<J, W, A extends string>(
  option: 'onRefused' | 'onDeferralLimit',
  given: A | ((job: J, why: W) => A | Promise<A>),
  allowed: readonly A[],
  job: J,
  why: W,
): Promise<A> {
  if (typeof given !== 'function') return given;
  return oneOf(`what govern.${option} returns`, await given(job, why), allowed);
}

function checkCost(cost: Cost): void {
  if (typeof cost !== 'object') wholeCost('cost', cost, 1);
  else
    for (const [limit, tokens] of Object.entries(plainObject('cost', cost)))
      wholeCost(`cost.${limit}`, tokens, 0);
}

function checkKeys(keys: Keys | undefined): void {
  if (keys === undefined) return;
  for (const [attribute, value] of Object.entries(plainObject('keys', keys))) keyValue(attribute, value);
}
