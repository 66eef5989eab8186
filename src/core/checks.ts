import { InvalidOptionError } from './errors.ts';

/** Checks on plain values, each with the option's path for the message. All throw {@link InvalidOptionError}. */

export function check(
  isRight: boolean,
  option: string,
  expected: string,
  received: unknown,
): asserts isRight {
  if (!isRight) throw new InvalidOptionError(option, expected, received);
}

/** Checks what was given; what was left out stays so. */
export const optional = <T>(value: unknown, parse: (value: unknown) => T): T | undefined =>
  value === undefined ? undefined : parse(value);

export function wholeNumber(option: string, value: unknown, min: number, max: number): number {
  if (typeof value === 'number' && Number.isInteger(value) && value >= min && value <= max) return value;
  throw new InvalidOptionError(option, `a whole number from ${min} to ${max}`, value);
}

/** A time in milliseconds; `Infinity` where `max` is. */
export function durationMs(option: string, value: unknown, min: number, max: number): number {
  if (typeof value === 'number' && value >= min && value <= max) return value;
  const range = max === Number.POSITIVE_INFINITY ? `${min} or more` : `from ${min} to ${max}`;
  throw new InvalidOptionError(option, `milliseconds, ${range}`, value);
}

/**
 * A decimal as a whole number of 1/scale: 0.1 becomes 100,000 of 1/1,000,000. What does not fit is refused, since a
 * limit that is silently rounded is not the limit that was asked for.
 */
export function exactly(option: string, value: unknown, scale: number, max: number, unit: string): number {
  const decimals = Math.log10(scale);
  const expected = `${unit}: a number above 0, at most ${max}, with at most ${decimals} decimals`;
  if (typeof value !== 'number' || !(value > 0) || value > max) {
    throw new InvalidOptionError(option, expected, value);
  }
  const scaled = Math.round(value * scale);
  if (scaled < 1 || Math.abs(scaled / scale - value) > value * Number.EPSILON) {
    throw new InvalidOptionError(option, `${expected} (write 1,000 per 3 s rather than 333.33 per s)`, value);
  }
  return scaled;
}

/** A share as a number between `min` and `max`. */
export function shareOf(option: string, value: unknown, min: number, max: number): number {
  if (typeof value === 'number' && value >= min && value <= max) return value;
  throw new InvalidOptionError(option, `a share from ${min} to ${max}`, value);
}

export function flag(option: string, value: unknown): boolean {
  if (typeof value === 'boolean') return value;
  throw new InvalidOptionError(option, 'true or false', value);
}

export function oneOf<T extends string>(option: string, value: unknown, allowed: readonly T[]): T {
  if (typeof value === 'string' && (allowed as readonly string[]).includes(value)) return value as T;
  throw new InvalidOptionError(option, allowed.map((name) => `'${name}'`).join(', '), value);
}

/** Refuses what has no names of its own to read, for example a promise or a Map: it would pass for "nothing given". */
export function plainObject(option: string, value: unknown): Record<string, unknown> {
  if (isPlain(value)) return value;
  const isPromise = typeof (value as { then?: unknown } | null | undefined)?.then === 'function';
  throw new InvalidOptionError(
    option,
    isPromise ? 'a plain object, not a promise of one' : 'a plain object',
    value,
  );
}

function isPlain(value: unknown): value is Record<string, unknown> {
  if (typeof value !== 'object' || value === null) return false;
  const prototype = Object.getPrototypeOf(value);
  // An object of another realm (a vm context, a test runner) has that realm's Object.prototype.
  return prototype === null || prototype === Object.prototype || Object.getPrototypeOf(prototype) === null;
}

/** Refuses a name that is not known, and names the nearest that is: a misspelt limit must not be no limit. */
export function knownNames(option: string, value: object, known: readonly string[]): void {
  for (const name of Object.keys(value)) {
    if (known.includes(name)) continue;
    const near = nearestName(name, known);
    const hint = near === undefined ? `one of ${known.join(', ')}` : `a known name (did you mean "${near}"?)`;
    throw new InvalidOptionError(option === '' ? name : `${option}.${name}`, hint, name);
  }
}

/** The known name with the fewest edits to `name`, if any is near enough to be meant. */
export function nearestName(name: string, known: readonly string[]): string | undefined {
  let best: string | undefined;
  let bestDistance = Math.max(2, Math.floor(name.length / 2)) + 1;
  for (const candidate of known) {
    const distance = editDistance(name.toLowerCase(), candidate.toLowerCase());
    if (distance < bestDistance) {
      best = candidate;
      bestDistance = distance;
    }
  }
  return best;
}

function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const substituted = row[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(row[j]! + 1, next[j - 1]! + 1, substituted));
    }
    row = next;
  }
  return row[b.length]!;
}

/** A promise where a value is wanted is refused later; its own rejection must not end the process meanwhile. */
export function handled<T>(value: T): T {
  if (value instanceof Promise) value.catch(() => {});
  return value;
}
