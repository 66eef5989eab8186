import { plainObject } from '../../core/checks.ts';
import { type Cost, type Keys, keyValue, wholeCost } from '../../core/decide/demands.ts';
import { InvalidOptionError, isInvalidOptionError } from '../../core/errors.ts';

/**
 * Values given in place of functions are the same for all jobs, so what is wrong with them is said when the worker is
 * made, not by its first job. Whether the limits have such names is the store's to say, and may change.
 */

/** @throws {@link InvalidOptionError} */
export function constantCost(cost: Cost): () => Cost {
  named(() => {
    if (typeof cost !== 'object') return wholeCost('cost', cost, 1);
    for (const [limit, tokens] of Object.entries(plainObject('cost', cost)))
      wholeCost(`cost.${limit}`, tokens, 0);
  });
  return () => cost;
}

/** @throws {@link InvalidOptionError} */
export function constantKeys(keys: Keys | undefined): () => Keys | undefined {
  named(() => {
    if (keys === undefined) return;
    for (const [attribute, value] of Object.entries(plainObject('keys', keys))) keyValue(attribute, value);
  });
  return () => keys;
}

/** The checks are those of a request; the option they speak of here is another one. */
function named(check: () => unknown): void {
  try {
    check();
  } catch (error) {
    if (!isInvalidOptionError(error)) throw error;
    throw new InvalidOptionError(`govern.${error.option}`, error.expected, error.received);
  }
}
