import { describe, expect, test } from 'vitest';
import { changesInWords, fillingUs, overlaid } from '../../../src/core/limits/configuration.ts';
import { type LimitOptions, type Limits, parseLimit, parseLimits } from '../../../src/core/limits/limit.ts';
import { perDay, perHour, perMinute, perSecond, type RateLimit } from '../../../src/core/limits/rate.ts';
import { limitInWords } from '../../../src/core/limits/words.ts';

const SECOND = 1_000_000;

describe('overlaid', () => {
  const code = parseLimits({ calls: perSecond(100), shop: perSecond(2, { by: 'shop' }), day: perDay(50) });
  const named = (limits: Limits) =>
    (limits as readonly RateLimit[]).map(({ name, burst }) => `${name} ${burst}`);

  test('replaces limits of the same name where they stand, and adds the others at the end', () => {
    const over = parseLimits({ hour: perHour(9, { burst: 9 }), shop: perSecond(3, { burst: 3 }) });
    expect(named(overlaid(code, over))).toEqual(['calls 100', 'shop 3', 'day 1', 'hour 9']);
  });

  test('of nothing, or over nothing, is the other', () => {
    expect(overlaid(code, [])).toEqual(code);
    expect(overlaid([], code)).toEqual(code);
  });

  test('changes neither, and cannot be changed', () => {
    const before = [...code];
    const result = overlaid(code, parseLimits({ calls: perSecond(1) }));
    expect(code).toEqual(before);
    expect(Object.isFrozen(result)).toBe(true);
  });

  test('twice is once: an operator who sets a limit again replaces what it set', () => {
    const over = parseLimits({ calls: perSecond(5), hour: perHour(9) });
    expect(overlaid(overlaid(code, over), over)).toEqual(overlaid(code, over));
  });
});

describe('a limit in words', () => {
  test.for<[LimitOptions, string]>([
    [perSecond(100, { burst: 20 }), '100 per second, burst 20'],
    [perMinute(0.5, { burst: 3, by: 'shop' }), '0.5 per minute, burst 3, for each shop'],
    [perHour(7), '7 per hour, burst 1'],
    [perDay(7), '7 per day, burst 1'],
    [{ rate: 3, periodMs: 2_500, burst: 2 }, '3 per 2500 ms, burst 2'],
    [perSecond(10, { strict: true, oversize: 'debt' }), '10 per second, burst 1, strict, oversize debt'],
    [
      perSecond(10, { burst: 9, adaptive: { min: 5, max: 20, target: { latencyMs: 300 } } }),
      '10 per second, burst 9, adaptive (min 5, max 20, target (latencyMs 300), mode aimd)',
    ],
    [
      perSecond(120, { burst: 9, by: 'tenant', fair: true, weights: { a: 3 } }),
      '120 per second, burst 9, fair, weights (a 3), for each tenant',
    ],
    [{ kind: 'window', max: 50, windowMs: 86_400_000 }, '50 per day, fixed window'],
    [{ kind: 'window', max: 50, windowMs: 3_600_000, aligned: true }, '50 per hour, fixed window, aligned'],
    [
      { kind: 'window', max: 50, windowMs: 60_000, mode: 'sliding', cells: 6 },
      '50 per minute, sliding window, cells 6',
    ],
    [{ kind: 'concurrency', max: 20, by: 'db' }, '20 at once, leaseMs 30000, for each db'],
  ])('%j is "%s"', ([options, words]) => {
    expect(limitInWords(parseLimit('calls', options))).toBe(words);
  });
});

describe('changes in words', () => {
  const before = parseLimits({ calls: perSecond(100), shop: perSecond(2, { by: 'shop' }) });

  test('have a line for each limit that is another, new or gone', () => {
    const after = parseLimits({ calls: perSecond(200, { burst: 100 }), day: perDay(50, { burst: 50 }) });
    expect(changesInWords('code', before, after)).toEqual([
      'calls (code): 100 per second, burst 100 → 200 per second, burst 100',
      'shop (code): 2 per second, burst 2, for each shop → none',
      'day (code): none → 50 per day, burst 50',
    ]);
  });

  test('are empty where nothing changed', () => {
    expect(changesInWords('operator', before, before)).toEqual([]);
    expect(changesInWords('operator', [], [])).toEqual([]);
  });

  test('say so where nobody can tell what was there', () => {
    expect(changesInWords('code', undefined, before.slice(0, 1))).toEqual([
      'calls (code): unreadable → 100 per second, burst 100',
    ]);
  });
});

describe('the time in which buckets fill', () => {
  const filling = (limits: Record<string, LimitOptions>) =>
    fillingUs(Object.entries(limits).map(([name, options]) => parseLimit(name, options)));

  test.for<[string, LimitOptions, number]>([
    ['a rate', perSecond(10, { burst: 5 }), SECOND / 2],
    ['a rate that does not divide', perSecond(3, { burst: 1 }), 333_334],
    ['a strict rate', perSecond(10, { burst: 2, strict: true }), SECOND / 4],
    ['a rate that adapts', perSecond(10, { burst: 5, adaptive: { min: 5, max: 20 } }), SECOND],
    ['a rate with a penalty', perSecond(10, { burst: 5, penalty: { afterMs: 1_000, forMs: 1_000 } }), SECOND],
    ['a window', { kind: 'window', max: 5, windowMs: 60_000 }, 60 * SECOND],
    ['slots', { kind: 'concurrency', max: 5, leaseMs: 30_000 }, 30 * SECOND],
  ])('of %s', ([, options, us]) => expect(filling({ limit: options })).toBe(us));

  test('of several is the longest', () => {
    expect(filling({ a: perSecond(10, { burst: 5 }), b: perHour(1), c: perSecond(1) })).toBe(3_600 * SECOND);
  });
});
