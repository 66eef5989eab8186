import { isFlyballError, StoreUnavailableError } from '../../../core/errors.ts';
import type { Script } from '../scripts.generated.ts';
import type { RedisClient } from './redis-client.ts';

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
  args: readonly string[],
): Promise<unknown> {
  try {
    try {
      return await client.evalsha(script.sha1, keys, args);
    } catch (error) {
      if (!messageOf(error).includes('NOSCRIPT')) throw error;
      return await client.eval(script.source, keys, args);
    }
  } catch (error) {
    if (isFlyballError(error)) throw error;
    throw new StoreUnavailableError(`Redis gave no answer: ${messageOf(error)}`, error);
  }
}

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));
