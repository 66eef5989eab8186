import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { RAMP_US } from '../../../src/core/buckets/constants.ts';
import { isRamping, slotsInRamp, whenSlots, whenWorth, worthUs } from '../../../src/core/buckets/pause.ts';
import { perSecond } from '../../../src/core/limits/rate.ts';
import { runs } from '../../support/runs.ts';
import { type Request, S, World } from '../../support/world.ts';

const END_US = 1_700_000_000_000_000;
const numRuns = runs(1_000);

describe('a ramp', () => {
  const anyTime = fc
    .oneof(fc.integer({ min: -3 * S, max: 3 * S }), fc.integer({ min: -1e12, max: 1e12 }))
    .map((us) => END_US + us);

  it('is worth nothing at first, the whole rate at its end, and half of it in all', () => {
    expect(worthUs(END_US, END_US + 1_000, END_US)).toBe(0);
    expect(worthUs(END_US, END_US + RAMP_US / 2, END_US)).toBe(RAMP_US / 8);
    expect(worthUs(END_US, END_US + RAMP_US, END_US)).toBe(RAMP_US / 2);
    expect(worthUs(END_US + RAMP_US, END_US + 9 * S, END_US)).toBe(9 * S - RAMP_US);
    expect(worthUs(END_US - 5 * S, END_US, END_US)).toBe(5 * S);
  });

  it('never lets time be worth more than it is', () => {
    fc.assert(
      fc.property(anyTime, fc.nat(5 * S), fc.boolean(), (fromUs, us, never) => {
        const worth = worthUs(fromUs, fromUs + us, never ? 0 : END_US);
        expect(worth).toBeLessThanOrEqual(us);
        expect(worth).toBeGreaterThanOrEqual(0);
        if (never) expect(worth).toBe(us);
      }),
      { numRuns },
    );
  });

  it('tells the first microsecond by which time is worth so much', () => {
    fc.assert(
      fc.property(anyTime, fc.integer({ min: 1, max: 5 * S }), fc.boolean(), (fromUs, us, never) => {
        const endUs = never ? 0 : END_US;
        const whenUs = whenWorth(us, fromUs, endUs);
        expect(worthUs(fromUs, whenUs, endUs)).toBeGreaterThanOrEqual(us);
        expect(worthUs(fromUs, whenUs - 1, endUs)).toBeLessThan(us);
      }),
      { numRuns },
    );
  });

  it('gives slots one after the other, and tells when there are so many', () => {
    expect(slotsInRamp(20, END_US - 1, END_US)).toBe(0);
    expect(slotsInRamp(20, END_US, END_US)).toBe(1);
    expect(slotsInRamp(20, END_US + RAMP_US, END_US)).toBe(20);
    expect(slotsInRamp(20, 5, 0)).toBe(20);
    for (let needed = 2; needed <= 20; needed++) {
      const whenUs = whenSlots(needed, 20, END_US);
      expect(slotsInRamp(20, whenUs, END_US)).toBe(needed);
      expect(slotsInRamp(20, whenUs - 1, END_US)).toBe(needed - 1);
    }
  });

  it('lasts for as long as it says', () => {
    expect(isRamping(END_US - 1, END_US)).toBe(true);
    expect(isRamping(END_US + RAMP_US - 1, END_US)).toBe(true);
    expect(isRamping(END_US + RAMP_US, END_US)).toBe(false);
    expect(isRamping(5, 0)).toBe(false);
  });
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

  it('a rate climbs from nothing, and has lost half a ramp in the end', () => {
    const world = pausedUntil(new World({ calls: perSecond(100, { burst: 50, ...by }) }), 5 * S);
    const starts = taken(world, 4 * S, 8 * S);
    const until = (us: number) => starts.filter((start) => start <= 5 * S + us).length;
    expect(starts[0]).toBe(5 * S + 142_000); // √(2 × 10 ms × 1 s), in whole milliseconds
    expect(until(0.5 * S)).toBe(Math.floor(100 * 0.125));
    expect(until(S)).toBe(50);
    expect(until(3 * S)).toBe(250);
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

  it('an adaptive limit is empty and has no ramp', () => {
    const adaptive = { min: 50, max: 200 };
    const world = pausedUntil(new World({ calls: perSecond(100, { burst: 50, adaptive, ...by }) }), 5 * S);
    expect(taken(world, 4 * S, 5 * S + 9_000)).toEqual([]);
    expect(taken(world, 5 * S + 10_000, 5.5 * S).length).toBeGreaterThanOrEqual(50);
    const slots = {
      kind: 'concurrency' as const,
      max: 10,
      leaseMs: 60_000,
      adaptive: { min: 1, max: 20 },
      ...by,
    };
    const others = pausedUntil(new World({ slots }), 5 * S);
    expect(others.views(5 * S - 1, request).map(({ pausedUs }) => pausedUs)).toEqual([1]);
    for (let n = 0; n < 10; n++) expect(others.allows(5 * S, { ...request, holder: `h${n}` })).toBe(true);
  });

  it('nothing is reserved before it is over', () => {
    const world = pausedUntil(new World({ calls: perSecond(2, { burst: 3, ...by }) }), 2 * S);
    const reserves = (us: number) =>
      world.copy().acquire(us, { ...request, cost: 3, maxWaitUs: Number.MAX_SAFE_INTEGER }).granted;
    expect([S, 2 * S - 1].map(reserves)).toEqual([false, false]);
    expect(reserves(2 * S)).toBe(true);
  });

  it('what its ramp promised keeps its place through another pause', () => {
    const world = pausedUntil(new World({ calls: perSecond(100, { burst: 1, ...by }) }), 2 * S);
    for (let n = 0; n < 200; n++) world.acquire(2 * S, { ...request, maxWaitUs: Number.MAX_SAFE_INTEGER });
    // The last is promised for 4.5 s, since the ramp holds half a second back. The real time of that must not be had besides.
    world.pause(2.001 * S, 4 * S, keys);
    expect(taken(world, 4 * S, 4.5 * S)).toEqual([]);
  });

  it('what its ramp promised keeps its place when the limit becomes an adaptive one, which has none', () => {
    const limit = { burst: 1, ...by };
    const world = pausedUntil(new World({ calls: perSecond(100, limit) }), 2 * S);
    // The last starts at 2.9 s. Within a second of the change, it stands.
    for (let n = 0; n < 40; n++) world.acquire(2 * S, { ...request, maxWaitUs: Number.MAX_SAFE_INTEGER });
    world.configure(2.001 * S, { calls: perSecond(100, { ...limit, adaptive: { min: 10, max: 100 } }) });
    expect(taken(world, 2.001 * S, 2.89 * S)).toEqual([]);
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
