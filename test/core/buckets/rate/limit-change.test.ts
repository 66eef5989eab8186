import { describe, expect, it } from 'vitest';
import type { LimitOptions, LimitsOptions } from '../../../../src/core/limits/limit.ts';
import { perMinute, perSecond } from '../../../../src/core/limits/rate.ts';
import { S, WAITING, World } from '../../../support/world.ts';

/** One request after the other under one limit, which may be another each time. */
function changeable() {
  let world: World | undefined;
  let inForce: LimitOptions;
  return (options: LimitOptions, atUs: number, cost = 1) => {
    world ??= new World({ calls: options });
    if (JSON.stringify(options) !== JSON.stringify(inForce)) world.configure(atUs, { calls: options });
    inForce = options;
    return world.acquire(atUs, { cost });
  };
}

// https://github.com/resilience4j/resilience4j/issues/1073: a new limit counted from the next period on.
describe('a limit that is changed', () => {
  it('to a faster one is in force at the next decision', () => {
    const ask = changeable();
    ask(perMinute(1, { burst: 1 }), 0);
    expect(ask(perMinute(1, { burst: 1 }), 0)).toMatchObject({ granted: false, waitUs: 60 * S });
    expect(ask(perSecond(10, { burst: 1 }), 0)).toMatchObject({ granted: false, waitUs: 0.1 * S });
  });

  it('to a slower one is in force at the next decision, and what was used stays used', () => {
    const ask = changeable();
    ask(perSecond(10, { burst: 5 }), 0, 5);
    // Five tokens are owed. One more fits into a burst of five when one of them is paid, at the new rate.
    expect(ask(perMinute(1, { burst: 5 }), 0)).toMatchObject({ granted: false, waitUs: 60 * S });
  });

  it('to a smaller burst makes wait until the debt fits it', () => {
    const ask = changeable();
    ask(perSecond(10, { burst: 50 }), 0, 50);
    expect(ask(perSecond(10, { burst: 2 }), 0)).toMatchObject({ granted: false, waitUs: 4.9 * S });
  });

  it('to a larger burst has the difference at once', () => {
    const ask = changeable();
    ask(perSecond(10, { burst: 5 }), 0, 5);
    expect(ask(perSecond(10, { burst: 20 }), 0, 15).granted).toBe(true);
    expect(ask(perSecond(10, { burst: 20 }), 0)).toMatchObject({ granted: false, waitUs: 0.1 * S });
  });

  it('and back again costs a unit or two, not a token', () => {
    const ask = changeable();
    const [even, odd] = [perSecond(10, { burst: 100 }), perSecond(7, { burst: 100 })];
    for (let n = 0; n < 20; n++) ask(n % 2 ? odd : even, 0);
    const verdict = ask(even, 0, 81);
    expect(verdict.granted).toBe(false);
    expect(verdict.waitUs).toBeLessThanOrEqual(100_000 + 40);
  });
});

describe('what was promised more than a second ahead of a change', () => {
  const at = (rate: number) => ({ calls: perSecond(rate, { burst: 1 }) });

  // Ten seconds of 10/s are promised. Of that a second stands, and the token that was there: eleven are owed.
  function changed(rate: number): World {
    const world = new World(at(10));
    for (let n = 0; n < 101; n++) world.acquire(0, WAITING);
    world.configure(0, at(rate));
    return world;
  }

  it.each([
    [20, 0.55],
    [100, 0.11],
    [5, 2.2],
  ])('is taken back as of the change (to %i/s), however late and often somebody looks', (rate, waitS) => {
    const world = changed(rate);
    for (const part of [0, 0.25, 0.5, 0.9, 1]) {
      const atUs = Math.round(waitS * part * S);
      expect(world.views(atUs)[0]!.waitUs).toBe(waitS * S - atUs);
      expect(world.copy().acquire(atUs).granted).toBe(part === 1);
    }
  });

  it('drains at the rate of each limit for as long as that was in force', () => {
    const world = new World(at(10));
    for (let n = 0; n < 100; n++) world.force(0);
    world.configure(5 * S, at(1));
    // A hundred were owed, and fifty of them had drained by then.
    expect(world.views(15 * S)[0]!.waitUs).toBe(40 * S);
    expect(world.copy().acquire(55 * S - 1).granted).toBe(false);
    expect(world.copy().acquire(55 * S).granted).toBe(true);
  });

  it.each([
    ['a change', (world: World, limits: LimitsOptions) => world.configure(3.5 * S, limits)],
    [
      'a pause that is ended at once',
      (world: World) => {
        world.pause(3.5 * S - 1, 60 * S);
        world.resume(3.5 * S);
      },
    ],
  ])('leaves a cost above the burst owed that has started before %s', (_, happens) => {
    const limits = { calls: perSecond(100, { burst: 100, oversize: 'debt' as const }) };
    const world = new World(limits);
    const starts = [100, 100, 5_000, 5_000, 5_000].map(
      (cost) => world.acquire(0, { ...WAITING, cost }).waitUs / S,
    );
    expect(starts).toEqual([0, 1, 2, 52, 102]);
    happens(world, limits);
    // Of the 5,000 at 2 s, 4,850 are owed. Not less: those at 52 s and 102 s start no more, and yet may be owed still.
    expect(world.views(3.5 * S)[0]!.waitUs).toBeGreaterThanOrEqual(48.5 * S);
    expect(world.acquire(51 * S, { cost: 100 }).granted).toBe(false);
  });

  it('leaves what was settled on top owed', () => {
    const world = new World(at(100));
    const receipts = [];
    // A steady queue: something is always promised more than a second ahead.
    for (let us = 0; us < 20 * S; us += 0.01 * S) {
      const verdict = world.acquire(us, us === 0 ? WAITING : { ...WAITING, cost: 1 });
      if (verdict.granted) receipts.push(verdict.receipt);
      if (us === 0) for (let n = 0; n < 300; n++) world.acquire(us, WAITING);
    }
    world.settle(20 * S, receipts[0]!, 5_001);
    const before = world.views(20 * S)[0]!.waitUs;
    expect(before).toBeGreaterThan(50 * S);
    world.configure(20 * S, { ...at(100), other: perSecond(5) });
    expect(world.views(20 * S)[0]!.waitUs).toBeGreaterThan(50 * S);
    expect(world.views(20 * S)[0]!.waitUs).toBeLessThan(before);
  });
});
