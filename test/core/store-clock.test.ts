import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { StoreClock } from '../../src/core/store-clock.ts';

/** A store whose clock is `offsetMs` behind this process's, which began at 0. */
const at = (clock: StoreClock, offsetMs: number, askedMs: number, decidedMs: number, repliedMs: number) =>
  clock.localMs((decidedMs - offsetMs) * 1_000, askedMs, repliedMs);

describe('a decision on this process’s clock', () => {
  test('is no later than its reply, and no earlier than it was', () => {
    const clock = new StoreClock();
    expect(at(clock, 70, 1_000, 1_001, 1_004)).toBe(1_004);
  });

  test('is not shifted by a reply that is read late, once a quick one has been seen', () => {
    const clock = new StoreClock();
    at(clock, 70, 1_000, 1_000.5, 1_001);
    expect(at(clock, 70, 1_002, 1_002.5, 3_002)).toBeCloseTo(1_003, 6);
  });

  test('keeps the order of the store for replies that are read in another', () => {
    const clock = new StoreClock();
    at(clock, 0, 0, 1, 2);
    const first = at(clock, 0, 10, 11, 45);
    const second = at(clock, 0, 20, 21, 22);
    expect(second - first).toBeCloseTo(10, 6);
  });

  test('follows a store whose clock is set back, and one set ahead', () => {
    const clock = new StoreClock();
    at(clock, 0, 1_000, 1_000.5, 1_001);
    expect(at(clock, 5_000, 1_100, 1_101, 1_102)).toBeCloseTo(1_102, 6);
    expect(at(clock, -5_000, 1_200, 1_201, 1_202)).toBeCloseTo(1_202, 6);
  });

  test('forgets what a clock that drifts has shown long ago', () => {
    const clock = new StoreClock();
    at(clock, 0, 0, 0, 0);
    // 100 ms slower by the minute: what was seen first would put decisions 100 ms too early.
    expect(at(clock, 100, 60_000, 60_001, 60_002)).toBeCloseTo(60_002, 6);
  });

  test('is never before the store decided, however replies come and clocks step', () => {
    const exchange = fc.record({
      pauseMs: fc.integer({ min: 0, max: 7_000 }),
      outMs: fc.integer({ min: 0, max: 300 }),
      backMs: fc.integer({ min: 0, max: 300 }),
      // Ahead, so that the true offset falls and what was seen before is too much, never too little.
      stepMs: fc.constantFrom(0, 0, 0, 1, 40, 5_000),
    });
    fc.assert(
      fc.property(fc.array(exchange, { minLength: 1, maxLength: 40 }), (exchanges) => {
        const clock = new StoreClock();
        let nowMs = 1_000;
        let offsetMs = 0;
        for (const { pauseMs, outMs, backMs, stepMs } of exchanges) {
          nowMs += pauseMs;
          offsetMs -= stepMs;
          const decidedMs = nowMs + outMs;
          const localMs = at(clock, offsetMs, nowMs, decidedMs, decidedMs + backMs);
          nowMs = decidedMs + backMs;
          expect(localMs).toBeGreaterThanOrEqual(decidedMs - 1e-6);
          expect(localMs).toBeLessThanOrEqual(nowMs + 1e-6);
        }
      }),
    );
  });
});
