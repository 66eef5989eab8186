import { check, durationMs, knownNames, oneOf, optional, plainObject, wholeNumber } from '../checks.ts';
import { type Limits, type LimitsOptions, parseLimits } from './limit.ts';

/** What a bucket holds when it has no state: all of its burst, or nothing. */
export type ColdStart = 'full' | 'empty';

/** The options of a governor that do not depend on where its buckets live. */
export interface GovernorOptions {
  /** Name of the governor: all processes that give the same name to the same store share its limits. */
  name: string;
  /** The limits by name; every request meets all of them. At least one. */
  limits: LimitsOptions;
  /**
   * What the buckets hold when the governor is first used. `'full'` (default): their burst may pass at once.
   * `'empty'`: nothing may, until tokens have come at the limit's rate. Buckets whose state was lost start empty anyway.
   */
  coldStart?: ColdStart;
  /** The most calls that may wait in this process; one more is an error at once. 1 to 1,000,000, default 10,000. */
  maxWaiters?: number;
  /**
   * A call that wakes more than this after its start has lost its reservation and asks again. Milliseconds, 10 to
   * 60,000, default 100: the promised starts are met to within it.
   */
  graceMs?: number;
  /**
   * Which edition of the limits in code this is, for example a build number: a whole number from 1. The highest that was ever brought
   * wins, so that an older process that starts later cannot undo a newer one's limits; a process without one never
   * replaces one that has it. Left out by all: the process that started last wins.
   */
  revision?: number;
}

/** The same, checked and complete. */
export interface GovernorConfig {
  readonly name: string;
  readonly limits: Limits;
  readonly coldStart: ColdStart;
  readonly maxWaiters: number;
  readonly graceMs: number;
  /** 0: none. */
  readonly revision: number;
}

const NAMES = ['name', 'limits', 'coldStart', 'maxWaiters', 'graceMs', 'revision'];
const MAX_REVISION = Number.MAX_SAFE_INTEGER;

/**
 * Checks a governor's options; those named in `others` are the caller's to check.
 * @throws {@link InvalidOptionError}
 */
export function parseGovernorOptions(options: unknown, others: readonly string[] = []): GovernorConfig {
  const given = plainObject('options', options);
  knownNames('', given, [...NAMES, ...others]);
  const { coldStart = 'full', maxWaiters = 10_000, graceMs = 100 } = given;
  return Object.freeze({
    name: governorName(given.name),
    limits: parseLimits(given.limits),
    coldStart: oneOf('coldStart', coldStart, ['full', 'empty']),
    maxWaiters: wholeNumber('maxWaiters', maxWaiters, 1, 1_000_000),
    graceMs: durationMs('graceMs', graceMs, 10, 60_000),
    revision: optional(given.revision, (value) => wholeNumber('revision', value, 1, MAX_REVISION)) ?? 0,
  });
}

// Braces would change the hash tag that keeps a governor's keys together in a cluster.
function governorName(name: unknown): string {
  const isRight = typeof name === 'string' && /^[^\s\p{C}{}:]{1,100}$/u.test(name);
  check(isRight, 'name', '1 to 100 characters without spaces, control characters, colons or braces', name);
  return name;
}
