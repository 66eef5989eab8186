import { describe, expect, it } from 'vitest';
import { horizonUs } from '../../../src/core/buckets/rate/debt.ts';
import { InvalidOptionError } from '../../../src/core/errors.ts';
import { parseLimits } from '../../../src/core/limits/limit.ts';
import { perDay, perHour, perMinute, perSecond } from '../../../src/core/limits/rate.ts';
import { MAX_CAPACITY_UNITS } from '../../../src/core/limits/rate-units.ts';
import { limitOf } from '../../support/world.ts';

/** The error of a call that must be refused. */
function refused(call: () => unknown): InvalidOptionError {
  try {
    call();
  } catch (error) {
    expect(error).toBeInstanceOf(InvalidOptionError);
    return error as InvalidOptionError;
  }
  throw new Error('was accepted');
}

const exactly = ({ rate, periodUs, burst }: { rate: number; periodUs: number; burst: number }) => [
  rate,
  periodUs,
  burst,
];

describe('a rate', () => {
  it.each([
    // limit, units that drain per microsecond, units of a token, burst by default
    [perSecond(100), [1, 10_000, 100]],
    [perSecond(1_000_000), [1, 1, 1_000_000]],
    [perSecond(3_000_000), [3, 1, 3_000_000]],
    [perSecond(7), [7, 1_000_000, 7]],
    [perMinute(60), [1, 1_000_000, 1]],
    [perMinute(7), [7, 60_000_000, 1]],
    [perMinute(600), [1, 100_000, 10]],
    [perHour(1), [1, 3_600_000_000, 1]],
    [perDay(100), [1, 864_000_000, 1]],
    [perDay(1_000_000), [1, 86_400, 11]],
    [{ rate: 1_000, periodMs: 3_000 }, [1, 3_000, 333]],
    [{ rate: 2, periodMs: 100 }, [1, 50_000, 2]],
    [{ rate: 1, periodMs: 0.001 }, [1, 1, 1]],
  ])('%j is [rate, periodUs, burst] %j in lowest terms', (options, expected) => {
    expect(exactly(limitOf(options))).toEqual(expected);
  });

  // https://github.com/temporalio/temporal/pull/1910: small rates were rounded to whole numbers.
  it.each([
    [perSecond(0.1), [1, 10_000_000, 1]],
    [perSecond(0.3), [3, 10_000_000, 1]],
    [perSecond(0.001), [1, 1_000_000_000, 1]],
    [perSecond(1.1), [11, 10_000_000, 1]],
    [perSecond(33.333), [33_333, 1_000_000_000, 33]],
    [perMinute(0.5), [1, 120_000_000, 1]],
    // What adding floats leaves of 0.3 is the float next to it, and means it.
    [perSecond(0.1 + 0.2), [3, 10_000_000, 1]],
  ])('%j is taken as the decimal that was written: %j', (options, expected) => {
    expect(exactly(limitOf(options))).toEqual(expected);
  });

  it.each([1 / 3, 333.3333, 0.0001, 0.1 + 1e-10, Math.PI])('of %d is refused rather than rounded', (rate) => {
    const { option, expected, received } = refused(() => limitOf(perSecond(rate)));
    expect(option).toBe('limits.calls.rate');
    expect(expected).toContain('at most 3 decimals');
    expect(expected).toContain('1,000 per 3 s rather than 333.33 per s');
    expect(received).toBe(rate);
  });

  it('with so many digits that its bucket would not be exact is refused', () => {
    // 1,003 in a thousand weeks: a token is 6 × 10^14 units, and three of them fit.
    const week = { rate: 1.003, periodMs: 7 * 86_400_000 };
    expect(exactly(limitOf({ ...week, burst: 3 }))).toEqual([1_003, 604_800_000_000_000, 3]);
    expect(refused(() => limitOf({ ...week, burst: 4 })).message).toBe(
      'limits.calls.burst: expected at most 3 with this rate and period, to be exact, received 4',
    );
    // Over a year, not one.
    const year = { rate: 1.001, periodMs: 366 * 86_400_000 };
    expect(refused(() => limitOf(year)).expected).toBe('a rate with fewer digits, which can be kept exactly');
    // Too fast for a reservation a minute ahead to be exact.
    expect(refused(() => limitOf({ rate: 999_999_937, periodMs: 0.001 })).option).toBe('limits.calls.rate');
  });

  it('can be reserved a minute ahead at least, whatever it is', () => {
    for (const options of [perSecond(1e9), { rate: 37_000_000, periodMs: 0.001 }, perDay(0.001)]) {
      const { rate, burst, periodUs } = limitOf(options);
      expect(horizonUs(rate, burst * periodUs)).toBeGreaterThanOrEqual(60_000_000);
    }
  });
});

describe('a burst', () => {
  // https://github.com/AlaskanTuna/Rokabot/issues/149: a bucket of a whole minute's worth let 29 of 15 a minute pass.
  it('is by default one second’s worth at most, and one token at least', () => {
    expect(limitOf(perMinute(15)).burst).toBe(1);
    expect(limitOf(perMinute(150)).burst).toBe(2);
    expect(limitOf(perDay(50_000)).burst).toBe(1);
    expect(limitOf(perSecond(250)).burst).toBe(250);
    // Twenty per tenth of a second is two hundred a second; not more than the rate as it was written, though.
    expect(limitOf({ rate: 20, periodMs: 100 }).burst).toBe(20);
  });

  it('is as large as stays exact', () => {
    const most = Math.floor(MAX_CAPACITY_UNITS / 86_400_000_000);
    expect(limitOf(perDay(1, { burst: most })).burst).toBe(most);
    expect(refused(() => limitOf(perDay(1, { burst: most + 1 }))).expected).toContain(`at most ${most} `);
  });
});

describe('a limit that is not one', () => {
  const rate = 'tokens per period: a number above 0, at most 1000000000, with at most 3 decimals';
  const period = 'milliseconds: a number above 0, at most 31622400000, with at most 3 decimals';
  const burst = 'a whole number from 1 to 9007199254740991';
  const name = 'a name of letters, digits, _ and -, beginning with a letter';
  const by = 'the name of an attribute (letters, digits, _ and -)';

  // https://github.com/OptimalBits/bull/issues/998, https://github.com/taskforcesh/bullmq/issues/667,
  // https://github.com/taskforcesh/bullmq/issues/139: a missing or misplaced option was a hang, or silently no limit.
  // https://github.com/upstash/qstash-js/issues/245: numbers as strings gave an obscure error.
  // https://github.com/brandur/redis-cell/issues/41: a limit of zero crashed the server.
  const refusals: [limits: unknown, option: string, expected: string, received: string][] = [
    [undefined, 'limits', 'a plain object', 'undefined'],
    [[perSecond(1)], 'limits', 'a plain object', '[{"rate":1,"periodMs":1000}]'],
    [{}, 'limits', 'at least one limit', '{}'],
    [{ calls: 5 }, 'limits.calls', 'a plain object', '5'],
    [{ calls: null }, 'limits.calls', 'a plain object', 'null'],
    [{ calls: {} }, 'limits.calls.rate', rate, 'undefined'],
    [{ calls: perSecond(0) }, 'limits.calls.rate', rate, '0'],
    [{ calls: perSecond(-1) }, 'limits.calls.rate', rate, '-1'],
    [{ calls: perSecond(Number.NaN) }, 'limits.calls.rate', rate, 'NaN'],
    [{ calls: perSecond(Number.POSITIVE_INFINITY) }, 'limits.calls.rate', rate, 'Infinity'],
    [{ calls: perSecond(1e9 + 1) }, 'limits.calls.rate', rate, '1000000001'],
    [{ calls: { rate: '100', periodMs: 1_000 } }, 'limits.calls.rate', rate, '"100"'],
    [{ calls: { rate: 100n, periodMs: 1_000 } }, 'limits.calls.rate', rate, '100n'],
    [{ calls: { rate: 1 } }, 'limits.calls.periodMs', period, 'undefined'],
    [{ calls: { rate: 1, periodMs: 0 } }, 'limits.calls.periodMs', period, '0'],
    [{ calls: { rate: 1, periodMs: '1s' } }, 'limits.calls.periodMs', period, '"1s"'],
    [{ calls: { rate: 1, periodMs: 367 * 86_400_000 } }, 'limits.calls.periodMs', period, '31708800000'],
    [{ calls: perSecond(1, { burst: 0 }) }, 'limits.calls.burst', burst, '0'],
    [{ calls: perSecond(1, { burst: 1.5 }) }, 'limits.calls.burst', burst, '1.5'],
    [{ calls: perSecond(1, { burst: Number.NaN }) }, 'limits.calls.burst', burst, 'NaN'],
    [{ calls: { ...perSecond(1), burst: '5' } }, 'limits.calls.burst', burst, '"5"'],
    [{ calls: { ...perSecond(1), burst: null } }, 'limits.calls.burst', burst, 'null'],
    [{ calls: perSecond(1, { by: '' }) }, 'limits.calls.by', by, '""'],
    [{ calls: perSecond(1, { by: 'a:b' }) }, 'limits.calls.by', by, '"a:b"'],
    [{ calls: { ...perSecond(1), by: ['shop'] } }, 'limits.calls.by', by, '["shop"]'],
    [{ calls: { ...perSecond(1), kind: 'gauge' } }, 'limits.calls.kind', "'rate'", '"gauge"'],
    [{ '': perSecond(1) }, 'limits.', name, '""'],
    [{ 'a b': perSecond(1) }, 'limits.a b', name, '"a b"'],
    [{ 'a:b': perSecond(1) }, 'limits.a:b', name, '"a:b"'],
    [{ '1st': perSecond(1) }, 'limits.1st', name, '"1st"'],
    [{ é: perSecond(1) }, 'limits.é', name, '"é"'],
  ];
  for (const [limits, option, expected, received] of refusals) {
    it(`at ${option}, received ${received}, is refused with what it must be`, () => {
      const error = refused(() => parseLimits(limits));
      expect(error.option).toBe(option);
      expect(error.message.startsWith(`${option}: expected ${expected}`)).toBe(true);
      expect(error.message.endsWith(`, received ${received}`)).toBe(true);
    });
  }

  it.each([
    [{ rate: 1, periodMs: 1_000, bursts: 5 }, 'bursts', 'burst'],
    [{ rate: 1, periodms: 1_000 }, 'periodms', 'periodMs'],
    [{ rat: 1, periodMs: 1_000 }, 'rat', 'rate'],
    [{ rate: 1, periodMs: 1_000, key: 'shop' }, 'key', undefined],
    [{ max: 10, duration: 1_000 }, 'max', undefined],
  ])('%j has a name that is not known: %s; the nearest is %s', (options, unknown, near) => {
    const error = refused(() => parseLimits({ calls: options }));
    expect(error.option).toBe(`limits.calls.${unknown}`);
    if (near !== undefined) expect(error.expected).toContain(`did you mean "${near}"?`);
  });
});

it('keeps limits in the order in which they were declared, and frozen', () => {
  const limits = parseLimits({ z: perSecond(1), a: perHour(1, { by: 'shop' }), m: perDay(1) });
  expect(limits.map(({ name, by }) => [name, by])).toEqual([
    ['z', null],
    ['a', 'shop'],
    ['m', null],
  ]);
  expect(Object.isFrozen(limits) && limits.every(Object.isFrozen)).toBe(true);
});
