import { describe, expect, it, test } from 'vitest';
import { RAMP_US } from '../../../src/core/buckets/constants.ts';
import { longer, opened, rampUs, whenOpened } from '../../../src/core/buckets/pause.ts';
import { perSecond } from '../../../src/core/limits/rate.ts';
import { type Request, S, World } from '../../support/world.ts';

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

describe.each<[string, Request]>([
  ['the whole governor', {}],
  ['a key', { keys: { shop: 'acme' } }],
])('after a pause of %s', (_, request) => {
  const { keys } = request;
  const by = keys === undefined ? {} : { by: 'shop' };

  function pausedUntil(world: World, endUs: number): World {
    world.pause(0, endUs, keys);
    return world;
  }

  /** Takes what there is, every millisecond. */
  function taken(world: World, fromUs: number, toUs: number): number[] {
    const starts: number[] = [];
    for (let us = fromUs; us <= toUs; us += 1_000) while (world.allows(us, request)) starts.push(us);
    return starts;
  }

  it('a rate goes on from half a second later, from empty, adaptive or not', () => {
    for (const adaptive of [{}, { adaptive: { min: 50, max: 100 } }]) {
      const world = pausedUntil(
        new World({ calls: perSecond(100, { burst: 50, ...adaptive, ...by }) }),
        5 * S,
      );
      const starts = taken(world, 4 * S, 6 * S);
      expect(starts[0]).toBe(5.51 * S);
      expect(starts.filter((us) => us <= 6 * S)).toHaveLength(50);
    }
  });

  it('a pause costs no more than half of its own length', () => {
    const world = new World({ calls: perSecond(100, { burst: 50, ...by }) });
    world.pause(5 * S, 5.2 * S, keys);
    expect(taken(world, 5 * S, 6 * S)[0]).toBe(5.31 * S);
  });

  it('a window opens bit by bit', () => {
    const world = pausedUntil(
      new World({ day: { kind: 'window', max: 4, windowMs: 86_400_000, ...by } }),
      5 * S,
    );
    expect(taken(world, 4 * S, 8 * S)).toEqual([5 * S, 5.5 * S, 5.75 * S, 6 * S]);
  });

  it('a refusal tells the first microsecond at which there is room, from before its end to after its ramp', () => {
    const world = pausedUntil(new World({ calls: perSecond(7, { burst: 3, ...by }) }), 2 * S);
    for (let us = S; us < 6 * S; us += 37_003) {
      const { granted, waitUs } = world.copy().acquire(us, { ...request, cost: 2 });
      if (granted) continue;
      expect(world.copy().allows(us + waitUs, { ...request, cost: 2 })).toBe(true);
      expect(world.copy().allows(us + waitUs - 1, { ...request, cost: 2 })).toBe(false);
    }
  });

  it('nothing is reserved before it is over', () => {
    const world = pausedUntil(new World({ calls: perSecond(2, { burst: 3, ...by }) }), 2 * S);
    const reserves = (us: number) =>
      world.copy().acquire(us, { ...request, cost: 3, maxWaitUs: Number.MAX_SAFE_INTEGER }).granted;
    expect([S, 2 * S - 1].map(reserves)).toEqual([false, false]);
    expect(reserves(2 * S)).toBe(true);
  });

  it('what was promised keeps its place through another pause', () => {
    const world = pausedUntil(new World({ calls: perSecond(100, { burst: 1, ...by }) }), 2 * S);
    for (let n = 0; n < 200; n++) world.acquire(2 * S, { ...request, maxWaitUs: Number.MAX_SAFE_INTEGER });
    // The last is promised for 4.5 s, since the ramp holds half a second back. The real time of that must not be had besides.
    world.pause(2.001 * S, 4 * S, keys);
    expect(taken(world, 4 * S, 4.5 * S)).toEqual([]);
  });

  it('slots come one after the other', () => {
    const world = pausedUntil(
      new World({ slots: { kind: 'concurrency', max: 4, leaseMs: 60_000, ...by } }),
      2 * S,
    );
    const starts: number[] = [];
    let us = 2 * S;
    for (let n = 0; n < 5 && us < 4 * S; n++) {
      const asking = { ...request, holder: `h${n}` };
      const { waitUs } = world.copy().acquire(us, asking);
      expect(waitUs === 0 || !world.copy().allows(us + waitUs - 1, asking)).toBe(true);
      us += waitUs;
      if (world.allows(us, asking)) starts.push(us - 2 * S);
    }
    expect(starts).toEqual([0, 0.5 * S, 0.75 * S, S]);
  });

  it('a cost that takes all slots waits for the end of the ramp', () => {
    const world = pausedUntil(
      new World({ slots: { kind: 'concurrency', max: 4, leaseMs: 60_000, ...by } }),
      2 * S,
    );
    expect(world.acquire(2 * S, { ...request, cost: { slots: 4 }, holder: 'a' })).toMatchObject({
      granted: false,
      waitUs: S,
    });
    expect(world.allows(3 * S, { ...request, cost: { slots: 4 }, holder: 'a' })).toBe(true);
  });
});
