import { StoreUnavailableError } from '../../../core/errors.ts';
import { type Limits, parseLimit } from '../../../core/limits/limit.ts';

/** Limits as they are kept in the store: an array, since their order is the order in which a request meets them. */
export function limitsToJson(limits: Limits): string {
  return JSON.stringify(limits.map(({ name, options }) => ({ name, ...options })));
}

/**
 * @throws {@link StoreUnavailableError} for a text that is not limits as this version knows them: a newer version of
 *   this package may have written others, and to leave one out would be to exceed it.
 */
export function limitsFromJson(json: string): Limits {
  try {
    const parsed = JSON.parse(json) as { name: string }[];
    if (parsed.length > 0)
      return Object.freeze(parsed.map(({ name, ...options }) => parseLimit(name, options)));
  } catch (error) {
    throw unreadable(json, error);
  }
  throw unreadable(json);
}

function unreadable(json: string, cause?: unknown): StoreUnavailableError {
  const shown = json.length > 200 ? `${json.slice(0, 200)}…` : json;
  return new StoreUnavailableError(
    `the store holds limits that this version of flyball cannot read: ${shown}`,
    cause,
  );
}
