import { durationMs, knownNames, plainObject } from '../checks.ts';
import type { Keys } from '../decide/demands.ts';
import { InvalidOptionError } from '../errors.ts';
import type { Configuration } from '../limits/configuration.ts';
import { type LimitsOptions, parseLimits } from '../limits/limit.ts';
import type { Store } from '../ports/store.ts';
import { checkNames, toUs } from './options.ts';

/** A change of the limits of a running governor. */
export interface ConfigureOptions {
  /**
   * Limits by name, each written whole. They win over code's limits of the same name, until `reset`; a name that code does not
   * have adds a limit. Names that are left out stay as they are.
   */
  limits: LimitsOptions;
}

export interface SteeringOptions {
  /** Who makes the change, for the history: 1 to 200 characters. Default: this process (its host and pid). */
  who?: string;
}

export interface ResumeOptions {
  /** For example `{ shop: 'acme' }`. Left out: the whole governor. */
  keys?: Keys;
}

export interface PauseOptions extends ResumeOptions {
  /** For how long, in milliseconds: 1 or more. Left out: until `resume`. */
  forMs?: number;
}

/** The configuration of a governor, for people and their tools; limits are written as code writes them. */
export interface ConfigurationView {
  /** Grows by 1 with each change. */
  readonly version: number;
  /** The highest `revision` that code brought; null: none brought any. */
  readonly revision: number | null;
  /** The limits in force. */
  readonly limits: LimitsOptions;
  /** Those of them that an operator set. */
  readonly operator: LimitsOptions;
}

/** The same, with the last changes, newest first, 100 at most. */
export interface ConfigurationWithHistory extends ConfigurationView {
  readonly history: readonly {
    /** The version that the change made. */
    readonly version: number;
    /** Milliseconds since the epoch, on the store's clock. */
    readonly atMs: number;
    readonly who: string;
    /** A line for each limit that changed: "calls (operator): none → 50 per second, burst 20". */
    readonly what: readonly string[];
  }[];
}

const FOREVER = Number.POSITIVE_INFINITY;

/** @param instance - Who makes the change if `options` does not say. */
export async function configure(
  store: Store,
  instance: string,
  change: ConfigureOptions,
  options: SteeringOptions = {},
): Promise<ConfigurationView> {
  knownNames('', plainObject('options', change), ['limits']);
  return viewOf(await store.configure({ limits: parseLimits(change.limits) }, whoOf(instance, options)));
}

export async function reset(
  store: Store,
  instance: string,
  options: SteeringOptions = {},
): Promise<ConfigurationView> {
  return viewOf(await store.reset(whoOf(instance, options)));
}

export async function configuration(store: Store): Promise<ConfigurationWithHistory> {
  const { history, ...current } = await store.configuration();
  const changes = history.map(({ atUs, ...change }) => ({ ...change, atMs: Math.floor(atUs / 1_000) }));
  return { ...viewOf(current), history: changes };
}

export async function pause(store: Store, options: PauseOptions = {}): Promise<void> {
  checkNames(options, ['keys', 'forMs']);
  const { keys, forMs = FOREVER } = options;
  await store.pause(keys, toUs(durationMs('forMs', forMs, 1, FOREVER)));
}

export async function resume(store: Store, options: ResumeOptions = {}): Promise<void> {
  checkNames(options, ['keys']);
  await store.resume(options.keys);
}

function viewOf({ version, revision, limits, operator }: Configuration): ConfigurationView {
  const written = (parsed: typeof limits): LimitsOptions =>
    Object.fromEntries(parsed.map(({ name, options }) => [name, { ...options }]));
  return {
    version,
    revision: revision === 0 ? null : revision,
    limits: written(limits),
    operator: written(operator),
  };
}

function whoOf(instance: string, options: SteeringOptions): string {
  knownNames('options', plainObject('options', options), ['who']);
  const { who = instance } = options;
  if (typeof who === 'string' && /^[^\p{C}]{1,200}$/u.test(who)) return who;
  throw new InvalidOptionError('who', '1 to 200 characters without control characters', who);
}
