import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { StoreClock } from '../../../src/core/calls/store-clock.ts';

/** Replies of a store whose clock is `aheadMs` before this process's: asked at, decided and read some time after. */
function reply(
  clock: StoreClock,
  aheadMs: number,
  askedMs: number,
  toDecideMs: number,
  toReadMs: number,
): number {
  const decidedMs = askedMs + toDecideMs;
  return clock.localMs((decidedMs + aheadMs) * 1_000, askedMs, decidedMs + toReadMs)! - decidedMs;
}

// Sums of large and small milliseconds; what is asked for is far above this.
const ROUNDING_MS = 1e-3;

describe('the moment of a decision, on this process’s clock', () => {
  it('is never before it was, and after it by no more than the quickest reply of the last seconds', () => {
    const delayMs = fc.oneof(
      fc.double({ min: 0, max: 2, noNaN: true }),
      fc.double({ min: 0, max: 3_000, noNaN: true }),
    );
    const call = fc.record({
      pauseMs: fc.integer({ min: 0, max: 4_000 }),
      toDecide: delayMs,
      toRead: delayMs,
    });
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 1e12 }), fc.array(call, { maxLength: 60 }), (aheadMs, calls) => {
        const clock = new StoreClock(Number.POSITIVE_INFINITY);
        const seen: { readMs: number; toRead: number }[] = [];
        let nowMs = 1_000;
        for (const { pauseMs, toDecide, toRead } of calls) {
          nowMs += pauseMs;
          const lateMs = reply(clock, aheadMs, nowMs, toDecide, toRead);
          nowMs += toDecide + toRead;
          seen.push({ readMs: nowMs, toRead });
          const recent = seen.filter(({ readMs }) => nowMs - readMs < 5_000).map(({ toRead }) => toRead);
          expect(lateMs).toBeGreaterThanOrEqual(-ROUNDING_MS);
          expect(lateMs).toBeLessThanOrEqual(Math.min(...recent) + ROUNDING_MS);
        }
      }),
      { numRuns: 1_000 },
    );
  });

  it('is not shifted by a reply that was read late', () => {
    const clock = new StoreClock(Number.POSITIVE_INFINITY);
    expect(reply(clock, 5_000, 0, 1, 1)).toBeCloseTo(1);
    expect(reply(clock, 5_000, 100, 1, 800)).toBeCloseTo(1);
  });

  it('follows a store whose clock is set back, at the next reply', () => {
    const clock = new StoreClock(Number.POSITIVE_INFINITY);
    reply(clock, 5_000, 0, 1, 1);
    expect(reply(clock, 2_000, 10, 1, 3)).toBeCloseTo(3);
    expect(reply(clock, 2_000, 20, 1, 50)).toBeCloseTo(3);
  });

  it('follows a store whose clock is set forward', () => {
    const clock = new StoreClock(Number.POSITIVE_INFINITY);
    reply(clock, 5_000, 0, 1, 1);
    expect(reply(clock, 9_000, 10, 1, 3)).toBeCloseTo(3);
  });

  it('forgets what is older than some seconds, as clocks drift apart', () => {
    const clock = new StoreClock(Number.POSITIVE_INFINITY);
    reply(clock, 5_000, 0, 0, 0);
    // Slower by 0.1 ms a second: what the first reply showed would be taken for ever, and be a millisecond too early by now.
    for (let second = 1; second <= 20; second++) {
      expect(reply(clock, 5_000 - second * 0.1, second * 1_000, 1.5, 0.5)).toBeGreaterThan(-1.1);
    }
  });

  describe('cannot be told for a reply that took long', () => {
    const at = (clock: StoreClock, askedMs: number, decidedMs: number, repliedMs: number) =>
      clock.localMs(decidedMs * 1_000, askedMs, repliedMs);

    it('if it is the first, and for all that were asked for before it was read', () => {
      const clock = new StoreClock(100);
      expect(at(clock, 0, 1, 2_500)).toBeUndefined();
      expect(at(clock, 0, 1, 2_501)).toBeUndefined();
      // A store that is slow is slow again, and its first reply vouches for the next.
      expect(at(clock, 2_502, 2_600, 2_900)).toBeLessThanOrEqual(2_900);
    });

    it('after an idle time in which what was known has aged', () => {
      const clock = new StoreClock(100);
      expect(at(clock, 0, 1, 2)).toBeCloseTo(2);
      expect(at(clock, 11_000, 11_001, 13_500)).toBeUndefined();
    });

    it('unless a quick one was read before it was asked for', () => {
      const clock = new StoreClock(100);
      at(clock, 0, 1, 2);
      expect(at(clock, 2_000, 2_001, 4_500)).toBeCloseTo(2_002);
    });
  });
});
