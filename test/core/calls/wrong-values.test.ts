import { describe, expect, test } from 'vitest';
import { isInvalidOptionError } from '../../../src/core/errors.ts';
import { createGovernor, perDay, perHour, perMinute, perSecond, Throttled } from '../../../src/index.ts';
import { FakeClock, memoryGovernor } from '../../../src/testing/index.ts';

/**
 * Every public entry, every option of it, every value that the option cannot have. `undefined` is the same as left out; null is
 * not: it comes from a value that somebody meant to have, and a default in its place would be a limit that nobody asked for.
 */
const WRONG: readonly (readonly [string, unknown])[] = [
  ['null', null],
  ['NaN', Number.NaN],
  ['a text', '5'],
  ['a list', []],
  ['a function', () => 5],
];

/** Options that one of these values is right for. */
const RIGHT: Readonly<Record<string, readonly string[]>> = {
  'createGovernor: name': ['a text'],
  'memoryGovernor: name': ['a text'],
  'configure, options: who': ['a text'],
  'reset: who': ['a text'],
  'feedback: retryAfter': ['a text'],
  'Throttled: message': ['a text'],
  // As `headers.get` gives it.
  'Throttled: retryAfter': ['a text', 'null'],
  'run: settle': ['a function'],
  ...Object.fromEntries(
    ['allow', 'allowN', 'reserve', 'reserveN', 'wait', 'waitN', 'run', 'allowAtMost', 'forceN'].map(
      (name) => [`${name}: holder`, ['a text']],
    ),
  ),
};

/** What was said of a call: the option that was refused, or what happened instead. */
async function saidOf(call: () => unknown): Promise<string> {
  try {
    await call();
  } catch (error) {
    return isInvalidOptionError(error) ? error.option : `threw ${error}`;
  }
  return 'was taken';
}

/** The names of all options that a call knows: it tells them where it is given one that is like none of them. */
async function namesOf(call: (options: object) => unknown): Promise<string[]> {
  try {
    await call({ ['?'.repeat(100)]: 1 });
  } catch (error) {
    if (isInvalidOptionError(error) && error.expected.startsWith('one of '))
      return error.expected.slice('one of '.length).split(', ');
    throw error;
  }
  throw new Error('an unknown name was taken');
}

const governor = () =>
  memoryGovernor({ name: 'test', limits: { shop: perSecond(1_000, { burst: 100, by: 'shop' }) } }).governor;

const base = { name: 'test', limits: { calls: perSecond(10) } };
const limit = (options: unknown) => memoryGovernor({ ...base, limits: { calls: options as never } });
const rate = { rate: 100, periodMs: 1_000, burst: 10 };
const slots = { kind: 'concurrency', max: 10 };
const adaptive = { min: 1, max: 1_000 };

interface Entry {
  /** Makes the call with these options. */
  readonly call: (options: never) => unknown;
  /** What it is called with besides the option in question. */
  readonly beside?: object;
  /** What errors call the options. */
  readonly path?: string;
}

const ENTRIES: Readonly<Record<string, Entry>> = {
  createGovernor: { call: (options) => createGovernor(options), beside: base },
  memoryGovernor: { call: (options) => memoryGovernor(options), beside: base },
  'a rate': { call: limit, beside: { ...rate, by: 'shop' }, path: 'limits.calls' },
  'a fair rate': { call: limit, beside: { ...rate, by: 'shop', fair: true }, path: 'limits.calls' },
  'a reserve': {
    call: (reserve) => limit({ ...rate, reserve }),
    path: 'limits.calls.reserve',
  },
  'a penalty': {
    call: (penalty) => limit({ ...rate, penalty }),
    beside: { afterMs: 1_000, forMs: 1_000 },
    path: 'limits.calls.penalty',
  },
  'an adaptive rate': {
    call: (options) => limit({ ...rate, adaptive: options }),
    beside: adaptive,
    path: 'limits.calls.adaptive',
  },
  'a target': {
    call: (target) => limit({ ...rate, adaptive: { ...adaptive, target } }),
    path: 'limits.calls.adaptive.target',
  },
  'a fixed window': {
    call: limit,
    beside: { kind: 'window', max: 10, windowMs: 1_000, by: 'shop' },
    path: 'limits.calls',
  },
  'a sliding window': {
    call: limit,
    beside: { kind: 'window', max: 10, windowMs: 1_000, mode: 'sliding' },
    path: 'limits.calls',
  },
  'a concurrency limit': { call: limit, beside: slots, path: 'limits.calls' },
  'adaptive slots': {
    call: (options) => limit({ ...slots, adaptive: options }),
    beside: adaptive,
    path: 'limits.calls.adaptive',
  },
  allow: { call: (options) => governor().allow(options) },
  allowN: { call: (options) => governor().allowN(2, options) },
  reserve: { call: (options) => governor().reserve(options) },
  reserveN: { call: (options) => governor().reserveN(2, options) },
  wait: { call: (options) => governor().wait(options) },
  waitN: { call: (options) => governor().waitN(2, options) },
  run: { call: (options) => governor().run(options, () => 1) },
  peek: { call: (options) => governor().peek(options) },
  allowAtMost: { call: (options) => governor().allowAtMost(2, options) },
  forceN: { call: (options) => governor().forceN(2, options) },
  feedback: { call: (options) => governor().feedback(options) },
  pause: { call: (options) => governor().pause(options) },
  resume: { call: (options) => governor().resume(options) },
  configure: { call: (change) => governor().configure(change) },
  'configure, options': { call: (options) => governor().configure({ limits: base.limits }, options) },
  reset: { call: (options) => governor().reset(options) },
  Throttled: { call: (options) => new Throttled(options) },
};

describe.for(Object.entries(ENTRIES))('%s', ([name, { call, beside = {}, path = '' }]) => {
  test('takes what it is given here besides', async () => {
    const taken = 'was taken';
    const needs = name === 'configure' ? 'limits' : taken;
    expect(await saidOf(() => call({ ...beside } as never))).toBe(needs);
  });

  test.for(WRONG)('refuses %s as each of its options, and names that option', async ([kind, value]) => {
    const names = await namesOf((options) => call({ ...beside, ...options } as never));
    const said: Record<string, string> = {};
    const expected: Record<string, string> = {};
    for (const option of names) {
      if (RIGHT[`${name}: ${option}`]?.includes(kind)) continue;
      expected[option] = path === '' ? option : `${path}.${option}`;
      said[option] = await saidOf(() => call({ ...beside, [option]: value } as never));
    }
    expect(said).toEqual(expected);
  });

  test.for(WRONG)('refuses %s in place of all its options', async ([, value]) => {
    expect(await saidOf(() => call(value as never))).toBe(path === '' ? 'options' : path);
  });
});

describe.for<[string, string, (value: never) => unknown, string?]>([
  ['the rate of perSecond', 'limits.calls.rate', (rate) => limit(perSecond(rate))],
  ['the options of perSecond', 'options', (options) => perSecond(5, options)],
  ['the options of perMinute', 'options', (options) => perMinute(5, options)],
  ['the options of perHour', 'options', (options) => perHour(5, options)],
  ['the options of perDay', 'options', (options) => perDay(5, options)],
  ['the cost of allowN', 'cost', (cost) => governor().allowN(cost)],
  ['the cost of reserveN', 'cost', (cost) => governor().reserveN(cost)],
  ['the cost of waitN', 'cost', (cost) => governor().waitN(cost)],
  ['the cost of forceN', 'cost', (cost) => governor().forceN(cost)],
  ['the cost to one limit', 'cost.shop', (cost) => governor().allowN({ shop: cost })],
  ['the most of allowAtMost', 'most', (most) => governor().allowAtMost(most)],
  ['the work of run', 'work', (work) => governor().run({}, work), 'a function'],
  ['an event', 'event', (event) => governor().on(event, () => {})],
  ['a listener', 'listener', (listener) => governor().on('paused', listener), 'a function'],
  ['what a grant settles to', 'actual', async (actual) => (await governor().waitN(1)).settle(actual)],
  ['what a grant settles to for one limit', 'actual.shop', settleShop],
  ['where a fake clock begins', 'startMs', (startMs) => new FakeClock(startMs)],
  ['by what a fake clock moves on', 'ms', (ms) => new FakeClock().advance(ms)],
  ['for how long a fake clock blocks', 'ms', (ms) => new FakeClock().block(ms)],
])('%s', ([, option, call, right]) => {
  test.for(WRONG.filter(([kind]) => kind !== right))('refuses %s', async ([, value]) => {
    expect(await saidOf(() => call(value as never))).toBe(option);
  });
});

async function settleShop(actual: never) {
  const grant = await governor().waitN(1);
  await grant.settle({ shop: actual });
}
