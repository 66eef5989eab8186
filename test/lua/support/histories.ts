import fc from 'fast-check';
import type { Terms } from '../../../src/core/decide/ask.ts';
import type { LimitsOptions } from '../../../src/core/limits/limit.ts';
import type { RateLimitOptions } from '../../../src/core/limits/rate.ts';
import type { Request } from '../../../src/core/ports/store.ts';
import { ask, OR_TURN } from '../../store/support/terms.ts';

/** One thing that a history does; `back` counts receipts from the newest. */
export type Step =
  | { readonly do: 'acquire'; readonly request: Request; readonly terms: Terms }
  | { readonly do: 'force'; readonly request: Request }
  | { readonly do: 'peek'; readonly request: Request }
  | { readonly do: 'cancel'; readonly back: number };

/** Steps that travel in one call, after the clock has moved by `afterUs` and perhaps other limits have come. */
export interface Batch {
  readonly afterUs: number;
  readonly limits: LimitsOptions | null;
  readonly steps: readonly Step[];
}

export interface History {
  readonly limits: LimitsOptions;
  readonly coldStart: 'full' | 'empty';
  readonly batches: readonly Batch[];
}

const DAY_MS = 86_400_000;

const rateLimit = (by?: string): fc.Arbitrary<RateLimitOptions> =>
  fc
    .tuple(
      fc.oneof(
        fc.record({ rate: fc.integer({ min: 1, max: 50 }), periodMs: fc.constantFrom(1_000, 3_000, 7) }),
        fc.constantFrom(
          { rate: 1, periodMs: DAY_MS },
          { rate: 1, periodMs: 3_600_000 },
          { rate: 1_000_000, periodMs: 1_000 },
          { rate: 0.1, periodMs: 1_000 },
          { rate: 99_991, periodMs: DAY_MS },
          { rate: 1, periodMs: 0.001 },
        ),
      ),
      fc.oneof(fc.integer({ min: 1, max: 8 }), fc.constant(5_000)),
    )
    .map(([rate, burst]) => ({ ...rate, burst, ...(by === undefined ? {} : { by }) }));

// The same names and attributes throughout, so that a request is one under all limits of a history. The one for all comes
// before or after those with keys, and now and then is just like them: equal waits must be told apart alike.
const limits: fc.Arbitrary<LimitsOptions> = fc
  .record(
    {
      all: rateLimit(),
      shop: rateLimit('shop'),
      user: rateLimit('user'),
      alsoShop: rateLimit('shop'),
      allLast: fc.boolean(),
      alike: fc.boolean(),
    },
    { requiredKeys: ['shop', 'user', 'allLast', 'alike'] },
  )
  .map(({ all, shop, user, alsoShop, allLast, alike }) => {
    const { by: _, ...likeShop } = shop;
    const wide = all && { all: alike ? likeShop : all };
    return {
      ...(!allLast && wide),
      shop,
      ...(alsoShop && { alsoShop }),
      user,
      ...(allLast && wide),
    };
  });

const key = fc.constantFrom(undefined, 'a', 'b', 7);

const request: fc.Arbitrary<Request> = fc.record({
  cost: fc.oneof(
    { weight: 6, arbitrary: fc.integer({ min: 1, max: 6 }) },
    { weight: 1, arbitrary: fc.constantFrom(5_000, 5_001) },
    { weight: 2, arbitrary: fc.record({ shop: fc.nat(3), user: fc.nat(3) }) },
  ),
  keys: fc.record({ shop: key, user: key }),
  holder: fc.constant(''),
});

const terms: fc.Arbitrary<Terms> = fc.record({
  maxWaitUs: fc.constantFrom(0, 1_000, 500_000, 10_000_000, 9_007_199_254_740_991),
  maxTurnUs: fc.constantFrom(0, 1_000_000, 9_007_199_254_740_991),
  turns: fc.constantFrom('keyed', 'all'),
  returning: fc.boolean(),
  patienceUs: fc.constantFrom(0, 500_000, 1_000_000),
  priority: fc.constantFrom(0, 1, 2),
  queue: fc.constant(false),
});

const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 12, arbitrary: fc.record({ do: fc.constant('acquire' as const), request, terms }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('force' as const), request }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('peek' as const), request }) },
  {
    weight: 3,
    arbitrary: fc.record({ do: fc.constant('cancel' as const), back: fc.oneof(fc.constant(0), fc.nat(9)) }),
  },
);

const afterUs = fc.oneof(
  { weight: 3, arbitrary: fc.constant(0) },
  { weight: 6, arbitrary: fc.integer({ min: 1, max: 3_000 }) },
  { weight: 6, arbitrary: fc.integer({ min: 1, max: 2_500_000 }) },
  { weight: 2, arbitrary: fc.integer({ min: 1, max: 3 * DAY_MS * 1_000 }) },
  { weight: 2, arbitrary: fc.integer({ min: -1_000_000, max: -1 }) },
  { weight: 1, arbitrary: fc.integer({ min: -100_000_000, max: -1_000_001 }) },
);

const batch: fc.Arbitrary<Batch> = fc.record({
  afterUs,
  limits: fc.option(limits, { freq: 12, nil: null }),
  steps: fc.array(step, { minLength: 1, maxLength: 14, size: 'max' }),
});

export const histories: fc.Arbitrary<History> = fc.record({
  limits,
  coldStart: fc.constantFrom('full', 'empty'),
  batches: fc.array(batch, { minLength: 4, maxLength: 16, size: 'max' }),
});

const now: Terms = { ...OR_TURN, turns: 'all' };
const acquire = (cost: Request['cost']): Step => ({
  do: 'acquire',
  request: ask(cost),
  terms: now,
});
const [shopOnly, allOnly] = [acquire({ shop: 1, all: 0 }), acquire({ shop: 0, all: 1 })];
const oneASecond = { rate: 1, periodMs: 1_000, burst: 1 };

/** What chance does not come upon: two lines of the same length, of which the one for all is named. */
export const equalLines: History = {
  limits: { shop: { ...oneASecond, by: 'shop' }, all: oneASecond },
  coldStart: 'full',
  batches: [{ afterUs: 0, limits: null, steps: [shopOnly, shopOnly, allOnly, allOnly, acquire(1)] }],
};
