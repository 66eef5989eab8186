import type { Worker } from 'bullmq';
import { InvalidOptionError, perSecond } from 'flyball';
import { type GovernOptions, governed } from 'flyball/bullmq';
import { describe, expect, test } from 'vitest';
import { memoryGovernor } from '../../../src/testing/memory-governor.ts';

const { governor } = memoryGovernor({ name: 'test', limits: { shop: perSecond(10, { by: 'shop' }) } });
const make = (options: unknown) =>
  governed(governor, async () => 'done', options as Omit<GovernOptions, 'governor'>);

describe('options of a governed processor, when it is made', () => {
  test.for<[string, object, RegExp]>([
    [
      'a cost that is a text',
      { cost: '5' },
      /^govern\.cost: expected a whole number of tokens, 1 or more, received "5"/,
    ],
    ['a cost of 0', { cost: 0 }, /^govern\.cost: /],
    ['a cost of null', { cost: null }, /^govern\.cost: /],
    ['a fraction of a limit', { cost: { shop: 0.5 } }, /^govern\.cost\.shop: expected .* received 0\.5/],
    ['a list of costs', { cost: [1] }, /^govern\.cost: expected a plain object/],
    ['a promise of a cost', { cost: Promise.resolve(1) }, /^govern\.cost: .*not a promise/],
    ['keys that are a text', { keys: 'x' }, /^govern\.keys: expected a plain object, received "x"/],
    ['keys that are null', { keys: null }, /^govern\.keys: /],
    ['an empty value', { keys: { shop: '' } }, /^govern\.keys\.shop: /],
    ['a value that is none', { keys: { shop: true } }, /^govern\.keys\.shop: .*received true/],
    ['no deferral', { maxDeferrals: 0 }, /^govern\.maxDeferrals: expected a whole number from 1/],
    ['half a deferral', { maxDeferrals: 1.5 }, /^govern\.maxDeferrals: /],
    ['deferrals in a text', { maxDeferrals: '3' }, /^govern\.maxDeferrals: .*"3"/],
    ['no time', { maxDeferredMs: 0 }, /^govern\.maxDeferredMs: expected milliseconds, 1 or more/],
    ['a time that is none', { maxDeferredMs: Number.NaN }, /^govern\.maxDeferredMs: /],
    ["'delay' for all", { onDeferralLimit: 'delay' }, /^govern\.onDeferralLimit: expected 'fail', 'drop'/],
    ['nothing at the limit', { onDeferralLimit: null }, /^govern\.onDeferralLimit: /],
    ['a misspelt name', { maxDefferals: 3 }, /^govern\.maxDefferals: .*did you mean "maxDeferrals"/],
  ])('refuses %s', ([, options, message]) => {
    expect(() => make(options)).toThrow(InvalidOptionError);
    expect(() => make(options)).toThrow(message);
  });

  test.for<[object]>([
    [{}],
    [{ cost: 5, keys: { shop: 'acme' } }],
    [{ cost: { shop: 0, calls: 3 }, keys: { shop: null, tenant: 7 } }],
    [{ maxDeferrals: 1, maxDeferredMs: 1, onDeferralLimit: 'drop' }],
    [{ maxDeferredMs: Number.POSITIVE_INFINITY, onDeferralLimit: () => 'delay' }],
  ])('takes %o', ([options]) => {
    expect(make(options)).toBeTypeOf('function');
  });
});

describe('attach()', () => {
  test.for([[undefined], [null], ['orders'], [{}], [{ concurrency: 5 }], [() => {}]])(
    'refuses %o',
    ([worker]) => {
      const processor = make({});
      expect(() => processor.attach(worker as unknown as Worker)).toThrow(InvalidOptionError);
      expect(() => processor.attach(worker as unknown as Worker)).toThrow(
        /^worker: expected the BullMQ Worker/,
      );
    },
  );
});
