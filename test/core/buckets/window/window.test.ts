import { describe, expect, it } from 'vitest';
import type { WindowLimitOptions } from '../../../../src/core/limits/window.ts';
import { World, ZERO_US } from '../../../support/world.ts';

const MS = 1_000;

/** At what millisecond, how much, and: granted, or how many milliseconds until it would be. */
type Row = readonly [atMs: number, cost: number, expected: 'granted' | number];

function plays(options: Omit<WindowLimitOptions, 'kind'>, rows: readonly Row[]): void {
  const world = new World({ daily: { kind: 'window', ...options } });
  const seen = rows.map(([atMs, cost]): Row => {
    const verdict = world.acquire(atMs * MS, { cost });
    return [atMs, cost, verdict.granted ? 'granted' : verdict.waitUs / MS];
  });
  expect(seen).toEqual(rows);
}

// Aligned windows and cells are counted from 1970; this zero lies on the edge of all the ones below.
it('has a zero at which windows of whole seconds begin', () => {
  expect(ZERO_US % 10_000_000).toBe(0);
});

describe('a fixed window', () => {
  it('begins with its first use', () =>
    plays({ max: 3, windowMs: 10_000 }, [
      [4_000, 2, 'granted'],
      [9_000, 1, 'granted'],
      [10_000, 1, 4_000],
      [13_999, 1, 1],
      [14_000, 3, 'granted'],
      [14_000, 1, 10_000],
      // Nobody comes for a while; the next begins when somebody does, not at a multiple of its length.
      [31_000, 1, 'granted'],
      [34_000, 3, 7_000],
      [41_000, 3, 'granted'],
    ]));

  it('that is aligned begins at multiples of its length since 1970', () =>
    plays({ max: 3, windowMs: 10_000, aligned: true }, [
      [4_000, 3, 'granted'],
      [9_999, 1, 1],
      [10_000, 3, 'granted'],
      [10_001, 1, 9_999],
      [25_000, 3, 'granted'],
      [25_000, 1, 5_000],
      [30_000, 1, 'granted'],
    ]));

  it('lets twice its maximum through around an edge', () =>
    plays({ max: 5, windowMs: 10_000, aligned: true }, [
      [9_999, 5, 'granted'],
      [10_000, 5, 'granted'],
      [10_000, 1, 10_000],
    ]));
});

describe('a sliding window', () => {
  it('counts the oldest cell by what is left of it', () =>
    plays({ max: 10, windowMs: 10_000, mode: 'sliding', cells: 2 }, [
      [0, 10, 'granted'],
      // All of it counts for as long as its cell is not the oldest, then it falls by 2 a second.
      [9_999, 1, 501],
      [10_499, 1, 1],
      [10_500, 1, 'granted'],
      [10_500, 4, 2_000],
      [12_500, 4, 'granted'],
      [15_000, 5, 'granted'],
    ]));

  it('grants as little as its cells allow after a burst, and all of it once that has gone', () =>
    plays({ max: 4, windowMs: 4_000, mode: 'sliding', cells: 4 }, [
      [0, 4, 'granted'],
      [0, 4, 5_000],
      [4_999, 4, 1],
      [5_000, 4, 'granted'],
    ]));
});

describe('a log', () => {
  it('is exact', () =>
    plays({ max: 3, windowMs: 10_000, mode: 'log' }, [
      [1_000, 1, 'granted'],
      [2_000, 2, 'granted'],
      [3_000, 1, 8_000],
      [3_000, 2, 9_000],
      [10_999, 1, 1],
      [11_000, 1, 'granted'],
      [11_000, 2, 1_000],
      [12_000, 2, 'granted'],
      [12_000, 3, 10_000],
    ]));
});

describe('any window', () => {
  const modes = [
    { mode: 'fixed' },
    { mode: 'fixed', aligned: true },
    { mode: 'sliding' },
    { mode: 'log' },
  ] as const;

  it.each(modes)('$mode $aligned stands still when the clock steps back by a second', (mode) =>
    plays({ max: 2, windowMs: 10_000, ...mode }, [
      [1_000, 2, 'granted'],
      [
        100,
        1,
        mode.mode === 'fixed' ? ('aligned' in mode ? 9_900 : 10_900) : mode.mode === 'log' ? 10_900 : 11_400,
      ],
    ]),
  );

  it.each(modes)('$mode $aligned is moved with a clock that is put right by more', (mode) => {
    const world = new World({ daily: { kind: 'window', max: 2, windowMs: 10_000, ...mode } });
    expect(world.allows(3_600_000 * MS, { cost: 2 })).toBe(true);
    const verdict = world.acquire(0);
    expect(verdict.granted).toBe(false);
    expect(verdict.waitUs).toBeLessThanOrEqual(11_000 * MS);
    expect(world.allows(verdict.waitUs)).toBe(true);
  });

  it.each(modes)('$mode $aligned with a lower maximum waits until it holds less', (mode) => {
    const kind = 'window' as const;
    const world = new World({ daily: { kind, max: 10, windowMs: 10_000, ...mode } });
    expect(world.allows(0, { cost: 8 })).toBe(true);
    world.configure(0, { daily: { kind, max: 3, windowMs: 10_000, ...mode } });
    const { granted, waitUs } = world.acquire(1_000 * MS);
    expect(granted).toBe(false);
    expect(world.copy().allows(1_000 * MS + waitUs - 1)).toBe(false);
    expect(world.allows(1_000 * MS + waitUs)).toBe(true);
  });
});

describe('windows that begin by the clock from now on', () => {
  const fixed = (windowMs: number, aligned: boolean) => ({
    daily: { kind: 'window' as const, max: 3, windowMs, aligned },
  });

  it.each([10_000, 5_000])('(%i ms) count what was used until a window by the clock ends', (windowMs) => {
    const world = new World(fixed(10_000, false));
    expect(world.allows(14_000 * MS, { cost: 3 })).toBe(true); // the end of a window from first use
    expect(world.allows(24_000 * MS, { cost: 3 })).toBe(true); // the next one, to 34,000
    world.configure(24_000 * MS, fixed(windowMs, true));
    // Sooner, and what starts from now until then would not count in the window by the clock in which it starts.
    const freeMs = windowMs === 10_000 ? 40_000 : 30_000;
    expect(world.acquire(24_500 * MS).waitUs).toBe((freeMs - 24_500) * MS);
    expect(world.allows(freeMs * MS, { cost: 3 })).toBe(true);
    expect(world.acquire(freeMs * MS).waitUs).toBe(windowMs * MS);
  });
});

it('says what binds and why', () => {
  const world = new World({ daily: { kind: 'window', max: 1, windowMs: 1_000, by: 'shop' } });
  const keys = { shop: 'a' };
  expect(world.allows(0, { keys })).toBe(true);
  expect(world.acquire(0, { keys })).toMatchObject({
    granted: false,
    reason: 'window',
    by: 'shop',
    limit: { name: 'daily' },
  });
  expect(world.allows(0, { keys: { shop: 'b' } })).toBe(true);
});
