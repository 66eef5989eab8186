import fc from 'fast-check';
import type { AdaptiveOptions } from '../../src/core/limits/adaptive.ts';
import { type LimitOptions, type LimitsOptions, parseLimit } from '../../src/core/limits/limit.ts';
import type { RateLimitOptions } from '../../src/core/limits/rate.ts';

/** Names of limits and attributes are the same throughout, so that a request is one under all limits of a history. */
const NAMES = ['a', 'b', 'c', 'd'] as const;
const ATTRIBUTES = ['shop', 'user'] as const;

const DAY_MS = 86_400_000;

// Present in about half of the cases; an option that is left out is not there at all.
const optional = <T>(values: fc.Arbitrary<T>) => fc.option(values, { nil: undefined });
type Without<T> = { [K in keyof T]: Exclude<T[K], undefined> };
const without = <T extends object>(options: T): Without<T> =>
  Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined)) as Without<T>;

const adaptiveFrom = (initial: number): fc.Arbitrary<AdaptiveOptions> =>
  fc
    .record({
      min: fc.constantFrom(1, 0.5, 0.1),
      max: fc.constantFrom(1, 2, 10),
      target: fc.constantFrom(
        undefined,
        { errorRate: 0.2 },
        { latencyMs: 50 },
        { latencyMs: 50, errorRate: 0.5 },
      ),
      mode: fc.constantFrom<'aimd' | 'gradient'>('aimd', 'gradient'),
    })
    .map(
      ({ min, max, ...rest }) =>
        without({ min: initial * min, max: initial * max, ...rest }) as AdaptiveOptions,
    );

/** Slow and fast, and with numbers that divide by nothing. */
const speed = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({
      rate: fc.constantFrom(1, 3, 10, 0.5, 1_000, 50),
      periodMs: fc.constantFrom(1_000, 1_000, 3_000, 60_000, 7),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ rate: fc.integer({ min: 1, max: 50 }), periodMs: fc.constant(1_000) }),
  },
  {
    weight: 1,
    arbitrary: fc.constantFrom(
      { rate: 1, periodMs: DAY_MS },
      { rate: 1, periodMs: 3_600_000 },
      { rate: 1_000_000, periodMs: 1_000 },
      { rate: 0.1, periodMs: 1_000 },
      { rate: 99_991, periodMs: DAY_MS },
      { rate: 1, periodMs: 0.001 },
    ),
  },
);

const rate = (by: string | undefined): fc.Arbitrary<LimitOptions> =>
  fc
    .record({
      speed,
      burst: fc.oneof({ weight: 9, arbitrary: fc.integer({ min: 1, max: 9 }) }, fc.constant(5_000)),
      oversize: fc.constantFrom(undefined, undefined, 'debt' as const),
      strict: fc.constantFrom(undefined, undefined, undefined, true),
      reserve: fc.constantFrom(
        undefined,
        undefined,
        { high: 0.3, normal: 0.3 },
        { high: 0.5 },
        { normal: 0.25 },
      ),
      penalty: fc.constantFrom(undefined, undefined, { afterMs: 1_000, share: 0.3, forMs: 2_000 }),
      adaptive: fc.constantFrom(undefined, undefined, true),
      kind: fc.constantFrom<'plain' | 'fair' | 'few'>('plain', 'plain', 'fair', 'few'),
      maxKeys: fc.integer({ min: 1, max: 2 }),
      weights: fc.constantFrom(undefined, { x: 3 }, { x: 2, y: 5 }),
    })
    .chain(({ kind, maxKeys, weights, adaptive, speed, ...others }) => {
      const plain = { ...speed, ...others };
      const of = by === undefined ? {} : { by };
      const keyed =
        by === undefined || kind === 'plain' ? {} : kind === 'fair' ? { fair: true, weights } : { maxKeys };
      const options = without({ ...plain, ...of, ...without(keyed) }) as RateLimitOptions;
      const sustained = options.strict ? options.rate - options.burst! : options.rate;
      return adaptive && sustained > 0
        ? adaptiveFrom(sustained).map((adaptive): LimitOptions => ({ ...options, adaptive }))
        : fc.constant<LimitOptions>(options);
    });

const window = (by: string | undefined): fc.Arbitrary<LimitOptions> =>
  fc
    .record({
      max: fc.integer({ min: 1, max: 9 }),
      windowMs: fc.constantFrom(1_000, 3_000, 60_000, 500),
      mode: fc.constantFrom<'fixed' | 'sliding' | 'log'>('fixed', 'sliding', 'log'),
      aligned: fc.boolean(),
      cells: fc.constantFrom(2, 5, 10),
      maxKeys: optional(fc.integer({ min: 1, max: 2 })),
    })
    .map(({ mode, aligned, cells, maxKeys, ...rest }) =>
      without({
        kind: 'window' as const,
        ...rest,
        mode,
        aligned: mode === 'fixed' ? aligned : undefined,
        cells: mode === 'sliding' ? cells : undefined,
        by,
        maxKeys: by === undefined ? undefined : maxKeys,
      }),
    );

const concurrency = (by: string | undefined): fc.Arbitrary<LimitOptions> =>
  fc
    .record({
      max: fc.integer({ min: 1, max: 6 }),
      leaseMs: fc.constantFrom(500, 2_000, 30_000),
      adapts: fc.nat(3),
    })
    .chain(({ adapts, ...rest }) => {
      const options = without({ kind: 'concurrency' as const, ...rest, by });
      return adapts > 0
        ? fc.constant<LimitOptions>(options)
        : adaptiveFrom(rest.max).map((adaptive): LimitOptions => ({ ...options, adaptive }));
    });

// What one option rules out of another is not told twice: what the parser refuses is drawn again.
const parses = (options: LimitOptions): boolean => {
  try {
    parseLimit('a', options);
    return true;
  } catch {
    return false;
  }
};

const OF_KIND = { rate, window, concurrency };
export type Kind = keyof typeof OF_KIND;

const limitBy = (kinds: readonly Kind[], by: string | undefined): fc.Arbitrary<LimitOptions> =>
  fc.oneof(...kinds.map((kind) => OF_KIND[kind](by))).filter(parses);

const declared = (limits: LimitsOptions): boolean =>
  ATTRIBUTES.every((attribute) => Object.values(limits).some(({ by }) => by === attribute));

/** One limit of each attribute at least, so that each request names attributes that are there. @param kinds - Drawn from these. */
export const limitsOf = (kinds: readonly Kind[]): fc.Arbitrary<LimitsOptions> => {
  const limit = fc.constantFrom(undefined, undefined, ...ATTRIBUTES).chain((by) => limitBy(kinds, by));
  return fc
    .record({
      count: fc.integer({ min: 2, max: NAMES.length }),
      drawn: fc.array(limit, { minLength: NAMES.length, maxLength: NAMES.length }),
      keyed: fc.tuple(...ATTRIBUTES.map((by) => limitBy(kinds, by))),
      offset: fc.nat(NAMES.length - 1),
      alike: fc.nat(5).map((n) => n === 0),
    })
    .map(({ count, drawn, keyed, offset, alike }) => {
      const all = [...drawn.slice(0, count)];
      for (const [index, options] of keyed.entries()) {
        const by = ATTRIBUTES[index]!;
        if (!all.some((other) => other.by === by)) all[(offset + index) % count] = options;
      }
      // Two just alike: of equal waits both sides must name the same.
      if (alike && count > 2) all[(offset + 2) % count] = all[offset % count]!;
      return Object.fromEntries(all.map((options, index) => [NAMES[index]!, options]));
    })
    .filter(declared);
};
