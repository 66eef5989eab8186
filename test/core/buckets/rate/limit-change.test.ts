import { describe, expect, it } from 'vitest';
import type { Bucket } from '../../../../src/core/buckets/rate/debt.ts';
import { acquire } from '../../../../src/core/decide/acquire.ts';
import type { Buckets } from '../../../../src/core/decide/buckets.ts';
import { demandsOf } from '../../../../src/core/decide/demands.ts';
import type { LimitOptions, LimitsOptions } from '../../../../src/core/limits/limit.ts';
import { perMinute, perSecond } from '../../../../src/core/limits/rate.ts';
import { AT_ONCE } from '../../../store/support/terms.ts';
import { limitOf, momentAt, NOBODY, noWake, S, ZERO_US } from '../../support/desk.ts';
import { Office, WAITING } from '../../support/office.ts';

/** A limit whose numbers may be changed while its bucket lives, as a store with a newer configuration has it. */
function changeable() {
  const buckets = new Map<string, Bucket>() as Map<string, Bucket> & Buckets;
  let version = 0;
  let inForce = '';
  return (options: LimitOptions, atUs: number, cost = 1) => {
    if (inForce !== JSON.stringify(options)) version += 1;
    inForce = JSON.stringify(options);
    const demands = demandsOf([limitOf(options)], cost, undefined);
    return acquire(buckets, demands, NOBODY, AT_ONCE, momentAt(ZERO_US + atUs, 0, version), noWake);
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
  function changed(rate: number): Office {
    const office = new Office(at(10));
    for (let n = 0; n < 101; n++) office.ask(0, WAITING);
    office.change(at(rate), 0);
    return office;
  }

  it.each([
    [20, 0.55],
    [100, 0.11],
    [5, 2.2],
  ])('is taken back as of the change (to %i/s), however late and often somebody looks', (rate, waitS) => {
    const office = changed(rate);
    for (const part of [0, 0.25, 0.5, 0.9, 1]) {
      const atUs = Math.round(waitS * part * S);
      expect(office.views(atUs)[0]!.waitUs).toBe(waitS * S - atUs);
      expect(office.copy().ask(atUs).granted).toBe(part === 1);
    }
  });

  it('drains at the rate of each limit for as long as that was in force', () => {
    const office = new Office(at(10));
    for (let n = 0; n < 100; n++) office.force(0);
    office.change(at(1), 5 * S);
    // A hundred were owed, and fifty of them had drained by then.
    expect(office.views(15 * S)[0]!.waitUs).toBe(40 * S);
    expect(office.copy().ask(55 * S - 1).granted).toBe(false);
    expect(office.copy().ask(55 * S).granted).toBe(true);
  });

  it.each([
    ['a change', (office: Office, limits: LimitsOptions) => office.change(limits, 3.5 * S)],
    [
      'a pause that is ended at once',
      (office: Office) => {
        office.pause(3.5 * S - 1, 60 * S);
        office.resume(3.5 * S);
      },
    ],
  ])('leaves a cost above the burst owed that has started before %s', (_, happens) => {
    const limits = { calls: perSecond(100, { burst: 100, oversize: 'debt' as const }) };
    const office = new Office(limits);
    const starts = [100, 100, 5_000, 5_000, 5_000].map(
      (cost) => office.ask(0, { ...WAITING, cost }).waitUs / S,
    );
    expect(starts).toEqual([0, 1, 2, 52, 102]);
    happens(office, limits);
    // Of the 5,000 at 2 s, 4,850 are owed. Not less: those at 52 s and 102 s start no more, and yet may be owed still.
    expect(office.views(3.5 * S)[0]!.waitUs).toBeGreaterThanOrEqual(48.5 * S);
    expect(office.ask(51 * S, { cost: 100 }).granted).toBe(false);
  });

  it('leaves what was settled on top owed', () => {
    const office = new Office(at(100));
    const receipts = [];
    // A steady queue: something is always promised more than a second ahead.
    for (let us = 0; us < 20 * S; us += 0.01 * S) {
      const verdict = office.ask(us, us === 0 ? WAITING : { ...WAITING, cost: 1 });
      if (verdict.granted) receipts.push(verdict.receipt);
      if (us === 0) for (let n = 0; n < 300; n++) office.ask(us, WAITING);
    }
    office.settle(20 * S, receipts[0]!, 5_001);
    const before = office.views(20 * S)[0]!.waitUs;
    expect(before).toBeGreaterThan(50 * S);
    office.change({ ...at(100), other: perSecond(5) }, 20 * S);
    expect(office.views(20 * S)[0]!.waitUs).toBeGreaterThan(50 * S);
    expect(office.views(20 * S)[0]!.waitUs).toBeLessThan(before);
  });
});
