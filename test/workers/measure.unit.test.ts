import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { percentile, type TimedCost, utilisation, worstExcess } from '../../workers/measure/measure.ts';

/** The definition itself: every interval from one arrival to another, both included. */
function worstOfAllIntervals(arrivals: readonly TimedCost[], rate: number, burst: number): number {
  let worst = -burst;
  for (let first = 0; first < arrivals.length; first++) {
    let cost = 0;
    for (let last = first; last < arrivals.length; last++) {
      cost += arrivals[last]!.cost;
      const seconds = (arrivals[last]!.atUs - arrivals[first]!.atUs) / 1e6;
      worst = Math.max(worst, cost - burst - rate * seconds);
    }
  }
  return worst;
}

/** `at('0 3', '500 1')`: milliseconds and cost. */
function at(...lines: string[]): TimedCost[] {
  return lines.map((line) => {
    const [ms, cost] = line.split(' ').map(Number);
    return { atUs: ms! * 1000, cost: cost! };
  });
}

describe('worstExcess', () => {
  // Rate 10 a second, burst 5: one token each 100 ms.
  test.each([
    ['nothing arrived', at(), -5],
    ['less than the burst', at('0 3'), -2],
    ['the burst at one instant', at('0 2', '0 3'), 0],
    ['one token over the burst', at('0 5', '0 1'), 1],
    ['a token as soon as it is there', at('0 5', '100 1', '200 1'), 0],
    ['a token 20 ms early', at('0 5', '80 1'), 0.2],
    ['early once, on time after', at('0 5', '80 1', '200 1', '300 1'), 0.2],
    ['early by more each time', at('0 5', '90 1', '180 1', '270 1'), 0.3],
    ['a pause pays for a second burst', at('0 5', '500 5'), 0],
    ['a pause pays for no more than a burst', at('0 1', '60000 5', '60000 2'), 2],
    ['the worst interval lies in the middle', at('0 1', '5000 8', '5100 1', '20000 1'), 3],
  ])('%s', (_, arrivals, expected) => {
    expect(worstExcess(arrivals, 10, 5)).toBeCloseTo(expected, 9);
  });

  test('one pass finds what looking at every interval finds', () => {
    const gaps = fc.array(fc.record({ gapUs: fc.nat(400_000), cost: fc.integer({ min: 1, max: 9 }) }), {
      maxLength: 60,
    });
    const rate = fc.integer({ min: 1, max: 300 });
    const burst = fc.integer({ min: 1, max: 40 });
    fc.assert(
      fc.property(gaps, rate, burst, (list, r, b) => {
        let atUs = 1e9;
        const arrivals = list.map(({ gapUs, cost }) => {
          atUs += gapUs;
          return { atUs, cost };
        });
        expect(worstExcess(arrivals, r, b)).toBeCloseTo(worstOfAllIntervals(arrivals, r, b), 6);
      }),
      { numRuns: 1_000 },
    );
  });
});

describe('utilisation', () => {
  test.each([
    ['all of the limit', at('0 5', '500 5', '1000 5'), 1],
    ['half of it', at('0 5', '1000 5'), 0.5],
    ['no time passed', at('0 5'), null],
    ['nothing arrived', at(), null],
  ])('%s', (_, arrivals, expected) => {
    expect(utilisation(arrivals, 10, 5)).toBe(expected);
  });
});

test.each([
  [[], 0.99, null],
  [[7], 0.99, 7],
  [[3, 1, 2], 0.5, 2],
  [Array.from({ length: 100 }, (_, i) => i + 1), 0.99, 99],
])('percentile of %j at %d', (values, share, expected) => {
  expect(percentile(values, share)).toBe(expected);
});
