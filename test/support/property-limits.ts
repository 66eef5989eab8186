import fc from 'fast-check';
import { type Limits, parseLimits } from '../../src/core/limits/limit.ts';
import type { RateLimit } from '../../src/core/limits/rate.ts';
import { MAX_CAPACITY_UNITS } from '../../src/core/limits/rate-units.ts';
import type { WindowLimitOptions } from '../../src/core/limits/window.ts';
import { rateLimits } from './world.ts';

/** What the limits of a property's histories are. */

const periodMs = fc.oneof(
  fc.constantFrom(1_000, 3_000, 60_000, 3_600_000, 86_400_000),
  fc.integer({ min: 1, max: 86_400_000 }),
);
const rate = fc.oneof(
  fc.constantFrom(1, 2, 3, 7, 10, 100, 1_000_000),
  fc.constantFrom(0.1, 0.3, 33.333, 0.001),
  fc.integer({ min: 1, max: 1_000_000 }),
);
const burst = fc.oneof(
  { weight: 6, arbitrary: fc.integer({ min: 1, max: 12 }) },
  { weight: 1, arbitrary: fc.integer({ min: 13, max: 1_000_000 }) },
);

/** One limit within what validation lets through: from a thousandth per day to a thousand million per second. */
const limitOptions = fc
  .record({ rate, periodMs, burst, by: fc.constantFrom(undefined, undefined, 'shop', 'user') })
  .map(({ burst, by, ...speed }) => {
    // The largest bucket that is exact at this speed, as validation has it; bursts above it are cut to it.
    const { periodUs } = rateLimits({ probe: { ...speed, burst: 1 } })[0]!;
    const size = Math.min(burst, Math.floor(MAX_CAPACITY_UNITS / periodUs));
    return by === undefined ? { ...speed, burst: size } : { ...speed, burst: size, by };
  });

/** One to three limits within all that validation lets through, with keys or without. */
export const wideRates: fc.Arbitrary<readonly RateLimit[]> = fc
  .array(limitOptions, { minLength: 1, maxLength: 3 })
  .map((several) => rateLimits(Object.fromEntries(several.map((limit, index) => [`limit${index}`, limit]))));

/**
 * A limit by the name `calls` of which a hundred grants stay within what a bucket can owe: 100 × 12 tokens of at most 10^12
 * units are below 2^52.
 */
export const smallLimit: fc.Arbitrary<RateLimit> = limitOptions
  .map(({ rate, periodMs, burst }) => ({ calls: { rate, periodMs, burst: Math.min(12, burst) } }))
  .map((options) => rateLimits(options)[0]!)
  .filter(({ periodUs }) => periodUs <= 1e12);

const windowMode = fc.oneof(
  fc.constantFrom<Partial<WindowLimitOptions>>(
    { mode: 'fixed' },
    { mode: 'fixed', aligned: true },
    { mode: 'log' },
  ),
  fc.integer({ min: 2, max: 10 }).map((cells): Partial<WindowLimitOptions> => ({ mode: 'sliding', cells })),
);

export const windowOptions = fc
  .record({ max: fc.integer({ min: 1, max: 12 }), length: fc.constantFrom(1, 3, 10, 100), mode: windowMode })
  .map(({ max, length, mode }): WindowLimitOptions => {
    const cells = mode.cells ?? 1;
    return { kind: 'window', max, windowMs: length * cells, ...mode };
  });

const rateBeside = fc.option(
  fc.record({ rate: fc.integer({ min: 1, max: 2_000 }), burst: fc.integer({ min: 1, max: 12 }) }),
);

/** What the limits are, one after the other. */
export const windowVersions = (
  windows: fc.Arbitrary<WindowLimitOptions>,
  most: number,
): fc.Arbitrary<Limits[]> =>
  fc.tuple(fc.array(windows, { minLength: most, maxLength: most }), rateBeside).map(([several, beside]) =>
    several.map((window) =>
      parseLimits({
        window,
        ...(beside && { beside: { rate: beside.rate, periodMs: 1_000, burst: beside.burst } }),
      }),
    ),
  );

const smallRate = fc.record({
  rate: fc.integer({ min: 1, max: 40 }),
  burst: fc.integer({ min: 1, max: 10 }),
});
const others = fc.record(
  {
    daily: fc.record({
      kind: fc.constant('window' as const),
      max: fc.integer({ min: 1, max: 12 }),
      windowMs: fc.constantFrom(100, 1_000, 10_000),
      mode: fc.constantFrom('fixed' as const, 'sliding' as const, 'log' as const),
    }),
    slots: fc.record({
      kind: fc.constant('concurrency' as const),
      max: fc.integer({ min: 1, max: 5 }),
      leaseMs: fc.constantFrom(100, 2_000),
    }),
    shop: smallRate.map(({ rate, burst }) => ({ rate, burst, periodMs: 1_000, by: 'shop' })),
  },
  { requiredKeys: [] },
);

export interface RateKind {
  readonly fair?: boolean;
  readonly oversize?: 'debt';
  readonly reserve?: { readonly high: number; readonly normal: number };
  readonly penalty?: { readonly afterMs: number; readonly forMs: number; readonly share: number };
  readonly strict?: boolean;
}

/** A rate by the name `calls` of any of these kinds, and others beside it: of all kinds, or rates alone. */
export const mixtures = (kinds: readonly RateKind[], alone = false): fc.Arbitrary<Limits> =>
  fc
    .tuple(smallRate, fc.constantFrom(...kinds), others)
    .map(([{ rate, burst }, kind, { daily, slots, shop }]) => {
      const beside = {
        ...(shop && { shop }),
        ...(!alone && daily && { daily }),
        ...(!alone && slots && { slots }),
      };
      const calls = {
        rate: kind.strict ? rate + burst : rate,
        burst,
        periodMs: 1_000,
        ...kind,
        ...(kind.fair && { by: 'shop', weights: { shop0: 3, shop1: 2 } }),
      };
      return parseLimits({ ...beside, calls });
    });
