import { InvalidOptionError } from './errors.ts';

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

export function gcd(a: bigint, b: bigint): bigint {
  return b === 0n ? a : gcd(b, a % b);
}
