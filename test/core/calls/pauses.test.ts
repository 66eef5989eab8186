import { describe, expect, test } from 'vitest';
import { Pauses } from '../../../src/core/calls/standing.ts';
import { FakeClock } from '../../../src/testing/index.ts';

const acme = { shop: 'acme' };
const other = { shop: 'other' };

function hearing() {
  const clock = new FakeClock();
  return { clock, pauses: new Pauses(clock), earlierMs: clock.monoMs() - 50 };
}

describe('a grant that was asked for before a pause was heard of', () => {
  test('is not used while the whole governor is paused, whatever its keys', async () => {
    const { clock, pauses, earlierMs } = hearing();
    expect(pauses.isPaused(undefined, earlierMs)).toBe(false);
    pauses.begun(undefined, 1_000);
    expect([undefined, acme].map((keys) => pauses.isPaused(keys, earlierMs))).toEqual([true, true]);
    await clock.advance(999);
    expect(pauses.isPaused(acme, earlierMs)).toBe(true);
    await clock.advance(1);
    expect([undefined, acme].map((keys) => pauses.isPaused(keys, earlierMs))).toEqual([false, false]);
  });

  test('is not used while one of its keys is paused; other keys are', async () => {
    const { clock, pauses, earlierMs } = hearing();
    pauses.begun(acme, 1_000);
    expect(pauses.isPaused({ ...acme, tenant: 't' }, earlierMs)).toBe(true);
    for (const keys of [other, undefined, { tenant: 'acme' }, { tenant: 't' }]) {
      expect(pauses.isPaused(keys, earlierMs)).toBe(false);
    }
    await clock.advance(1_000);
    expect(pauses.isPaused(acme, earlierMs)).toBe(false);
  });

  test('and a number is the key that it is written as', () => {
    const { pauses, earlierMs } = hearing();
    pauses.begun({ shop: 7 }, 1_000);
    expect(pauses.isPaused({ shop: '7' }, earlierMs)).toBe(true);
  });

  test('is held up by the longest of several pauses', async () => {
    const { clock, pauses, earlierMs } = hearing();
    pauses.begun(acme, 5_000);
    pauses.begun(acme, 1_000);
    pauses.begun(undefined, 500);
    await clock.advance(4_999);
    expect(pauses.isPaused(acme, earlierMs)).toBe(true);
    await clock.advance(1);
    expect(pauses.isPaused(acme, earlierMs)).toBe(false);
  });

  test('is used once the pause was ended; the end of one is not that of another', () => {
    const { pauses, earlierMs } = hearing();
    pauses.begun(acme, 60_000);
    pauses.begun(undefined, 60_000);
    pauses.ended(undefined);
    expect([acme, other].map((keys) => pauses.isPaused(keys, earlierMs))).toEqual([true, false]);
    pauses.ended(other);
    expect(pauses.isPaused(acme, earlierMs)).toBe(true);
    pauses.ended(acme);
    expect(pauses.isPaused(acme, earlierMs)).toBe(false);
  });

  test('is not used again when a later pause begins after one was over', async () => {
    const { clock, pauses, earlierMs } = hearing();
    pauses.begun(acme, 1_000);
    await clock.advance(2_000);
    pauses.begun(acme, 1_000);
    expect(pauses.isPaused(acme, earlierMs)).toBe(true);
    await clock.advance(1_000);
    expect(pauses.isPaused(acme, earlierMs)).toBe(false);
  });
});

// It was decided by a store that knew of the pause, and of its end, of which this process may never hear.
test.for([undefined, acme])('what is asked for after a pause of %j was heard of is used', async (keys) => {
  const { clock, pauses } = hearing();
  pauses.begun(keys, 3_600_000);
  await clock.advance(1);
  expect(pauses.isPaused(acme, clock.monoMs())).toBe(false);
});
