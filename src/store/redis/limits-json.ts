import { StoreUnavailableError } from '../../core/errors.ts';
import { type Limits, MAX_CAPACITY_UNITS, type RateLimit } from '../../core/limit.ts';

/** Limits as they are kept in the store: an array, since their order is the order in which a request meets them. */
export function limitsToJson(limits: Limits): string {
  // Written out, so that the same limits are the same text whoever made the objects.
  return JSON.stringify(
    limits.map(({ name, kind, by, rate, periodUs, burst }) => ({ name, kind, by, rate, periodUs, burst })),
  );
}

/**
 * @throws {@link StoreUnavailableError} for a text that is not limits as this version knows them: a newer version of
 *   this package may have written others, and to leave one out would be to exceed it.
 */
export function limitsFromJson(json: string): Limits {
  let parsed: unknown;
  try {
    parsed = JSON.parse(json);
  } catch (error) {
    throw unreadable(json, error);
  }
  if (!Array.isArray(parsed) || parsed.length === 0 || !parsed.every(isRateLimit)) throw unreadable(json);
  return Object.freeze(
    parsed.map(({ name, kind, by, rate, periodUs, burst }) =>
      Object.freeze({ name, kind, by, rate, periodUs, burst }),
    ),
  );
}

function isRateLimit(value: unknown): value is RateLimit {
  if (typeof value !== 'object' || value === null) return false;
  const { name, kind, by, rate, periodUs, burst } = value as Record<string, unknown>;
  if (typeof name !== 'string' || kind !== 'rate' || !(by === null || typeof by === 'string')) return false;
  if (!isCount(rate) || !isCount(periodUs) || !isCount(burst)) return false;
  return periodUs * burst <= MAX_CAPACITY_UNITS;
}

const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 1;

function unreadable(json: string, cause?: unknown): StoreUnavailableError {
  const shown = json.length > 200 ? `${json.slice(0, 200)}…` : json;
  return new StoreUnavailableError(
    `the store holds limits that this version of flyball cannot read: ${shown}`,
    cause,
  );
}
