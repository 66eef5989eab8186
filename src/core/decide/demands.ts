import { type ConcurrencyDemand, type Demand, kindOf } from '../buckets/kinds.ts';
import { check, nearestName, plainObject } from '../checks.ts';
import { CostExceedsBurstError, InvalidOptionError } from '../errors.ts';
import { kindOfLimit, type Limit, type Limits } from '../limits/limit.ts';

/** Values of the attributes that limits declare with `by`, for example `{ shop: 'acme' }`. Numbers become strings. */
export type Keys = Readonly<Record<string, string | number | null | undefined>>;

/**
 * Tokens to take: one whole number for all limits, or one per limit by name. A limit that is not named takes 1, and
 * one with 0 is left out of the request. A concurrency limit takes 1 slot unless it is named.
 */
export type Cost = number | Readonly<Record<string, number>>;

export type { ConcurrencyDemand, Demand };

const MAX_KEY_LENGTH = 256;

/**
 * The buckets that a request meets, in the order in which the limits were declared. A request without a value for a
 * limit's attribute uses that limit's bucket for "no value", which no value of the attribute shares.
 *
 * @throws {@link InvalidOptionError} for a cost or a key that is not valid, or a name of a limit or attribute that is not there.
 * @throws {@link CostExceedsBurstError} for a cost that can never pass.
 */
export function demandsOf(limits: Limits, cost: Cost, keys: Keys | undefined): Demand[] {
  checkNames(limits, cost, keys);
  const demands: Demand[] = [];
  for (const limit of limits) {
    const tokens = costFor(limit, cost);
    if (tokens === 0) continue;
    const most = kindOfLimit(limit).mostCost(limit);
    if (tokens > most) throw new CostExceedsBurstError(limit.name, tokens, most);
    pushDemands(demands, limit, tokens, keys);
  }
  check(demands.length > 0, 'cost', 'at least one limit with a cost above 0', cost);
  return demands;
}

function pushDemands(demands: Demand[], limit: Limit, cost: number, keys: Keys | undefined): void {
  const { kind, name, by } = limit;
  const bucket = by === null ? name : `${name}:${keyOf(by, keys)}`;
  const demand = { kind, limit, bucket, by, cost } as Demand;
  demands.push(demand);
  const companion = kindOf(demand).companion?.(demand, (attribute) => keyOf(attribute, keys));
  if (companion !== undefined) demands.push(companion as Demand);
}

const keyOf = (by: string, keys: Keys | undefined): string =>
  keyValue(by, keys && Object.hasOwn(keys, by) ? keys[by] : undefined);

/**
 * The buckets that the given values of attributes have, and no others: what a pause of a key pauses.
 * @throws {@link InvalidOptionError}
 */
export function keyedDemandsOf(limits: Limits, keys: Keys): Demand[] {
  checkNames(limits, 1, keys);
  const demands: Demand[] = [];
  for (const limit of limits) {
    const by = attributeOf(limit);
    if (by !== null && Object.hasOwn(keys, by)) pushDemands(demands, limit, 1, keys);
  }
  check(demands.length > 0, 'keys', 'a value for an attribute that a limit is declared by', keys);
  return demands.filter((demand) => demand.by !== null);
}

/** What a request has cost after all, demand by demand; limits that are not named stay as they were. @throws {@link InvalidOptionError} */
export function actualOf(demands: readonly Demand[], actual: Cost): number[] {
  const limits = demands.map(({ limit }) => limit);
  checkNames(limits, actual, undefined, 'actual');
  if (typeof actual === 'number') {
    const tokens = wholeCost('actual', actual, 0);
    return demands.map(({ limit, cost }) => (kindOfLimit(limit).countsTokens ? tokens : cost));
  }
  return demands.map(({ limit, cost }) =>
    Object.hasOwn(actual, limit.name) ? wholeCost(`actual.${limit.name}`, actual[limit.name], 0) : cost,
  );
}

const attributeOf = (limit: Limit): string | null => kindOfLimit(limit).attributeOf(limit);

function costFor(limit: Limit, cost: Cost): number {
  if (typeof cost === 'number') {
    const tokens = wholeCost('cost', cost, 1);
    return kindOfLimit(limit).countsTokens ? tokens : 1;
  }
  const given = Object.hasOwn(cost, limit.name) ? cost[limit.name] : undefined;
  return given === undefined ? 1 : wholeCost(`cost.${limit.name}`, given, 0);
}

export function wholeCost(option: string, cost: unknown, min: 0 | 1): number {
  if (typeof cost === 'number' && Number.isSafeInteger(cost) && cost >= min) return cost;
  throw new InvalidOptionError(option, `a whole number of tokens, ${min} or more`, cost);
}

export function keyValue(attribute: string, value: unknown): string {
  if (value === undefined || value === null) return '';
  const text = typeof value === 'number' ? String(value) : value;
  if (typeof text === 'string' && text.length > 0 && text.length <= MAX_KEY_LENGTH && isKey(value, text))
    return text;
  const expected = `a well-formed string of 1 to ${MAX_KEY_LENGTH} characters or a finite number`;
  throw new InvalidOptionError(`keys.${attribute}`, expected, value);
}

// Half a surrogate pair (an emoji cut in two) is sent as U+FFFD: two keys here would be one bucket there, charged once.
const HALF_PAIR = /\p{Surrogate}/u;

function isKey(value: unknown, text: string): boolean {
  return typeof value === 'number' ? Number.isFinite(value) : !HALF_PAIR.test(text);
}

// On the path of every decision, hence by hand rather than through knownNames, which builds lists.
function checkNames(
  limits: Limits,
  cost: Cost,
  keys: Keys | undefined,
  option: 'cost' | 'actual' = 'cost',
): void {
  if (typeof cost !== 'number') {
    const least = option === 'cost' ? 1 : 0;
    const expected = `a whole number of tokens, ${least} or more, or an object with one per limit`;
    check(typeof cost === 'object' && cost !== null, option, expected, cost);
    for (const name in plainObject(option, cost)) {
      if (limits.some((limit) => limit.name === name)) continue;
      const names = limits.map((limit) => limit.name);
      refuseName(option, name, names);
    }
  }
  if (keys === undefined) return;
  for (const name in plainObject('keys', keys)) {
    if (limits.some((limit) => attributeOf(limit) === name)) continue;
    const attributes = limits.flatMap((limit) => attributeOf(limit) ?? []);
    refuseName('keys', name, attributes);
  }
}

function refuseName(option: 'cost' | 'actual' | 'keys', name: string, known: readonly string[]): never {
  const near = nearestName(name, known);
  const what = option === 'keys' ? 'an attribute that a limit is declared by' : 'the name of a limit';
  const hint = near === undefined ? known.join(', ') || 'none is' : `did you mean "${near}"?`;
  throw new InvalidOptionError(`${option}.${name}`, `${what} (${hint})`, name);
}
