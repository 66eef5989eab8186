import { expect, test } from 'vitest';
import { RAMP_US } from '../../../src/core/buckets/constants.ts';
import { longer, opened, rampUs, whenOpened } from '../../../src/core/buckets/pause.ts';

const SHORT = { fromUs: 1_000_000, untilUs: 1_400_000 };
const LONG = { fromUs: 1_000_000, untilUs: 9_000_000 };

test('work takes as long to come back as the pause was, but no longer than a second', () => {
  expect(rampUs(SHORT)).toBe(400_000);
  expect(rampUs(LONG)).toBe(RAMP_US);
});

test.for([SHORT, LONG])('what comes back in whole numbers does so bit by bit, %j', (pause) => {
  for (const whole of [1, 7, 20, 1_500, 2 ** 40]) {
    expect(opened(whole, pause, pause.untilUs - 1)).toBe(0);
    expect(opened(whole, pause, pause.untilUs)).toBe(1);
    expect(opened(whole, pause, pause.untilUs + rampUs(pause))).toBe(whole);
    for (const needed of [1, Math.ceil(whole / 3), whole]) {
      const us = whenOpened(needed, whole, pause);
      expect(opened(whole, pause, us)).toBeGreaterThanOrEqual(needed);
      expect(opened(whole, pause, us - 1)).toBeLessThan(needed);
    }
  }
});

test('the longest pause wins, and is one with that which lasts', () => {
  expect(longer(SHORT, 1_200_000, 1_300_000)).toEqual(SHORT);
  expect(longer(SHORT, 1_200_000, 2_000_000)).toEqual({ fromUs: 1_000_000, untilUs: 2_000_000 });
  expect(longer(SHORT, 1_400_000, 2_000_000)).toEqual({ fromUs: 1_400_000, untilUs: 2_000_000 });
  expect(longer(null, 5, 9)).toEqual({ fromUs: 5, untilUs: 9 });
});
