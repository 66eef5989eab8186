import { describe, expect, test } from 'vitest';
import {
  type AdaptiveState,
  begun,
  held,
  observed,
  risen,
  used,
} from '../../../src/core/buckets/adaptive.ts';
import { type AdaptiveOptions, parseAdaptive } from '../../../src/core/limits/adaptive.ts';

const START_US = 1_700_000_000_000_000;
const SECOND_US = 1_000_000;

/** A limit of 100 a second, or of 100 slots, and a clock. */
function limitOf(options: Partial<AdaptiveOptions> = {}, periodUs = SECOND_US) {
  const rule = parseAdaptive('adaptive', { min: 20, max: 400, ...options }, 100);
  let nowUs = START_US;
  let state = begun(rule, 100, nowUs);
  const limit = {
    state: (): AdaptiveState => state,
    value: () => state.value / 1_000,
    at: () => nowUs,
    /** Lets time pass in which so much of it is used. */
    passes(us: number, share: number) {
      for (let left = us; left > 0; left -= 250_000) {
        nowUs += Math.min(left, 250_000);
        if (periodUs > 0) state = used(state, Math.ceil((state.value * share) / 4_000));
        else state = held(state, Math.ceil((state.value * share) / 1_000));
        state = risen(state, rule, periodUs, nowUs);
      }
    },
    clock(us: number) {
      nowUs = us;
      state = risen(state, rule, periodUs, nowUs);
    },
    reports(report: {
      startedUs?: number;
      calls?: number;
      throttled?: number;
      failed?: number;
      meanMs?: number;
    }) {
      const { startedUs = nowUs, calls = 20, throttled = 0, failed = 0, meanMs = 10 } = report;
      state = observed(
        state,
        rule,
        { startedUs, calls, throttled, failed, latencySumUs: calls * meanMs * 1_000 },
        nowUs,
      );
    },
  };
  return limit;
}

describe('a cut', () => {
  test('takes a tenth for a throttled call, and more by the share of them, but at most half', () => {
    for (const [throttled, calls, left] of [
      [1, 1, 90],
      [1, 100, 90],
      [5, 10, 75],
      [30, 100, 70],
      [100, 100, 50],
    ] as const) {
      const limit = limitOf();
      limit.reports({ throttled, calls });
      expect(limit.value()).toBe(left);
    }
  });

  test('is one an epoch, however many processes report the overload', () => {
    const limit = limitOf();
    const grantedUs = limit.at();
    limit.passes(30_000, 1);
    for (let process = 0; process < 50; process++) {
      limit.reports({ startedUs: grantedUs + process * 100, throttled: 1 });
      limit.clock(limit.at() + 10_000);
    }
    expect(limit.value()).toBe(90);
  });

  test('counts calls granted a tenth of a second after the one before, and then takes more than it did', () => {
    const limit = limitOf();
    limit.reports({ throttled: 1 });
    const cutUs = limit.at();
    limit.clock(cutUs + 150_000);
    limit.reports({ startedUs: cutUs + 99_999, throttled: 1 });
    expect(limit.value()).toBe(90);
    limit.reports({ startedUs: cutUs + 100_000, throttled: 1 });
    expect(limit.value()).toBe(76.5);
  });

  test('is not made by a grant in the future twice', () => {
    const limit = limitOf();
    for (let report = 0; report < 3; report++) limit.reports({ startedUs: limit.at() + 1e12, throttled: 1 });
    expect(limit.value()).toBe(90);
  });

  test('follows failures over the target, of enough calls, and more than one of them', () => {
    const limit = limitOf({ target: { errorRate: 0.05 } });
    limit.clock(START_US + 500_000);
    limit.reports({ calls: 2, failed: 2 });
    expect(limit.value()).toBe(100);
    limit.reports({ calls: 38, failed: 0 });
    expect(limit.value()).toBe(100);
    limit.clock(START_US + 1_000_000);
    limit.reports({ calls: 10, failed: 3 });
    limit.reports({ calls: 10, failed: 3 });
    expect(limit.value()).toBe(70);
    expect(limitOf().value()).toBe(100);
  });

  test('follows a mean latency over the target, in proportion', () => {
    const limit = limitOf({ target: { latencyMs: 50 } });
    limit.clock(START_US + 500_000);
    limit.reports({ meanMs: 50 });
    expect(limit.value()).toBe(100);
    limit.clock(START_US + 1_000_000);
    limit.reports({ meanMs: 80 });
    expect(limit.value()).toBe(62.5);
  });

  test('never goes below min', () => {
    const limit = limitOf();
    for (let cut = 0; cut < 50; cut++) {
      limit.clock(limit.at() + 200_000);
      limit.reports({ throttled: 20 });
      expect(limit.value()).toBeGreaterThanOrEqual(20);
    }
    expect(limit.value()).toBe(20);
  });
});

describe('a rise', () => {
  test('is back where it was too much after 2.5 s, and a tenth above after 5 s: a false alarm', () => {
    const limit = limitOf();
    limit.reports({ throttled: 1 });
    limit.passes(2_500_000, 1);
    expect(limit.value()).toBeCloseTo(100, 0);
    limit.passes(2_500_000, 1);
    expect(limit.value()).toBeCloseTo(110, 0);
    limit.passes(10_000_000, 1);
    expect(limit.value()).toBe(400);
  });

  test.for([0, 0.2, 0.45])('comes of no time in which only %d of it was used', (share) => {
    const limit = limitOf();
    limit.reports({ throttled: 1 });
    limit.passes(60_000_000, share);
    expect(limit.value()).toBe(90);
  });

  test('comes of half of it being used', () => {
    const limit = limitOf();
    limit.passes(10_000_000, 0.51);
    expect(limit.value()).toBeGreaterThan(150);
  });

  test('comes of no idle hour: a burst after it is not the hour’s use', () => {
    const limit = limitOf();
    limit.reports({ throttled: 1 });
    limit.clock(limit.at() + 3_600 * SECOND_US);
    limit.passes(250_000, 1);
    expect(limit.value()).toBeLessThan(95);
  });

  test('of slots goes by the most held at once', () => {
    const busy = limitOf({}, 0);
    busy.passes(5_000_000, 0.6);
    expect(busy.value()).toBeGreaterThan(105);
    const idle = limitOf({}, 0);
    idle.passes(60_000_000, 0.4);
    expect(idle.value()).toBe(100);
  });

  test('of a slow limit goes by what it grants, not by the clock', () => {
    const limit = limitOf({}, 3_600 * SECOND_US);
    limit.reports({ throttled: 1 });
    for (let step = 0; step < 9; step++) {
      limit.clock(limit.at() + 160 * SECOND_US);
      expect(limit.value()).toBe(90);
    }
    expect(limit.state().riseUs).toBeGreaterThan(START_US + 1_000 * SECOND_US);
  });

  test('never passes max, and a lower max holds at once', () => {
    const limit = limitOf({ max: 120 });
    limit.passes(60_000_000, 1);
    expect(limit.value()).toBe(120);
    const narrower = parseAdaptive('adaptive', { min: 20, max: 110 }, 100);
    expect(risen(limit.state(), narrower, SECOND_US, limit.at()).value).toBe(110_000);
  });
});

describe('a clock that steps back', () => {
  test('gives nothing, and nothing twice', () => {
    const limit = limitOf();
    limit.reports({ throttled: 1 });
    limit.passes(1_000_000, 1);
    const before = limit.state();
    limit.clock(limit.at() - 900_000);
    expect(limit.state()).toEqual(before);
    limit.passes(750_000, 1);
    expect(limit.value()).toBe(before.value / 1_000);
  });

  test('by hours does not stop the limit for hours', () => {
    const limit = limitOf();
    limit.reports({ throttled: 1 });
    limit.clock(limit.at() - 7_200 * SECOND_US);
    expect(limit.value()).toBe(90);
    limit.passes(2_500_000, 1);
    expect(limit.value()).toBeCloseTo(100, 0);
    limit.reports({ throttled: 1 });
    expect(limit.value()).toBeCloseTo(90, 0);
  });
});
