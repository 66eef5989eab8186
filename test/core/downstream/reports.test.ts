import { describe, expect, test } from 'vitest';
import type { AdaptiveReport } from '../../../src/core/buckets/adaptive.ts';
import type { Keys } from '../../../src/core/decide/demands.ts';
import { type Outcome, Reports } from '../../../src/core/downstream/reports.ts';
import { FakeClock } from '../../../src/testing/index.ts';

interface Told extends AdaptiveReport {
  readonly atMs: number;
  readonly keys: Keys | undefined;
}

function reporting(answer: () => Promise<void> = async () => {}) {
  const clock = new FakeClock();
  const beganMs = clock.monoMs();
  const told: Told[] = [];
  const reports = new Reports(
    {
      report: ({ keys }, calls) => {
        told.push({ atMs: clock.monoMs() - beganMs, keys, ...calls });
        return answer();
      },
    },
    clock,
  );
  const add = (outcome: Partial<Outcome>, keys?: Keys) =>
    reports.add(keys, { grantedUs: 1, latencyMs: 0, failed: false, throttled: false, ...outcome });
  return { clock, reports, told, add };
}

test('calls of a quarter of a second are told together, from the first of them on', async () => {
  const { clock, told, add } = reporting();
  add({ grantedUs: 300, latencyMs: 10 });
  await clock.advance(100);
  add({ grantedUs: 200, latencyMs: 20.5, failed: true });
  await clock.advance(149);
  expect(told).toEqual([]);
  await clock.advance(1);
  expect(told).toEqual([
    { atMs: 250, keys: undefined, startedUs: 200, calls: 2, throttled: 0, failed: 1, latencySumUs: 30_500 },
  ]);
  await clock.advance(5_000);
  expect([told.length, clock.pending]).toEqual([1, 0]);
  add({});
  await clock.advance(250);
  expect(told[1]).toMatchObject({ calls: 1, failed: 0 });
});

describe('a throttled call', () => {
  test('is told of at once, with what was gathered', async () => {
    const { clock, told, add } = reporting();
    add({ latencyMs: 10 });
    await clock.advance(100);
    add({ throttled: true, latencyMs: 1 });
    await clock.advance(0);
    expect(told).toMatchObject([{ atMs: 100, calls: 2, throttled: 1, latencySumUs: 11_000 }]);
    expect(clock.pending).toBe(0);
  });

  // Whether the limit was cut since is told by the grant: of many in one report the last one counts.
  test.for<[string, { grantedUs: number; throttled?: boolean }[], number]>([
    [
      'the latest throttled one',
      [
        { grantedUs: 5, throttled: true },
        { grantedUs: 9, throttled: true },
        { grantedUs: 7, throttled: true },
      ],
      9,
    ],
    [
      'a throttled one, though others came earlier',
      [{ grantedUs: 2 }, { grantedUs: 5, throttled: true }, { grantedUs: 1 }],
      5,
    ],
    ['a throttled one, though others came later', [{ grantedUs: 5, throttled: true }, { grantedUs: 8 }], 5],
  ])('counts from %s', async ([, outcomes, startedUs]) => {
    const { clock, told, add } = reporting();
    for (const outcome of outcomes) add(outcome);
    await clock.advance(0);
    expect(told).toMatchObject([{ startedUs, calls: outcomes.length }]);
  });

  test('told of without a grant counts from now, which is a whole number', async () => {
    const { clock, told, add } = reporting();
    add({ grantedUs: Number.MAX_SAFE_INTEGER, throttled: true });
    add({ grantedUs: 17.25 });
    await clock.advance(0);
    expect(told).toMatchObject([{ startedUs: Number.MAX_SAFE_INTEGER }]);
    add({ grantedUs: 17.25 });
    await clock.advance(250);
    expect(told[1]).toMatchObject({ startedUs: 17 });
  });
});

test('keys are told apart', async () => {
  const { clock, told, add } = reporting();
  add({}, { shop: 'a' });
  add({}, { shop: 'b' });
  add({}, { shop: 'a' });
  add({});
  await clock.advance(250);
  expect(told.map(({ keys, calls }) => ({ keys, calls }))).toEqual([
    { keys: { shop: 'a' }, calls: 2 },
    { keys: { shop: 'b' }, calls: 1 },
    { keys: undefined, calls: 1 },
  ]);
});

test('a report that is lost is lost: what comes after it is told', async () => {
  const { clock, told, add } = reporting(() => Promise.reject(new Error('away')));
  add({});
  await clock.advance(250);
  add({});
  await clock.advance(250);
  expect(told.map(({ calls }) => calls)).toEqual([1, 1]);
});

test('close forgets what was not told, and what comes later', async () => {
  const { clock, reports, told, add } = reporting();
  add({});
  reports.close();
  add({});
  add({ throttled: true });
  await clock.advance(1_000);
  expect([told.length, clock.pending]).toEqual([0, 0]);
});
