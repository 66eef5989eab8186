import fc from 'fast-check';
import type { AdaptiveReport } from '../../src/core/buckets/adaptive.ts';
import type { Terms } from '../../src/core/decide/ask.ts';
import type { Cost, Keys } from '../../src/core/decide/demands.ts';
import type { LimitsOptions } from '../../src/core/limits/limit.ts';
import type { Request } from '../../src/core/ports/store.ts';
import { type Kind, limitsOf } from './limits.ts';

type Priority = Terms['priority'];

/** One thing that a history does; `back` counts grants from the newest. */
export type Step =
  | { readonly do: 'acquire'; readonly request: Request; readonly terms: Terms }
  | { readonly do: 'force'; readonly request: Request }
  | { readonly do: 'peek'; readonly request: Request; readonly priority: Priority }
  | { readonly do: 'atMost'; readonly request: Request; readonly most: number; readonly priority: Priority }
  | { readonly do: 'cancel'; readonly back: number }
  | { readonly do: 'settle'; readonly back: number; readonly actual: number }
  | { readonly do: 'release' | 'renew'; readonly back: number; readonly stale: boolean }
  | { readonly do: 'leave'; readonly request: Request }
  | { readonly do: 'pause'; readonly keys: Keys; readonly forUs: number }
  | { readonly do: 'resume'; readonly keys: Keys }
  | { readonly do: 'report'; readonly request: Request; readonly calls: AdaptiveReport };

/** Steps that travel in one call, after the clock has moved and perhaps other limits have come or all has been paused. */
export interface Batch {
  readonly afterUs: number;
  readonly limits: LimitsOptions | null;
  /** Of the whole governor; 0: it is resumed. */
  readonly pauseUs: number | null;
  /** The process that makes the call. */
  readonly instance: string;
  readonly steps: readonly Step[];
}

export interface History {
  readonly limits: LimitsOptions;
  readonly coldStart: 'full' | 'empty';
  readonly batches: readonly Batch[];
}

export const KEY_VALUES = [undefined, 'x', 'y', 'z'] as const;
const FOREVER_US = Number.MAX_SAFE_INTEGER;

const keys: fc.Arbitrary<Keys> = fc
  .record({ shop: fc.constantFrom(...KEY_VALUES), user: fc.constantFrom(...KEY_VALUES) })
  .map((both) => Object.fromEntries(Object.entries(both).filter(([, value]) => value !== undefined)) as Keys);

const oneKey: fc.Arbitrary<Keys> = fc.constantFrom<Keys>(
  { shop: 'x' },
  { shop: 'y' },
  { user: 'x' },
  { shop: 'x', user: 'y' },
);

const cost: fc.Arbitrary<Cost> = fc.oneof(
  { weight: 6, arbitrary: fc.integer({ min: 1, max: 4 }) },
  { weight: 1, arbitrary: fc.integer({ min: 5, max: 30 }) },
  { weight: 1, arbitrary: fc.constantFrom(5_000, 5_001) },
  { weight: 3, arbitrary: fc.record({ a: fc.nat(4), b: fc.nat(3) }) },
  { weight: 1, arbitrary: fc.constant({ a: 1, b: 0 }) },
);

const request: fc.Arbitrary<Request> = fc.record({
  cost,
  keys,
  holder: fc.constantFrom('p', 'q', 'r', 's', 't t'),
});
// As many of each limit: there is no other cost to ask for.
const oneEach = request.map((asked) => ({
  ...asked,
  cost: typeof asked.cost === 'number' ? 1 : { a: 1, b: 0 },
}));
const priority = fc.constantFrom<Priority>(0, 1, 1, 2);

const terms: fc.Arbitrary<Terms> = fc.record({
  maxWaitUs: fc.constantFrom(0, 1_000, 500_000, 10_000_000, FOREVER_US),
  maxTurnUs: fc.constantFrom(0, 1_000_000, FOREVER_US),
  turns: fc.constantFrom('keyed', 'all'),
  returning: fc.boolean(),
  patienceUs: fc.constantFrom(0, 500_000, 1_000_000),
  priority,
  queue: fc.boolean(),
});

const pauseUs = fc.constantFrom(1_000, 300_000, 1_000_000, 5_000_000, 90_000_000, FOREVER_US);
const back = fc.oneof(fc.constant(0), fc.nat(9));

const calls: fc.Arbitrary<AdaptiveReport> = fc
  .record({
    agoUs: fc.constantFrom(0, 50_000, 1_000_000, -5_000),
    calls: fc.integer({ min: 1, max: 60 }),
    throttled: fc.constantFrom(0, 0, 0, 1, 5),
    failed: fc.constantFrom(0, 0, 1, 20),
    meanUs: fc.integer({ min: 0, max: 120_000 }),
  })
  .map(({ agoUs, meanUs, calls, ...rest }) => ({
    startedUs: -agoUs,
    calls,
    ...rest,
    latencySumUs: calls * meanUs,
  }));

const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 24, arbitrary: fc.record({ do: fc.constant('acquire' as const), request, terms }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('force' as const), request }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('peek' as const), request, priority }) },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant('atMost' as const),
      request: oneEach,
      most: fc.integer({ min: 1, max: 12 }),
      priority,
    }),
  },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('cancel' as const), back }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('settle' as const), back, actual: fc.nat(12) }) },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constantFrom('release' as const, 'renew' as const),
      back,
      stale: fc.nat(9).map((n) => n === 0),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('leave' as const), request }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('pause' as const), keys: oneKey, forUs: pauseUs }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('resume' as const), keys: oneKey }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('report' as const), request, calls }) },
);

const afterUs = fc.oneof(
  { weight: 3, arbitrary: fc.constant(0) },
  { weight: 5, arbitrary: fc.integer({ min: 1, max: 3_000 }) },
  { weight: 9, arbitrary: fc.integer({ min: 1, max: 1_500_000 }) },
  { weight: 2, arbitrary: fc.integer({ min: 1, max: 70_000_000 }) },
  { weight: 1, arbitrary: fc.integer({ min: 1, max: 8_000_000_000 }) },
  { weight: 1, arbitrary: fc.integer({ min: 1, max: 3 * 86_400_000_000 }) },
  { weight: 2, arbitrary: fc.integer({ min: -1_000_000, max: -1 }) },
  { weight: 1, arbitrary: fc.integer({ min: -100_000_000, max: -1_000_001 }) },
);

/** Histories under limits of these kinds. */
export function histories(kinds: readonly Kind[]): fc.Arbitrary<History> {
  const limits = limitsOf(kinds);
  const batch: fc.Arbitrary<Batch> = fc.record({
    afterUs,
    limits: fc.option(limits, { freq: 10, nil: null }),
    pauseUs: fc.oneof(
      { weight: 14, arbitrary: fc.constant(null) },
      { weight: 1, arbitrary: pauseUs },
      { weight: 1, arbitrary: fc.constant(0) },
    ),
    instance: fc.constantFrom('one', 'two'),
    steps: fc.array(step, { minLength: 1, maxLength: 10, size: 'max' }),
  });
  return fc.record({
    limits,
    coldStart: fc.constantFrom('full', 'full', 'empty'),
    batches: fc.array(batch, { minLength: 4, maxLength: 16, size: 'max' }),
  });
}
