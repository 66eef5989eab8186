/**
 * `ceil(a / b)` for whole numbers below 2^53, exactly. The quotient is rounded to a double, yet never down to a whole
 * number it exceeds: it exceeds it by at least 1/b, and doubles near it lie less than 2/b apart, since a < 2^53.
 */
export const ceilDiv = (a: number, b: number): number => Math.ceil(a / b);
