import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { MAX_DEBT_UNITS } from '../../../../src/core/buckets/constants.ts';
import { ceilDiv } from '../../../../src/core/buckets/exact.ts';
import type { Moment } from '../../../../src/core/buckets/moment.ts';
import type { Pauses } from '../../../../src/core/buckets/pause.ts';
import {
  commit,
  fullAtUs,
  horizonUs,
  refund,
  remainingTokens,
  waitUs,
  withinHorizon,
} from '../../../../src/core/buckets/rate/debt.ts';
import { drained } from '../../../../src/core/buckets/rate/drain.ts';
import type { RateState } from '../../../../src/core/buckets/rate/index.ts';
import { blank } from '../../../../src/core/buckets/rate/state.ts';
import { perDay, perHour, perSecond, type RateLimit } from '../../../../src/core/limits/rate.ts';
import { wideRates as limits } from '../../../support/property-limits.ts';
import { limitOf, momentAt, S } from '../../../support/world.ts';

// Ten a second, four at once: a token is 100,000 units, one unit drains per microsecond.
const TEN = limitOf(perSecond(10, { burst: 4 }));
const TOKEN = 100_000;
const NORMAL = 1;
const NO_PAUSE: Pauses = [];

const bucket = (debt: number, atUs: number, limit: RateLimit = TEN): RateState => ({
  ...blank(limit, momentAt(atUs)),
  debt,
});

describe('drained', () => {
  it.each([
    // debt, at, now, debt then
    [3 * TOKEN, 5 * S, 5 * S, 3 * TOKEN],
    [3 * TOKEN, 5 * S, 5 * S + 1, 3 * TOKEN - 1],
    [3 * TOKEN, 5 * S, 5 * S + 100_000, 2 * TOKEN],
    [3 * TOKEN, 5 * S, 5 * S + 299_999, 1],
    [3 * TOKEN, 5 * S, 5 * S + 300_000, 0],
    [3 * TOKEN, 5 * S, 5 * S + 300_001, 0],
    // Decades of idleness: nothing is multiplied by the time that has passed.
    [3 * TOKEN, 5 * S, 2_000_000_000 * S, 0],
    [0, 5 * S, 6 * S, 0],
  ])('owes, of %d at %d, at %d: %d', (debt, atUs, nowUs, then) => {
    expect(drained(bucket(debt, atUs), TEN, momentAt(nowUs))).toMatchObject({ debt: then, atUs: nowUs });
  });

  it('does not change the bucket it is given', () => {
    const before = bucket(TOKEN, 5 * S);
    drained(before, TEN, momentAt(6 * S));
    expect(before).toEqual(bucket(TOKEN, 5 * S));
  });

  // https://github.com/tikv/pd/issues/10745, https://github.com/tikv/pd/issues/8435: elapsed time was counted twice.
  it.each([1, 999_999, 1_000_000])('lets time stand still while the clock is %d µs behind', (behindUs) => {
    const before = bucket(TOKEN, 5 * S);
    expect(drained(before, TEN, momentAt(5 * S - behindUs))).toEqual(before);
    // Caught up, it has drained what passed since, once.
    expect(drained(before, TEN, momentAt(5 * S + 10)).debt).toBe(TOKEN - 10);
  });

  it('adopts a clock that is further behind, and keeps debt and line', () => {
    const before = { ...bucket(TOKEN, 5 * S), lineUs: 9 * S };
    expect(drained(before, TEN, momentAt(4 * S - 1))).toEqual({
      ...before,
      atUs: 4 * S - 1,
      lineUs: 8 * S - 1,
    });
  });

  it('drains at the rate of the last grant, and converts what is left when the limit has changed', () => {
    const slower = limitOf(perSecond(1, { burst: 4 }));
    // 2.5 tokens after half a token has drained at the old rate, in units of the new limit. Rounded up by a unit or two.
    const { debt, terms } = drained(bucket(3 * TOKEN, 5 * S), slower, momentAt(5 * S + 50_000));
    expect(terms).toMatchObject({ rate: 1, periodUs: 1_000_000 });
    expect(debt).toBeGreaterThanOrEqual(2_500_000);
    expect(debt).toBeLessThanOrEqual(2_500_002);
    expect(drained(bucket(3 * TOKEN, 5 * S), slower, momentAt(5 * S)).debt).toBe(3_000_000);
  });

  it('never loses debt when a limit changes, nor adds more than two units', () => {
    fc.assert(
      fc.property(limits, limits, fc.maxSafeInteger(), ([from], [to], drawn) => {
        const debt = Math.abs(drawn) % MAX_DEBT_UNITS;
        const after = drained(bucket(debt, S, from!), to!, momentAt(S)).debt;
        const exact = BigInt(debt) * BigInt(to!.periodUs);
        const over = BigInt(after) * BigInt(from!.periodUs) - exact;
        if (after === MAX_DEBT_UNITS) return; // The most a bucket can owe: more than a century of work.
        expect(over >= 0n && over <= 2n * BigInt(from!.periodUs)).toBe(true);
      }),
      { numRuns: 5_000 },
    );
  });
});

describe('waitUs', () => {
  it.each([
    // debt, cost, wait
    [0, 1, 0],
    [0, 4, 0],
    [1, 4, 1],
    [3 * TOKEN, 1, 0],
    [3 * TOKEN + 1, 1, 1],
    [4 * TOKEN, 1, 100_000],
    [4 * TOKEN, 4, 400_000],
    [104 * TOKEN, 1, 10_100_000],
  ])('with a debt of %d, for a cost of %d: %d µs', (debt, cost, wait) => {
    expect(waitUs(bucket(debt, S), TEN, cost, NORMAL, NO_PAUSE)).toBe(wait);
  });

  // https://github.com/resilience4j/resilience4j/issues/822: rounded down, concurrent reservations let more through.
  it('is rounded up where a microsecond drains more than one unit', () => {
    const seven = limitOf({ rate: 7, periodMs: 0.001, burst: 1 });
    expect(seven).toMatchObject({ rate: 7, periodUs: 1 });
    expect(waitUs(bucket(1, S, seven), seven, 1, NORMAL, NO_PAUSE)).toBe(1);
  });
});

describe('commit', () => {
  it.each([
    // debt, ahead, cost, debt then
    [0, 0, 1, TOKEN],
    [3 * TOKEN, 0, 1, 4 * TOKEN],
    [4 * TOKEN, 100_000, 1, 5 * TOKEN],
    // Idle until the start: moved forward to it, or the half second before would be used twice.
    [0, 500_000, 1, 6 * TOKEN],
    [2 * TOKEN, 500_000, 2, 7 * TOKEN],
  ])('with a debt of %d, starting %d µs ahead, for a cost of %d: owes %d', (debt, aheadUs, cost, then) => {
    const charged = bucket(debt, S);
    commit(charged, TEN, aheadUs, cost);
    expect(charged).toMatchObject({ debt: then, granted: cost, atUs: S });
  });
});

describe('refund', () => {
  it('undoes the last grant whole, with what it moved the bucket forward', () => {
    const charged = bucket(2 * TOKEN, S);
    const pushedUnits = commit(charged, TEN, 500_000, 2);
    expect(refund(charged, TEN, 2, 2, pushedUnits, NO_PAUSE)).toBe(true);
    // But for the latest start that was ever promised: nothing is given back by `settle` before it.
    expect(charged).toEqual({ ...bucket(2 * TOKEN, S), lastUs: 1.5 * S });
  });

  it('gives nothing back once something was granted since', () => {
    const charged = bucket(0, S);
    commit(charged, TEN, 0, 2);
    commit(charged, TEN, 0, 1);
    const before = { ...charged };
    expect(refund(charged, TEN, 2, 2, 0, NO_PAUSE)).toBe(false);
    expect(charged).toEqual(before);
  });

  it('gives back a batch whole, newest first', () => {
    const charged = bucket(0, S);
    const pushed = [1, 2, 3].map((cost) => commit(charged, TEN, cost * 1_000_000, cost));
    expect([
      refund(charged, TEN, 6, 3, pushed[2]!, NO_PAUSE),
      refund(charged, TEN, 3, 2, pushed[1]!, NO_PAUSE),
      refund(charged, TEN, 1, 1, pushed[0]!, NO_PAUSE),
    ]).toEqual([true, true, true]);
    expect(charged).toEqual({ ...bucket(0, S), lastUs: 4 * S });
  });
});

describe('what a bucket holds', () => {
  const unwritten = (at: Moment) => drained(blank(TEN, at), TEN, at);

  it.each([
    [0, 4],
    [1, 3],
    [TOKEN, 3],
    [TOKEN + 1, 2],
    [4 * TOKEN, 0],
    // More than its size is promised ahead: none, never less than none.
    [40 * TOKEN, 0],
  ])('with a debt of %d: %d tokens', (debt, tokens) => {
    expect(remainingTokens(bucket(debt, S), TEN)).toBe(tokens);
  });

  it('is full when its debt is paid, to the microsecond', () => {
    expect(fullAtUs(bucket(0, S), TEN, NO_PAUSE)).toBe(S);
    expect(fullAtUs(bucket(TOKEN + 1, S), TEN, NO_PAUSE)).toBe(S + 100_001);
    const three = limitOf({ rate: 3, periodMs: 0.001, burst: 1 });
    expect(fullAtUs(bucket(4, S, three), three, NO_PAUSE)).toBe(S + 2);
  });

  it('is all of it without state, or nothing at a cold start', () => {
    expect(remainingTokens(unwritten(momentAt(9 * S)), TEN)).toBe(4);
    expect(remainingTokens(unwritten(momentAt(9 * S, 9 * S)), TEN)).toBe(0);
    expect(remainingTokens(unwritten(momentAt(9 * S, 9 * S - 250_000)), TEN)).toBe(2);
    expect(remainingTokens(unwritten(momentAt(9 * S, 1 * S)), TEN)).toBe(4);
  });

  it('is less than nothing before a cold start that lies ahead: it begins to fill then, and not before', () => {
    const cold = (nowUs: number) => unwritten(momentAt(nowUs, 9 * S));
    expect(waitUs(cold(7 * S), TEN, 1, NORMAL, NO_PAUSE)).toBe(2 * S + 100_000);
    expect(waitUs(cold(9 * S), TEN, 1, NORMAL, NO_PAUSE)).toBe(100_000);
    expect(waitUs(cold(9 * S + 100_000), TEN, 1, NORMAL, NO_PAUSE)).toBe(0);
    // Further ahead than a debt can say, it is the most that one can.
    expect(blank(limitOf(perSecond(30_000_000)), momentAt(1, 2 ** 52)).debt).toBe(MAX_DEBT_UNITS);
  });
});

describe('withinHorizon', () => {
  it('is the last microsecond and the last unit that stay exact', () => {
    const edge = horizonUs(TEN.rate, TOKEN);
    expect(withinHorizon(bucket(0, S), TEN, edge, 1)).toBe(true);
    expect(withinHorizon(bucket(0, S), TEN, edge + 1, 1)).toBe(false);
    expect(withinHorizon(bucket(MAX_DEBT_UNITS - TOKEN, S), TEN, 0, 1)).toBe(true);
    expect(withinHorizon(bucket(MAX_DEBT_UNITS - TOKEN + 1, S), TEN, 0, 1)).toBe(false);
    const charged = bucket(0, S);
    commit(charged, TEN, edge, 1);
    expect(charged.debt).toBe(MAX_DEBT_UNITS);
  });
});

describe('rates that no float holds', () => {
  const RATES: [string, RateLimit][] = [
    ['1 an hour', limitOf(perHour(1, { burst: 3 }))],
    ['1 in 3 seconds', limitOf({ rate: 1, periodMs: 3_000, burst: 3 })],
    ['a third of a token a second', limitOf({ rate: 1_000, periodMs: 3_000_000, burst: 3 })],
    ['3 a second', limitOf(perSecond(3, { burst: 3 }))],
    ['7 a minute', limitOf({ rate: 7, periodMs: 60_000, burst: 3 })],
    ['33.333 a second', limitOf(perSecond(33.333, { burst: 3 }))],
    ['99,991 a day', limitOf(perDay(99_991, { burst: 3 }))],
    ['999,983 a second', limitOf(perSecond(999_983, { burst: 9 }))],
    ['1,000,000 a second', limitOf(perSecond(1_000_000, { burst: 9 }))],
    ['7,777,777 a second', limitOf(perSecond(7_777_777, { burst: 99 }))],
  ];

  // https://github.com/redis/redis/pull/14826 (its review): a retry time that was rounded down made callers spin.
  it.each(RATES)(
    '%s: a retry exactly at the wait succeeds, and a microsecond earlier does not',
    (_, limit) => {
      for (const cost of [1, 2, limit.burst]) {
        const empty = bucket(limit.burst * limit.periodUs, S, limit);
        const wait = waitUs(empty, limit, cost, NORMAL, NO_PAUSE);
        expect(wait).toBeGreaterThan(0);
        expect(waitUs(drained(empty, limit, momentAt(S + wait)), limit, cost, NORMAL, NO_PAUSE)).toBe(0);
        expect(waitUs(drained(empty, limit, momentAt(S + wait - 1)), limit, cost, NORMAL, NO_PAUSE)).toBe(1);
      }
    },
  );

  // https://github.com/Losant/redis-gcra/issues/3: rates that do not divide their period gained or lost tokens.
  it.each(RATES)('%s: delivers floor(rate × time) besides the burst, however long', (name, limit) => {
    const stepUs = Math.max(1, Math.floor(limit.periodUs / limit.rate / 3));
    const steps = ['1 an hour', '1 in 3 seconds', '1,000,000 a second'].includes(name) ? 1_000_000 : 100_000;
    let state = bucket(0, S, limit);
    let delivered = 0;
    for (let step = 0; step <= steps; step++) {
      state = drained(state, limit, momentAt(S + step * stepUs));
      for (; waitUs(state, limit, 1, NORMAL, NO_PAUSE) === 0; delivered++) commit(state, limit, 0, 1);
    }
    const exact = (BigInt(limit.rate) * BigInt(steps * stepUs)) / BigInt(limit.periodUs);
    expect(delivered - limit.burst).toBe(Number(exact));
  });

  it.each(RATES)('%s: the n-th of many waits ends at ceil(n × period / rate), without drift', (_, limit) => {
    const state = bucket(limit.burst * limit.periodUs, S, limit);
    const count = Math.min(100_000, Math.floor(MAX_DEBT_UNITS / limit.periodUs) - limit.burst);
    for (let n = 1; n <= count; n++) {
      const wait = waitUs(state, limit, 1, NORMAL, NO_PAUSE);
      const exact = (BigInt(n) * BigInt(limit.periodUs) + BigInt(limit.rate) - 1n) / BigInt(limit.rate);
      if (BigInt(wait) !== exact) expect({ n, wait }).toEqual({ n, wait: Number(exact) });
      commit(state, limit, wait, 1);
    }
  });
});

describe('ceilDiv', () => {
  const whole = (min: number) =>
    fc.oneof(
      fc.integer({ min, max: 1_000 }),
      fc.maxSafeNat().filter((n) => n >= min),
      fc
        .tuple(fc.integer({ min: 0, max: 52 }), fc.constantFrom(-1, 0, 1))
        .map(([power, off]) => Math.max(min, 2 ** power + off)),
    );

  it('is the exact quotient, rounded up, over the whole range', () => {
    fc.assert(
      fc.property(whole(0), whole(1), (a, b) => {
        expect(ceilDiv(a, b)).toBe(Number((BigInt(a) + BigInt(b) - 1n) / BigInt(b)));
      }),
      { numRuns: 50_000 },
    );
  });

  it('is exact next to multiples, where a rounded quotient would show', () => {
    fc.assert(
      fc.property(whole(1), whole(1), fc.constantFrom(-1, 0, 1), (b, drawn, off) => {
        const times = drawn % Math.max(1, Math.floor(Number.MAX_SAFE_INTEGER / b));
        const a = Math.max(0, times * b + off);
        fc.pre(Number.isSafeInteger(a));
        expect(ceilDiv(a, b)).toBe(Number((BigInt(a) + BigInt(b) - 1n) / BigInt(b)));
      }),
      { numRuns: 50_000 },
    );
  });
});
