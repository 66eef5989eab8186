import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { leastInAny, mostInAny, ratePerSecond, reachedAfterUs } from '../../workers/measure/rolling.ts';

/** `at(0, 100, 200)`: one token at each of these milliseconds. */
const at = (...ms: number[]) => ms.map((one) => ({ atUs: one * 1000, cost: 1 }));

test('the rate between two moments: the first counts, the last does not', () => {
  expect(ratePerSecond(at(0, 100, 200, 300), 100_000, 300_000)).toBe(10);
});

describe('the most in any window', () => {
  test.each([
    ['nothing', at(), 0],
    ['a window from the first item leaves out the one at its end', at(0, 50, 100), 2],
    ['in the middle', at(0, 500, 510, 520, 900), 3],
  ])('%s', (_, items, most) => {
    expect(mostInAny(items, 100_000)).toBe(most);
  });
});

describe('the least in any window', () => {
  test.each([
    ['no window fits', at(0, 10), 50, null],
    ['evenly', at(0, 50, 100, 150, 200), 200, 2],
    ['a gap', at(0, 10, 20, 150, 160, 170), 200, 0],
    ['nothing at all', at(), 200, 0],
  ])('%s', (_, items, toMs, least) => {
    expect(leastInAny(items, 100_000, 0, toMs * 1000)).toBe(least);
  });

  test('finds what windows at every place find', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 0, max: 60 }), { maxLength: 30 }), (times) => {
        const items = at(...times.sort((a, b) => a - b));
        // Whole milliseconds and just after them: no other place can see less.
        const begins = Array.from({ length: 41 }, (_, ms) => [ms * 1000, ms * 1000 + 1]).flat();
        const counts = begins
          .filter((begin) => begin + 20_000 <= 60_000)
          .map((begin) => items.filter(({ atUs }) => atUs >= begin && atUs < begin + 20_000).length);
        expect(leastInAny(items, 20_000, 0, 60_000)).toBe(Math.min(...counts));
      }),
    );
  });
});

describe('when a rate is reached', () => {
  const every = (gapMs: number, fromMs: number, toMs: number) =>
    at(...Array.from({ length: Math.floor((toMs - fromMs) / gapMs) }, (_, i) => fromMs + i * gapMs));
  const target = { changeUs: 1_000_000, rate: 100, windowUs: 1_000_000, share: 0.95 };

  test.each([
    ['at once', [...every(100, 0, 1000), ...every(10, 1000, 3000)], 0],
    [
      'after 400 ms, less what the share leaves room for',
      [...every(100, 0, 1400), ...every(10, 1400, 3000)],
      400,
    ],
    ['never', every(100, 0, 3000), null],
    ['it was there before, and is not any more', every(10, 0, 1000), null],
  ])('%s', (_, items, reachedMs) => {
    const us = reachedAfterUs(items, target);
    expect(us === null ? null : Math.ceil(us / 100_000) * 100).toBe(reachedMs);
  });
});
