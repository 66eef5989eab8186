import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import * as errors from '../../src/core/errors.ts';
import * as publicApi from '../../src/index.ts';

// One of each. That none is missing is the first test.
const ALL: Record<string, errors.FlyballError> = {
  InvalidOptionError: new errors.InvalidOptionError('limits.calls.burst', 'a whole number', 1.5),
  CostExceedsBurstError: new errors.CostExceedsBurstError('calls', 30, 20),
  WaitTooLongError: new errors.WaitTooLongError('calls', 2_500, 2_000),
  TooManyWaitersError: new errors.TooManyWaitersError(10_000),
  GovernorClosedError: new errors.GovernorClosedError('shop-api'),
  StoreUnavailableError: new errors.StoreUnavailableError('no answer', new Error('ECONNREFUSED')),
  RefusedError: new errors.RefusedError('calls', 2_500),
  DeferralLimitError: new errors.DeferralLimitError(3, 4_200, 2_500),
};

const exported = new Map<string, unknown>(Object.entries(errors));
const guardOf = (name: string) => exported.get(`is${name}`) as (error: unknown) => boolean;

describe('the catalogue', () => {
  it('has a class and a guard for each error, all of them public', () => {
    const classes = Object.keys(errors).filter((name) => name.endsWith('Error') && !name.startsWith('is'));
    expect(classes.filter((name) => name !== 'FlyballError').sort()).toEqual(Object.keys(ALL).sort());
    const guards = Object.keys(errors).filter((name) => name.startsWith('is'));
    expect(guards.sort()).toEqual([...classes.map((name) => `is${name}`)].sort());
    for (const name of [...classes, ...guards]) expect(publicApi).toHaveProperty(name);
  });

  it('has a code for each, and no code twice', () => {
    const codes = Object.values(ALL).map(({ code }) => code);
    expect(new Set(codes).size).toBe(codes.length);
    for (const code of codes) expect(code).toMatch(/^FLYBALL_[A-Z_]+$/);
  });

  it('has an entry in the docs for each, with its code, class and guard, and for no other', () => {
    const doc = readFileSync(new URL('../../docs/errors.md', import.meta.url), 'utf8');
    const entries = [...doc.matchAll(/^## (FLYBALL_\w+)$/gm)].map(([, code]) => code);
    expect(entries.sort()).toEqual(
      Object.values(ALL)
        .map(({ code }) => code)
        .sort(),
    );
    for (const [name, { code }] of Object.entries(ALL)) {
      const row = doc.split('\n').find((line) => line.startsWith(`| [\`${code}\`]`));
      expect(row).toContain(`\`${name}\`, \`is${name}\``);
      const entry = doc.slice(doc.indexOf(`## ${code}`)).split('\n## ')[0]!;
      for (const part of ['**When.**', '**Afterwards.**', '**What to do.**']) expect(entry).toContain(part);
    }
  });
});

describe.each(Object.entries(ALL))('%s', (name, error) => {
  it('carries its name, a message and a stack', () => {
    expect(error).toBeInstanceOf(Error);
    expect(error).toBeInstanceOf(errors.FlyballError);
    expect(error.name).toBe(name);
    expect(error.message).not.toBe('');
    expect(error.stack).toContain(name);
  });

  it('is known by its own guard, and by no other', () => {
    expect(errors.isFlyballError(error)).toBe(true);
    for (const other of Object.keys(ALL)) expect(guardOf(other)(error)).toBe(other === name);
  });
});

// Two versions in one tree of dependencies, or one as source and one built: instanceof knows only its own copy.
it('is known across two copies of the package', async () => {
  const path = '../../src/core/errors.ts?another-copy';
  const copy = (await import(/* @vite-ignore */ path)) as typeof errors;
  expect(copy.WaitTooLongError).not.toBe(errors.WaitTooLongError);
  const theirs = new copy.WaitTooLongError('calls', 2_500, 2_000);
  expect(theirs).not.toBeInstanceOf(errors.FlyballError);
  expect(errors.isFlyballError(theirs)).toBe(true);
  expect(errors.isWaitTooLongError(theirs)).toBe(true);
  expect(errors.isRefusedError(theirs)).toBe(false);
  expect(copy.isRefusedError(ALL.RefusedError)).toBe(true);
});

it.each([
  null,
  undefined,
  'FLYBALL_REFUSED',
  42,
  new Error('FLYBALL_REFUSED'),
  { code: 'FLYBALL_REFUSED' },
  Object.assign(new Error('not ours'), { code: 'FLYBALL_REFUSED', name: 'RefusedError' }),
])('takes nothing else for one of its own: %s', (value) => {
  expect(errors.isFlyballError(value)).toBe(false);
  expect(errors.isRefusedError(value)).toBe(false);
});

it('keeps the client’s error as the cause, and no cause where there is none', () => {
  expect(ALL.StoreUnavailableError).toHaveProperty('cause.message', 'ECONNREFUSED');
  expect(new errors.StoreUnavailableError('no answer')).not.toHaveProperty('cause');
});

describe('what came, in a message', () => {
  const circular: Record<string, unknown> = {};
  circular.self = circular;
  it.each([
    ['text', '"text"'],
    ['x'.repeat(1_000), `"${'x'.repeat(80)}…"`],
    [undefined, 'undefined'],
    [null, 'null'],
    [Number.NaN, 'NaN'],
    [-0, '0'],
    [Symbol('s'), 'Symbol(s)'],
    [() => 1, 'a function'],
    [{ a: 1 }, '{"a":1}'],
    [circular, 'an object'],
    [{ toJSON: () => undefined }, 'an object'],
  ])('is shown briefly, and never fails to be shown', (received, shown) => {
    const { message } = new errors.InvalidOptionError('cost', 'a number', received);
    expect(message).toBe(`cost: expected a number, received ${shown}`);
  });

  it('is shown for numbers that JSON does not know', () => {
    expect(new errors.InvalidOptionError('cost', 'a number', 5n).message).toContain('received 5n');
    expect(new errors.InvalidOptionError('cost', 'a number', { n: 5n }).message).toContain(
      'received an object',
    );
    const wide = Array.from({ length: 100 }, () => 'item');
    expect(new errors.InvalidOptionError('cost', 'a number', wide).message.length).toBeLessThan(130);
  });
});
