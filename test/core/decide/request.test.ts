import { describe, expect, it } from 'vitest';
import { type Cost, demandsOf, type Keys } from '../../../src/core/decide/demands.ts';
import { CostExceedsBurstError, InvalidOptionError } from '../../../src/core/errors.ts';
import { parseLimits } from '../../../src/core/limits/limit.ts';
import { perHour, perSecond } from '../../../src/core/limits/rate.ts';
import { S, World } from '../../support/world.ts';

const limits = parseLimits({
  calls: perSecond(100, { burst: 20 }),
  shop: perSecond(2, { burst: 40, by: 'shop' }),
  user: perHour(10, { burst: 30, by: 'user' }),
});

const demands = (cost: unknown, keys?: unknown) =>
  demandsOf(limits, cost as Cost, keys as Keys | undefined).map(({ bucket, cost }) => [bucket, cost]);

function refused(call: () => unknown): Error {
  try {
    call();
  } catch (error) {
    return error as Error;
  }
  throw new Error('was accepted');
}

describe('a cost', () => {
  it('is one number for all limits, in the order of their declaration', () => {
    expect(demands(5, { user: 'u', shop: 'acme' })).toEqual([
      ['calls', 5],
      ['shop:acme', 5],
      ['user:u', 5],
    ]);
  });

  it('is one number per limit by name; 1 where none is given, and left out where it is 0', () => {
    expect(demands({ shop: 7 })).toEqual([
      ['calls', 1],
      ['shop:', 7],
      ['user:', 1],
    ]);
    expect(demands({ calls: 0, shop: 40, user: undefined })).toEqual([
      ['shop:', 40],
      ['user:', 1],
    ]);
  });

  it.each([
    [0, '0'],
    [-1, '-1'],
    [1.5, '1.5'],
    [Number.NaN, 'NaN'],
    [Number.POSITIVE_INFINITY, 'Infinity'],
    [Number.NEGATIVE_INFINITY, '-Infinity'],
    [2 ** 53, '9007199254740992'],
    [1e300, '1e+300'],
  ])('of %d is refused', (cost, received) => {
    const error = refused(() => demands(cost));
    expect(error).toBeInstanceOf(InvalidOptionError);
    expect(error.message).toBe(`cost: expected a whole number of tokens, 1 or more, received ${received}`);
  });

  // https://github.com/upstash/qstash-js/issues/245
  it.each([
    ['5', '"5"'],
    [null, 'null'],
    [undefined, 'undefined'],
    [true, 'true'],
    [5n, '5n'],
    [() => 5, 'a function'],
  ])('that is no number (%s) is refused', (cost, received) => {
    const error = refused(() => demands(cost));
    expect(error).toBeInstanceOf(InvalidOptionError);
    expect(error.message).toBe(
      `cost: expected a whole number of tokens, 1 or more, or an object with one per limit, received ${received}`,
    );
  });

  // An object without names of its own to read would pass for "1 of each".
  it.each([
    [[5], '[5]'],
    [new Map([['calls', 5]]), '{}'],
    [new Number(5), '5'],
  ])('that is another kind of object (%s) is refused', (cost, received) => {
    expect(refused(() => demands(cost)).message).toBe(`cost: expected a plain object, received ${received}`);
  });

  it('that is a promise is refused as one, since the await was forgotten', () => {
    expect(refused(() => demands(Promise.resolve(5))).message).toContain('not a promise of one');
  });

  it.each([
    [{ shop: -1 }, 'shop', '-1'],
    [{ shop: 0.5 }, 'shop', '0.5'],
    [{ shop: '5' }, 'shop', '"5"'],
    [{ calls: Number.NaN }, 'calls', 'NaN'],
    [{ calls: null }, 'calls', 'null'],
  ])('%j names the limit whose cost is none', (cost, limit, received) => {
    expect(refused(() => demands(cost)).message).toBe(
      `cost.${limit}: expected a whole number of tokens, 0 or more, received ${received}`,
    );
  });

  it.each([
    [{ call: 5 }, 'cost.call', 'did you mean "calls"?'],
    [{ Shop: 5 }, 'cost.Shop', 'did you mean "shop"?'],
    [{ somethingElse: 5 }, 'cost.somethingElse', 'calls, shop, user'],
  ])('%j names a limit that is not there: %s (%s)', (cost, option, hint) => {
    const error = refused(() => demands(cost)) as InvalidOptionError;
    expect(error).toBeInstanceOf(InvalidOptionError);
    expect(error.option).toBe(option);
    expect(error.expected).toContain(hint);
  });

  it('of nothing at all is refused', () => {
    expect(refused(() => demands({ calls: 0, shop: 0, user: 0 })).message).toBe(
      'cost: expected at least one limit with a cost above 0, received {"calls":0,"shop":0,"user":0}',
    );
  });

  // https://github.com/go-redis/redis_rate/issues/103: a retry time was given that could never come.
  it('above a burst is an error of its own that names both numbers, not a wait', () => {
    expect(demands(20)).toHaveLength(3);
    const error = refused(() => demands(21)) as CostExceedsBurstError;
    expect(error).toBeInstanceOf(CostExceedsBurstError);
    expect(error).toMatchObject({ limit: 'calls', cost: 21, burst: 20 });
    expect(error.message).toBe('cost 21 exceeds the burst 20 of limit "calls": it can never pass');
    expect(refused(() => demands({ user: 31 }))).toMatchObject({ limit: 'user', cost: 31, burst: 30 });
  });
});

describe('a key', () => {
  it.each([
    ['acme', 'shop:acme'],
    [42, 'shop:42'],
    [0, 'shop:0'],
    ['0', 'shop:0'],
    ['a:b', 'shop:a:b'],
    ['x'.repeat(256), `shop:${'x'.repeat(256)}`],
    ['😀', 'shop:😀'],
    ['NaN', 'shop:NaN'],
    // No value is a bucket of its own, which no value shares.
    [undefined, 'shop:'],
    [null, 'shop:'],
  ])('of value %s has the bucket %s', (shop, bucket) => {
    expect(demands(1, { shop })[1]).toEqual([bucket, 1]);
  });

  it.each([
    ['', '""'],
    ['x'.repeat(257), `"${'x'.repeat(80)}…"`],
    [Number.NaN, 'NaN'],
    [Number.POSITIVE_INFINITY, 'Infinity'],
    // Halves of an emoji: Redis would have both as one key, charged by whichever came last.
    ['\ud83d', String.raw`"\ud83d"`],
    ['acme\ude00', String.raw`"acme\ude00"`],
    [true, 'true'],
    [{ id: 1 }, '{"id":1}'],
    [['acme'], '["acme"]'],
  ])('of value %s is refused', (shop, received) => {
    expect(refused(() => demands(1, { shop })).message).toBe(
      `keys.shop: expected a well-formed string of 1 to 256 characters or a finite number, received ${received}`,
    );
  });

  it.each([
    ['acme', '"acme"'],
    [['acme'], '["acme"]'],
    [new Map([['shop', 'acme']]), '{}'],
    [null, 'null'],
  ])('given as %s rather than by name is refused', (keys, received) => {
    expect(refused(() => demands(1, keys)).message).toBe(
      `keys: expected a plain object, received ${received}`,
    );
  });

  it('of an attribute that no limit has is refused, and the nearest named', () => {
    const error = refused(() => demands(1, { shops: 'acme' })) as InvalidOptionError;
    expect(error).toBeInstanceOf(InvalidOptionError);
    expect(error.option).toBe('keys.shops');
    expect(error.expected).toContain('did you mean "shop"?');
    const none = parseLimits({ calls: perSecond(1) });
    expect(refused(() => demandsOf(none, 1, { shop: 'acme' })).message).toContain('none is');
  });

  // https://github.com/oban-bg/oban/issues/792: jobs without the field disturbed those with it.
  it('that is missing has a bucket of its own, which keyed ones do not notice', () => {
    const world = new World({ shop: perSecond(1, { burst: 1, by: 'shop' }) });
    expect(world.allows(0)).toBe(true);
    expect(world.allows(0)).toBe(false);
    expect(world.allows(0, { keys: { shop: null } })).toBe(false);
    expect(world.allows(0, { keys: { shop: 'acme' } })).toBe(true);
    for (let n = 0; n < 50; n++) world.takeTurn(0);
    expect(world.acquire(0, { keys: { shop: 'acme' } })).toMatchObject({ reason: 'rate', waitUs: 1 * S });
  });
});

it('reads nothing that was not given, whatever a limit or an attribute is called', () => {
  const odd = parseLimits({
    constructor: perSecond(1, { by: 'toString' }),
    valueOf: perSecond(1, { by: 'hasOwnProperty' }),
  });
  expect(demandsOf(odd, {}, {}).map(({ bucket, cost }) => [bucket, cost])).toEqual([
    ['constructor:', 1],
    ['valueOf:', 1],
  ]);
});
