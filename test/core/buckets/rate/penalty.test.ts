import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { RateState } from '../../../../src/core/buckets/rate/index.ts';
import { perSecond, type RateLimit } from '../../../../src/core/limits/rate.ts';
import { excess } from '../../../support/ledger.ts';
import { runs } from '../../../support/runs.ts';
import { S, World, ZERO_US } from '../../../support/world.ts';

const numRuns = runs(1_000);
const limits = {
  calls: perSecond(10, { burst: 10, penalty: { afterMs: 5_000, share: 0.2, forMs: 10_000 } }),
};

/** Asks every so often from one time to another. @returns how many pass. */
function asks(world: World, fromUs: number, toUs: number, everyUs: number, cost = 1): number {
  let passed = 0;
  for (let atUs = fromUs; atUs < toUs; atUs += everyUs) if (world.allows(atUs, { cost })) passed += 1;
  return passed;
}

describe('a penalty', () => {
  it('begins when a bucket was over its limit for long, and ends by itself', () => {
    const world = new World(limits);
    // Twice the rate: over it from the moment on at which the burst is used up, after a second.
    expect(asks(world, 0, 5.9 * S, S / 20)).toBe(10 + 58);
    asks(world, 5.9 * S, 7 * S, S / 20);
    expect(asks(world, 7 * S, 15 * S, S / 20)).toBe(2 * 8);
    // Whoever stays within the limit again after it is left alone.
    expect(asks(world, 20 * S, 40 * S, S / 10)).toBe(20 * 10);
  });

  it('begins anew if the bucket is still over its limit', () => {
    const world = new World(limits);
    asks(world, 0, 60 * S, S / 20);
    expect(asks(world, 60 * S, 120 * S, S / 20)).toBeLessThan(10 * 60 * 0.65);
  });

  it('is not for a bucket that is refused now and then', () => {
    const world = new World(limits);
    let passed = 0;
    // Half of the rate, evenly, and once in 4 s a request for all of the burst, which does not pass.
    for (let tick = 0; tick < 300; tick++) {
      if (world.allows(tick * 200_000)) passed += 1;
      if (tick % 20 === 19) expect(world.allows(tick * 200_000, { cost: 10 })).toBe(false);
    }
    expect(passed).toBe(300);
    expect(world.views(60 * S)[0]!.state).not.toHaveProperty('penalty');
  });

  it('owes what it owed when it begins after a cancel', () => {
    const penalty = { afterMs: 1_000, share: 0.5, forMs: 2_000 };
    const world = new World({ calls: perSecond(1, { burst: 4, penalty }) });
    expect(world.allows(0, { cost: 4 })).toBe(true);
    expect(world.allows(0)).toBe(false);
    const verdict = world.acquire(0, { cost: 4, maxWaitUs: 10 * S });
    expect(verdict.granted && world.cancel(0, verdict.receipt)).toBe(true);
    // One token has come by now, and half a one will have in another second.
    expect(world.allows(1 * S, { cost: 2 })).toBe(false);
    expect(world.copy().allows(2 * S, { cost: 2 })).toBe(false);
    expect(world.allows(5 * S, { cost: 2 })).toBe(true);
  });

  it('leaves a bucket its share to the unit while it lasts', () => {
    let penalties = 0;
    const gaps = fc.array(fc.integer({ min: 0, max: 200_000 }), {
      minLength: 50,
      maxLength: 200,
      size: 'max',
    });
    fc.assert(
      fc.property(gaps, fc.integer({ min: 1, max: 10 }), (gaps, burst) => {
        const world = new World({
          calls: perSecond(10, { burst, penalty: { afterMs: 1_000, share: 0.3, forMs: 3_000 } }),
        });
        const { rate, periodUs } = world.limits[0] as RateLimit;
        const starts: { atUs: number; cost: number; until: number }[] = [];
        let nowUs = 0;
        for (const gap of gaps) {
          nowUs += gap;
          const granted = world.allows(nowUs);
          const { penalty } = world.views(nowUs)[0]!.state as RateState;
          const until = Math.max(0, (penalty?.untilUs ?? 0) - ZERO_US);
          if (granted) starts.push({ atUs: nowUs, cost: 1, until: until > nowUs ? until : 0 });
        }
        for (const until of new Set(starts.map((start) => start.until))) {
          if (until === 0) continue;
          penalties += 1;
          const within = starts.filter((start) => start.until === until);
          const slow = BigInt(Math.floor((rate * 300) / 1_000));
          expect(excess(within, slow, BigInt(periodUs), BigInt(burst)).worst! <= 0n).toBe(true);
        }
        expect(excess(starts, BigInt(rate), BigInt(periodUs), BigInt(burst)).worst! <= 0n).toBe(true);
      }),
      { numRuns },
    );
    expect(penalties).toBeGreaterThan(numRuns / 4);
  });
});

describe('the end of a penalty', () => {
  const limits = {
    calls: perSecond(100, { burst: 10, penalty: { afterMs: 1_000, share: 0.5, forMs: 60_000 } }),
  };
  const stored = (world: World) => world.stored({ kind: 'rate', bucket: 'calls' }) as RateState;

  /** Over its limit until it is punished; when that ends. */
  function punished(world: World): number {
    for (let us = 0; us < 4 * S; us += 1_000) {
      while (world.allows(us));
      const { penalty } = stored(world);
      if (penalty !== undefined && penalty.untilUs > 0) return penalty.untilUs - ZERO_US;
    }
    throw new Error('it is not punished');
  }

  it.each([false, true])(
    'gives nobody the time that was promised in it (limits changed: %s)',
    (isChanged) => {
      const world = new World(limits);
      const us = punished(world) - 2_000;
      let lastUs = 0;
      const reserves = () => {
        const { granted, waitUs } = world.acquire(us, { cost: 10, maxWaitUs: 995_000 });
        if (granted) lastUs = us + waitUs;
        return granted;
      };
      while (reserves());
      expect(lastUs).toBeGreaterThan(us + 500_000);
      if (isChanged) world.configure(us + 1_000, limits);
      expect(world.atMost(lastUs, 1_000)).toBe(0);
    },
  );

  it('is minded by who only asks: the rate is the whole from then on', () => {
    const world = new World(limits);
    const endUs = punished(world);
    for (let n = 0; n < 20; n++) world.force(endUs - S, { cost: 10 });
    // Owed were 210 and what else there was; half a second's worth has drained at half the rate.
    const { waitUs } = world.copy().acquire(endUs, { cost: 1 });
    expect(world.copy().acquire(endUs + S, { cost: 1 }).waitUs).toBe(waitUs - S);
    expect(world.copy().allows(endUs + waitUs, { cost: 1 })).toBe(true);
    expect(world.copy().allows(endUs + waitUs - 1, { cost: 1 })).toBe(false);
  });

  it('costs no time for what was promised in it and given back', () => {
    const world = new World(limits);
    const us = punished(world) - S;
    const grants = Array.from({ length: 300 }, () =>
      world.acquire(us, { maxWaitUs: Number.MAX_SAFE_INTEGER }),
    );
    for (const verdict of grants.reverse()) if (verdict.granted) world.cancel(us, verdict.receipt);
    expect(world.views(us + 2 * S)[0]!.waitUs).toBe(0);
  });
});
