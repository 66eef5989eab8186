import { describe, expect, it } from 'vitest';
import { nearestName } from '../../../src/core/checks.ts';
import { InvalidOptionError } from '../../../src/core/errors.ts';
import { parseGovernorOptions } from '../../../src/core/limits/governor-options.ts';
import { perSecond } from '../../../src/core/limits/rate.ts';
import { createGovernor } from '../../../src/index.ts';

const VALID = { name: 'shop-api', limits: { calls: perSecond(100) } };

function refused(options: unknown): InvalidOptionError {
  try {
    parseGovernorOptions(options);
  } catch (error) {
    expect(error).toBeInstanceOf(InvalidOptionError);
    return error as InvalidOptionError;
  }
  throw new Error('was accepted');
}

describe('the options of a governor', () => {
  it('have defaults, and are checked once and frozen', () => {
    const config = parseGovernorOptions(VALID);
    expect(config).toMatchObject({ name: 'shop-api', coldStart: 'full', maxWaiters: 10_000, graceMs: 100 });
    expect(Object.isFrozen(config)).toBe(true);
    expect(parseGovernorOptions({ ...VALID, graceMs: undefined, coldStart: undefined })).toEqual(config);
  });

  it('may be at the edges of their ranges', () => {
    for (const [maxWaiters, graceMs, name] of [
      [1, 10, 'x'],
      [1_000_000, 60_000, 'x'.repeat(100)],
    ]) {
      expect(parseGovernorOptions({ ...VALID, maxWaiters, graceMs, name })).toMatchObject({
        maxWaiters,
        graceMs,
      });
    }
  });

  it.each([
    [{ name: undefined }, 'name', '1 to 100 characters without spaces, control characters, colons or braces'],
    [{ name: '' }, 'name', '1 to 100 characters'],
    [{ name: 'x'.repeat(101) }, 'name', '1 to 100 characters'],
    [{ name: 'a b' }, 'name', 'without spaces'],
    // In a cluster a brace would change which part of the keys decides where they live.
    [{ name: 'a}b' }, 'name', 'braces'],
    [{ name: 'a:b' }, 'name', 'colons'],
    [{ name: 5 }, 'name', '1 to 100 characters'],
    [{ limits: undefined }, 'limits', 'a plain object'],
    [{ coldStart: 'half' }, 'coldStart', "'full', 'empty'"],
    [{ coldStart: true }, 'coldStart', "'full', 'empty'"],
    [{ maxWaiters: 0 }, 'maxWaiters', 'a whole number from 1 to 1000000'],
    [{ maxWaiters: Number.POSITIVE_INFINITY }, 'maxWaiters', 'a whole number'],
    [{ maxWaiters: '10' }, 'maxWaiters', 'a whole number'],
    [{ graceMs: 9 }, 'graceMs', 'milliseconds, from 10 to 60000'],
    [{ graceMs: Number.NaN }, 'graceMs', 'milliseconds, from 10 to 60000'],
    [{ graceMs: null }, 'graceMs', 'milliseconds, from 10 to 60000'],
  ])('%j is refused at %s', (wrong, option, expected) => {
    const error = refused({ ...VALID, ...wrong });
    expect(error.option).toBe(option);
    expect(error.expected).toContain(expected);
  });

  it('that are not known are refused, and the nearest named', () => {
    expect(refused({ ...VALID, limit: {} })).toMatchObject({ option: 'limit' });
    expect(refused({ ...VALID, limit: {} }).message).toContain('did you mean "limits"?');
    expect(refused({ ...VALID, maxWaiter: 5 }).message).toContain('did you mean "maxWaiters"?');
    expect(refused({ ...VALID, coldstart: 'empty' }).message).toContain('did you mean "coldStart"?');
    // The store's own option is not known where there is no store to take it.
    expect(refused({ ...VALID, connection: {} }).option).toBe('connection');
  });

  it.each([undefined, null, 'shop-api', [VALID], new Map()])('must be a plain object, not %s', (options) => {
    expect(refused(options).option).toBe('options');
  });

  it('are checked by createGovernor in the same way', () => {
    expect(() => createGovernor({ ...VALID, name: 'a b' })).toThrow(InvalidOptionError);
    expect(() => createGovernor({ ...VALID, grace: 5 } as never)).toThrow('did you mean "graceMs"?');
  });
});

describe('the nearest name', () => {
  const known = ['rate', 'periodMs', 'burst', 'by'];
  it.each([
    ['rat', 'rate'],
    ['RATE', 'rate'],
    ['brust', 'burst'],
    ['period', 'periodMs'],
    ['periodMS', 'periodMs'],
    ['bi', 'by'],
    ['concurrency', undefined],
    ['', 'by'],
  ])('to %j is %s', (name, nearest) => {
    expect(nearestName(name, known)).toBe(nearest);
  });

  it('of nothing is nothing', () => {
    expect(nearestName('rate', [])).toBeUndefined();
  });
});
