import { describe, expect, it } from 'vitest';
import { ASK_AGAIN_US, WAITING_US, WOKEN_US } from '../../../../src/core/buckets/constants.ts';
import type { ConcurrencyLimitOptions } from '../../../../src/core/limits/concurrency.ts';
import type { LimitsOptions } from '../../../../src/core/limits/limit.ts';
import { S, slotsOf, World } from '../../../support/world.ts';

const slots = (max: number, options: Partial<ConcurrencyLimitOptions> = {}): LimitsOptions => ({
  slots: { kind: 'concurrency', max, leaseMs: 10_000, ...options },
});

/** At what second, who, with how many slots: and does it get them, or when is it to ask again? */
type Row = readonly [atS: number, holder: string, cost: number, expected: 'granted' | number];

function plays(world: World, rows: readonly Row[]): void {
  const seen = rows.map(([atS, holder, cost]): Row => {
    const verdict = world.acquire(atS * S, { holder, cost: { slots: cost }, queue: true });
    return [atS, holder, cost, verdict.granted ? 'granted' : verdict.waitUs / S];
  });
  expect(seen).toEqual(rows);
}

/** Takes slots. @returns what gives them back. */
function take(world: World, atS: number, holder: string, cost = 1) {
  const verdict = world.acquire(atS * S, { holder, cost: { slots: cost }, queue: true });
  if (!verdict.granted) throw new Error('refused');
  return slotsOf(verdict.receipt)[0]!;
}

describe('slots', () => {
  it('are held by weight, and lapse when they are not renewed', () =>
    plays(new World(slots(3)), [
      [0, 'a', 2, 'granted'],
      [1, 'b', 1, 'granted'],
      [1, 'c', 1, 1],
      [9.5, 'c', 1, 0.5],
      [10, 'c', 1, 'granted'],
      [10, 'd', 1, 'granted'],
      [10.5, 'e', 1, 0.5],
    ]));

  it('are kept by renewing, and given back once', () => {
    const world = new World(slots(1));
    const a = take(world, 0, 'a');
    expect([world.renew(9 * S, a), world.allows(18 * S, { holder: 'b' })]).toEqual([true, false]);
    expect([world.release(18 * S, a), world.release(18 * S, a), world.renew(18 * S, a)]).toEqual([
      true,
      false,
      false,
    ]);
    expect(world.allows(18 * S, { holder: 'b' })).toBe(true);
  });

  it('that have lapsed are neither renewed nor released', () => {
    const world = new World(slots(1));
    const a = take(world, 0, 'a');
    expect([world.copy().renew(10 * S, a), world.copy().release(10 * S, a)]).toEqual([false, false]);
    expect([world.copy().renew(10 * S - 1, a), world.copy().release(10 * S - 1, a)]).toEqual([true, true]);
  });

  it('are given to their own holder again, and its earlier grant has lost them', () => {
    const world = new World(slots(1));
    const before = take(world, 0, 'a');
    const after = take(world, 1, 'a');
    expect(after.fence).toBeGreaterThan(before.fence);
    expect([world.renew(2 * S, before), world.release(2 * S, before)]).toEqual([false, false]);
    expect(world.allows(2 * S, { holder: 'b' })).toBe(false);
    expect(world.release(2 * S, after)).toBe(true);
  });

  it('have fences that grow after the state was forgotten', () => {
    const world = new World(slots(1));
    const fences = [take(world, 0, 'a').fence, take(world, 0, 'a').fence];
    world.forget(3_600 * S);
    expect([...world.buckets.keys()]).toEqual([]);
    fences.push(take(world, 3_600 * S, 'a').fence);
    expect(fences).toEqual([...new Set(fences)].sort((a, b) => a - b));
  });

  it('of a limit that was lowered are taken from nobody; there is no more until there is room', () => {
    const world = new World(slots(4));
    const held = ['a', 'b', 'c', 'd'].map((holder) => take(world, 0, holder));
    world.configure(0, slots(2));
    expect(held.map((slot) => world.renew(1 * S, slot))).toEqual([true, true, true, true]);
    for (const slot of held.slice(0, 2)) {
      expect(world.allows(1 * S, { holder: 'e' })).toBe(false);
      world.release(1 * S, slot);
    }
    expect(world.allows(1 * S, { holder: 'e' })).toBe(false);
    world.release(1 * S, held[2]!);
    expect(world.allows(1 * S, { holder: 'e' })).toBe(true);
  });
});

describe('the queue for slots', () => {
  it('is passed by nobody, however little they ask for', () => {
    const world = new World(slots(3));
    const a = take(world, 0, 'a', 2);
    plays(world, [
      [0, 'heavy', 3, 1],
      [0, 'light', 1, 1],
    ]);
    world.release(0, a);
    expect(world.woken).toEqual(['heavy']);
    plays(world, [
      [0, 'light', 1, 1],
      [0, 'heavy', 3, 'granted'],
    ]);
  });

  it('wakes all who fit, each once', () => {
    const world = new World(slots(2));
    const held = [take(world, 0, 'a'), take(world, 0, 'b')];
    plays(world, [
      [0, 'c', 1, 1],
      [0, 'd', 1, 1],
      [0, 'e', 1, 1],
    ]);
    world.release(0, held[0]!);
    expect(world.woken).toEqual(['c']);
    world.release(0, held[1]!);
    expect(world.woken).toEqual(['c', 'd']);
    plays(world, [
      [0, 'd', 1, 'granted'],
      [0, 'c', 1, 'granted'],
      [0, 'e', 1, 1],
    ]);
    expect(world.woken).toEqual(['c', 'd']);
  });

  it('holds up nobody with a place whose owner is gone', () => {
    const world = new World(slots(2));
    const a = take(world, 0, 'a', 2);
    plays(world, [
      [0, 'gone', 1, ASK_AGAIN_US / S],
      [1, 'heavy', 2, ASK_AGAIN_US / S],
    ]);
    const before = world.copy();
    world.release(1 * S, a);
    expect(world.woken).toEqual(['gone']);
    const lateS = 1 + WOKEN_US / S;
    plays(world, [
      [lateS - 1 / S, 'heavy', 2, ASK_AGAIN_US / S],
      [lateS, 'heavy', 2, 'granted'],
    ]);
    // The same if nobody woke it: its place lapses.
    plays(before, [
      [2, 'heavy', 2, ASK_AGAIN_US / S],
      [WAITING_US / S, 'heavy', 2, ASK_AGAIN_US / S],
    ]);
    before.release((WAITING_US / S) * S, a);
    expect(before.woken).toEqual(['heavy']);
  });

  it('is left, and those behind are woken', () => {
    const world = new World(slots(2));
    take(world, 0, 'a');
    plays(world, [
      [0, 'heavy', 2, 1],
      [0, 'light', 1, 1],
    ]);
    world.leave(0, { holder: 'heavy' });
    expect(world.woken).toEqual(['light']);
    plays(world, [[0, 'light', 1, 'granted']]);
  });

  it('is left by whom another limit holds up', () => {
    const world = new World({ ...slots(1), calls: { rate: 1, periodMs: 60_000, burst: 1 } });
    const slot = take(world, 0, 'a');
    expect(world.acquire(60 * S, { holder: 'x', queue: true, cost: { slots: 0 } }).granted).toBe(true);
    const b = { holder: 'b', queue: true };
    expect(world.acquire(5 * S, { ...b, cost: { calls: 0 } }).granted).toBe(false);
    expect(world.acquire(5 * S, { holder: 'c', queue: true, cost: { calls: 0 } }).granted).toBe(false);
    // Asks for both now: it waits for the rate, and would hold up whoever waits for a slot alone.
    expect(world.acquire(5 * S, b)).toMatchObject({ granted: false, reason: 'rate' });
    world.release(5 * S, slot);
    expect(world.woken).toEqual(['c']);
  });

  it('wakes a holder that asked for more than it has once that fits', () => {
    const world = new World(slots(2));
    take(world, 0, 'a');
    const b = take(world, 0, 'b');
    plays(world, [[0, 'a', 2, 1]]);
    world.release(0, b);
    expect(world.woken).toEqual(['a']);
    plays(world, [[0, 'a', 2, 'granted']]);
  });

  it('is not stopped by one that asks for more than an adaptive limit has come to', () => {
    const world = new World(slots(4, { adaptive: { min: 1, max: 8 } }));
    // Nothing is held, so nothing can raise the limit: who is refused now waits for ever, and all behind it.
    let atS = 0;
    for (; atS < 60 && !world.allows(atS * S, { holder: 'heavy', cost: { slots: 6 }, queue: true }); atS++);
    expect(atS).toBeLessThan(60);
  });
});
