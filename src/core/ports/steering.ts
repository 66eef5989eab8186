import type { Keys } from '../decide/demands.ts';
import type { Configuration, ConfigurationChange } from '../limits/configuration.ts';
import type { Limits } from '../limits/limit.ts';

/** The limits in force and pauses: the same for all processes. */
export interface Steering {
  /**
   * The version of the limits in force, asked of the store now. Only where others can change it unseen; where it is missing,
   * a message tells of every change at once.
   */
  confirm?(): Promise<number>;
  /** The limits in force. */
  limits(): Promise<Limits>;
  /** Sets an operator's limits, beside those that were set before: they win over code's of the same name until `reset`. */
  configure(change: { readonly limits: Limits }, who: string): Promise<Configuration>;
  /** Takes all of the operator's limits away: code's are in force again. */
  reset(who: string): Promise<Configuration>;
  /** Everything about the limits in force, and the last changes, newest first. */
  configuration(): Promise<Configuration & { readonly history: readonly ConfigurationChange[] }>;
  /** Pauses the buckets of these keys, or all of the governor, for so long; the longest pause wins. */
  pause(keys: Keys | undefined, forUs: number): Promise<void>;
  /** Ends a pause before its time. */
  resume(keys: Keys | undefined): Promise<void>;
}
