import { CostExceedsBurstError, InvalidOptionError } from './errors.ts';
import type { Limits, RateLimit } from './limit.ts';
import { nearestName, plainObject } from './options.ts';

/** Values of the attributes that limits declare with `by`, for example `{ shop: 'acme' }`. Numbers become strings. */
export type Keys = Readonly<Record<string, string | number | null | undefined>>;

/**
 * Tokens to take: one whole number for all limits, or one per limit by name. A limit that is not named takes 1, and
 * one with 0 is left out of the request.
 */
export type Cost = number | Readonly<Record<string, number>>;

/** What a request does to one bucket. */
export interface Leg {
  readonly limit: RateLimit;
  /** The limit's name, with `:` and the key's value if it has one. Unique within the governor. */
  readonly bucket: string;
  readonly cost: number;
}

const MAX_KEY_LENGTH = 256;

/**
 * The buckets that a request meets, in the order in which the limits were declared. A request without a value for a
 * limit's attribute uses that limit's bucket for "no value", which no value of the attribute shares.
 *
 * @throws {@link InvalidOptionError} for a cost or a key that is none, or names a limit or attribute that is not there.
 * @throws {@link CostExceedsBurstError} for a cost that can never pass.
 */
export function legsOf(limits: Limits, cost: Cost, keys: Keys | undefined): Leg[] {
  checkNames(limits, cost, keys);
  const legs: Leg[] = [];
  for (const limit of limits) {
    const tokens = costFor(limit, cost);
    if (tokens === 0) continue;
    if (tokens > limit.burst) throw new CostExceedsBurstError(limit.name, tokens, limit.burst);
    const bucket =
      limit.by === null
        ? limit.name
        : `${limit.name}:${keyValue(limit.by, keys && Object.hasOwn(keys, limit.by) ? keys[limit.by] : undefined)}`;
    legs.push({ limit, bucket, cost: tokens });
  }
  if (legs.length === 0) throw new InvalidOptionError('cost', 'at least one limit with a cost above 0', cost);
  return legs;
}

function costFor(limit: RateLimit, cost: Cost): number {
  if (typeof cost === 'number') return wholeCost('cost', cost, 1);
  const own = Object.hasOwn(cost, limit.name) ? cost[limit.name] : undefined;
  return own === undefined ? 1 : wholeCost(`cost.${limit.name}`, own, 0);
}

function wholeCost(option: string, cost: unknown, min: 0 | 1): number {
  if (typeof cost === 'number' && Number.isSafeInteger(cost) && cost >= min) return cost;
  throw new InvalidOptionError(option, `a whole number of tokens, ${min} or more`, cost);
}

function keyValue(attribute: string, value: unknown): string {
  if (value === undefined || value === null) return '';
  const text = typeof value === 'number' ? String(value) : value;
  if (typeof text === 'string' && text.length > 0 && text.length <= MAX_KEY_LENGTH && isKey(value, text))
    return text;
  throw new InvalidOptionError(
    `keys.${attribute}`,
    `a well-formed string of 1 to ${MAX_KEY_LENGTH} characters or a finite number`,
    value,
  );
}

// Half a surrogate pair (an emoji cut in two) is sent as U+FFFD: two keys here would be one bucket there, charged once.
const HALF_PAIR = /\p{Surrogate}/u;

function isKey(value: unknown, text: string): boolean {
  return typeof value === 'number' ? Number.isFinite(value) : !HALF_PAIR.test(text);
}

// On the path of every decision, hence by hand rather than through knownNames, which builds lists.
function checkNames(limits: Limits, cost: Cost, keys: Keys | undefined): void {
  if (typeof cost !== 'number') {
    if (typeof cost !== 'object' || cost === null) {
      throw new InvalidOptionError(
        'cost',
        'a whole number of tokens, 1 or more, or an object with one per limit',
        cost,
      );
    }
    for (const name in plainObject('cost', cost)) {
      if (!limits.some((limit) => limit.name === name))
        refuseName(
          'cost',
          name,
          limits.map((limit) => limit.name),
        );
    }
  }
  if (keys === undefined) return;
  for (const name in plainObject('keys', keys)) {
    if (limits.some((limit) => limit.by === name)) continue;
    refuseName(
      'keys',
      name,
      limits.flatMap((limit) => (limit.by === null ? [] : [limit.by])),
    );
  }
}

function refuseName(option: 'cost' | 'keys', name: string, known: readonly string[]): never {
  const near = nearestName(name, known);
  const what = option === 'cost' ? 'the name of a limit' : 'an attribute that a limit is declared by';
  const hint = near === undefined ? known.join(', ') || 'none is' : `did you mean "${near}"?`;
  throw new InvalidOptionError(`${option}.${name}`, `${what} (${hint})`, name);
}
