import { isFlyballError, StoreUnavailableError } from '../../../core/errors.ts';
import type { Script } from '../scripts.generated.ts';
import type { RedisClient } from './redis-client.ts';

/** What a script is given beside its keys: yes and no are 1 and 0. */
export type Argument = string | number | boolean;

/**
 * Runs a script by its hash, and once more with its text if the server does not have it (a restart, a failover,
 * SCRIPT FLUSH): callers never see that. Nothing else is tried again, since a call without an answer may have charged.
 *
 * @throws {@link StoreUnavailableError} `FLYBALL_STORE_UNAVAILABLE`: no answer; `cause` is the client's error.
 */
export async function runScript(
  client: RedisClient,
  script: Script,
  keys: readonly string[],
  args: readonly Argument[],
): Promise<unknown> {
  const texts = args.map((arg) => (typeof arg === 'boolean' ? String(Number(arg)) : String(arg)));
  try {
    try {
      return await client.evalsha(script.sha1, keys, texts);
    } catch (error) {
      if (!messageOf(error).includes('NOSCRIPT')) throw error;
      return await client.eval(script.source, keys, texts);
    }
  } catch (error) {
    if (isFlyballError(error)) throw error;
    throw new StoreUnavailableError(`Redis gave no answer: ${messageOf(error)}`, error);
  }
}

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

/** A whole number in a reply; NaN for anything else. */
export function wholeOf(text: string | undefined): number {
  const value = text !== undefined && /^\d+$/.test(text) ? Number(text) : Number.NaN;
  return Number.isSafeInteger(value) ? value : Number.NaN;
}

export const malformed = (wanted: string, reply: unknown): StoreUnavailableError =>
  new StoreUnavailableError(`expected ${wanted} from the store, received ${JSON.stringify(reply)}`);
