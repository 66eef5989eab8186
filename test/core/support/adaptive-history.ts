import fc from 'fast-check';
import {
  type AdaptiveReport,
  type AdaptiveState,
  begun,
  held,
  observed,
  risen,
  used,
} from '../../../src/core/buckets/adaptive.ts';
import { type Adaptive, parseAdaptive } from '../../../src/core/limits/adaptive.ts';

/** One thing that happens to an adaptive limit, after the clock has moved by `afterUs`. */
interface AdaptiveStep {
  readonly afterUs: number;
  /** Tokens granted, or slots held. */
  readonly used: number;
  /** What calls came to that were granted so long ago. */
  readonly report: (Omit<AdaptiveReport, 'startedUs'> & { readonly agoUs: number }) | null;
}

export interface AdaptiveHistory {
  readonly rule: Adaptive;
  /** The same limit after it was changed, from the middle on. */
  readonly changed: Adaptive;
  readonly initial: number;
  readonly periodUs: number;
  readonly steps: readonly AdaptiveStep[];
}

export const ADAPTIVE_START_US = 1_700_000_000_000_000;

const thousandths = (min: number, max: number) => fc.integer({ min, max }).map((value) => value / 1_000);

const rule = (initial: number) =>
  fc
    .record({
      least: fc.oneof(fc.constant(0.001), thousandths(1, 1_000)),
      times: fc.oneof(thousandths(1_000, 4_000), fc.constant(1_000)),
      mode: fc.constantFrom('aimd' as const, 'gradient' as const),
      latencyMs: fc.option(fc.integer({ min: 1, max: 200 }), { nil: undefined }),
      errorRate: fc.option(thousandths(1, 1_000), { nil: undefined }),
    })
    .map(({ least, times, mode, latencyMs, errorRate }) =>
      parseAdaptive(
        'adaptive',
        {
          min: Math.max(0.001, initial * least),
          max: Math.min(1e9, initial * times),
          mode,
          target: {
            ...(latencyMs !== undefined && { latencyMs }),
            ...(errorRate !== undefined && { errorRate }),
          },
        },
        initial,
      ),
    );

const anything = fc.oneof(
  { weight: 8, arbitrary: fc.nat(60) },
  { weight: 1, arbitrary: fc.maxSafeNat() },
  { weight: 1, arbitrary: fc.constant(Number.MAX_SAFE_INTEGER) },
);

const step: fc.Arbitrary<AdaptiveStep> = fc.record({
  afterUs: fc.oneof(
    { weight: 6, arbitrary: fc.nat(400_000) },
    { weight: 3, arbitrary: fc.integer({ min: 400_000, max: 3_000_000 }) },
    { weight: 1, arbitrary: fc.integer({ min: 0, max: 100 * 86_400_000_000 }) },
    { weight: 1, arbitrary: fc.integer({ min: -1_000_000, max: -1 }) },
    { weight: 1, arbitrary: fc.integer({ min: -100_000_000, max: -1_000_001 }) },
  ),
  used: fc.oneof({ weight: 5, arbitrary: fc.nat(300) }, { weight: 1, arbitrary: anything }),
  report: fc.option(
    fc.record({
      agoUs: fc.oneof(fc.nat(50_000), fc.integer({ min: -1_000_000, max: 3_000_000 })),
      calls: anything,
      throttled: fc.oneof({ weight: 6, arbitrary: fc.constant(0) }, { weight: 1, arbitrary: anything }),
      failed: fc.oneof({ weight: 3, arbitrary: fc.constant(0) }, { weight: 1, arbitrary: anything }),
      latencySumUs: fc.oneof({ weight: 6, arbitrary: fc.nat(4_000_000) }, { weight: 1, arbitrary: anything }),
    }),
    { nil: null, freq: 4 },
  ),
});

export const adaptiveHistories: fc.Arbitrary<AdaptiveHistory> = fc
  .record({
    initial: fc.oneof(thousandths(1, 400_000), fc.constantFrom(1, 20, 200, 1e6, 1e9)),
    periodUs: fc.constantFrom(0, 1_000_000, 60_000_000, 3_600_000_000, 366 * 86_400_000_000),
    steps: fc.array(step, { minLength: 10, maxLength: 60, size: 'max' }),
  })
  .chain((history) =>
    fc.record({
      ...Object.fromEntries(Object.entries(history).map(([name, value]) => [name, fc.constant(value)])),
      rule: rule(history.initial),
      changed: rule(history.initial),
    }),
  ) as fc.Arbitrary<AdaptiveHistory>;

/** The states that the history goes through, and the rule and the clock of each. */
export function* play({ rule, changed, initial, periodUs, steps }: AdaptiveHistory) {
  let nowUs = ADAPTIVE_START_US;
  let state: AdaptiveState = begun(rule, initial, nowUs);
  for (const [index, { afterUs, used: amount, report }] of steps.entries()) {
    nowUs += afterUs;
    const current = index < steps.length / 2 ? rule : changed;
    if (periodUs === 0) state = held(state, amount);
    const before = state;
    state = risen(state, current, periodUs, nowUs);
    if (periodUs > 0) state = used(state, amount);
    if (report !== null) {
      const { agoUs, ...told } = report;
      state = observed(state, current, { ...told, startedUs: nowUs - agoUs }, nowUs);
    }
    yield { before, state, rule: current, nowUs };
  }
}
