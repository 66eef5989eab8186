import { describe, expect, test, vi } from 'vitest';
import { Recall } from '../../../src/core/calls/standing.ts';
import { FakeClock } from '../../../src/testing/index.ts';

/** @param confirm - What the store answers when it is asked for its version; undefined: it can't be asked. */
function recalling(confirm?: () => Promise<number>) {
  const clock = new FakeClock();
  const beganMs = clock.monoMs();
  const askedAt: number[] = [];
  const recalled = vi.fn();
  const store = confirm && {
    confirm: () => {
      askedAt.push(Math.round(clock.monoMs() - beganMs));
      return confirm();
    },
  };
  const recall = new Recall(store ?? {}, clock, recalled);
  return { clock, recall, recalled, askedAt };
}

const one = async () => 1;

describe('a grant stands', () => {
  test('if it starts within a second, whatever has changed', () => {
    const { clock, recall } = recalling(one);
    const nowMs = clock.monoMs();
    recall.confirm(1, nowMs);
    recall.confirm(9, nowMs);
    expect(recall.stands(1, 0, nowMs)).toBe(true);
    expect(recall.stands(1, 1_000, nowMs + 1_000)).toBe(true);
    expect(recall.stands(1, 1_001, nowMs + 1_001)).toBe(false);
  });

  test('later than that only if its limits were still in force within the last second before its start', () => {
    const { clock, recall } = recalling(one);
    const nowMs = clock.monoMs();
    expect(recall.stands(1, 5_000, nowMs + 5_000)).toBe(false);
    recall.confirm(1, nowMs + 4_000);
    expect(recall.stands(1, 5_000, nowMs + 5_000)).toBe(true);
    expect(recall.stands(1, 5_000, nowMs + 5_001)).toBe(false);
  });

  test('of a store that tells of each change at once until one is heard of', () => {
    const { clock, recall } = recalling();
    const nowMs = clock.monoMs();
    recall.confirm(1, nowMs);
    expect(recall.stands(1, 60_000, nowMs + 60_000)).toBe(true);
    recall.confirm(2, nowMs);
    expect(recall.stands(1, 60_000, nowMs + 60_000)).toBe(false);
    expect(recall.stands(2, 60_000, nowMs + 60_000)).toBe(true);
  });

  test('if an answer that is older comes later: versions only grow', () => {
    const { clock, recall, recalled } = recalling(one);
    const nowMs = clock.monoMs();
    recall.confirm(2, nowMs);
    recall.confirm(1, nowMs + 500);
    expect(recall.stands(2, 1_500, nowMs + 1_000)).toBe(true);
    expect(recall.stands(2, 1_500, nowMs + 1_001)).toBe(false);
    expect(recalled).not.toHaveBeenCalled();
  });
});

test('a recall is told of once for each version that is new, and never of the first', () => {
  const { recall, recalled } = recalling(one);
  for (const version of [4, 4, 5, 5, 4, 7]) recall.confirm(version, 0);
  expect(recalled).toHaveBeenCalledTimes(2);
});

describe('while somebody holds a grant for longer than a second', () => {
  test('the store is asked so often that two answers may be late', async () => {
    const { clock, recall, askedAt } = recalling(one);
    const end = recall.watch(5_000);
    await clock.advance(1_000);
    expect(askedAt).toEqual([300, 600, 900]);
    expect(recall.stands(1, 5_000, clock.monoMs())).toBe(true);
    end();
    await clock.advance(5_000);
    expect(askedAt).toHaveLength(3);
    expect(clock.pending).toBe(0);
  });

  test('a change is seen that no message told of', async () => {
    let version = 1;
    const { clock, recall, recalled } = recalling(async () => version);
    const end = recall.watch(5_000);
    await clock.advance(600);
    version = 2;
    await clock.advance(300);
    expect(recalled).toHaveBeenCalledTimes(1);
    expect(recall.stands(1, 5_000, clock.monoMs())).toBe(false);
    end();
  });

  test('a store that does not answer confirms nothing, and is asked again', async () => {
    const { clock, recall, askedAt } = recalling(() => Promise.reject(new Error('away')));
    recall.confirm(1, clock.monoMs());
    const end = recall.watch(5_000);
    await clock.advance(1_001);
    expect(askedAt).toHaveLength(3);
    expect(recall.stands(1, 5_000, clock.monoMs())).toBe(false);
    end();
  });

  test('it is asked for all of them together, until the last has ended', async () => {
    const { clock, recall, askedAt } = recalling(one);
    const ends = [recall.watch(5_000), recall.watch(9_000)];
    await clock.advance(600);
    ends[0]!();
    ends[0]!();
    await clock.advance(300);
    expect(askedAt).toEqual([300, 600, 900]);
    ends[1]!();
    await clock.advance(3_000);
    expect(askedAt).toHaveLength(3);
  });

  test('one asks, also if holders came and went while the store was asked', async () => {
    let answer = (_version: number) => {};
    const { clock, recall, askedAt } = recalling(() => new Promise((resolve) => (answer = resolve)));
    for (let round = 0; round < 5; round++) {
      const end = recall.watch(5_000);
      await clock.advance(300);
      end();
      const again = recall.watch(5_000);
      answer(1);
      await clock.advance(0);
      again();
    }
    const asked = askedAt.length;
    const end = recall.watch(60_000);
    for (let third = 0; third < 10; third++) {
      await clock.advance(300);
      answer(1);
      await clock.advance(0);
    }
    expect(askedAt.length - asked).toBe(10);
    end();
    expect(clock.pending).toBe(0);
  });

  test.for<[string, number, (() => Promise<number>) | undefined]>([
    ['a grant that starts within a second', 1_000, one],
    ['a store that cannot be asked', 60_000, undefined],
  ])('but not for %s', async ([, waitMs, confirm]) => {
    const { clock, recall, askedAt } = recalling(confirm);
    recall.watch(waitMs)();
    recall.watch(waitMs);
    await clock.advance(2_000);
    expect([askedAt.length, clock.pending]).toEqual([0, 0]);
  });

  test('close ends the asking', async () => {
    const { clock, recall, askedAt } = recalling(one);
    recall.watch(5_000);
    recall.close();
    await clock.advance(5_000);
    expect([askedAt.length, clock.pending]).toEqual([0, 0]);
  });
});
