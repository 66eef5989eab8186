import { describe, expect, test } from 'vitest';
import type { Arrival } from '../../workers/downstream/arrivals.ts';
import { flags } from '../../workers/parent/flags.ts';
import { atLeast, atMost, exactly } from '../../workers/prove/case.ts';
import { adaptiveFigures, adaptiveSeries } from '../../workers/prove/figures/adapting.ts';
import { changeFigures } from '../../workers/prove/figures/change.ts';
import { closingFigures } from '../../workers/prove/figures/closing.ts';
import { flapFigures } from '../../workers/prove/figures/flaps.ts';
import { minuteFigures } from '../../workers/prove/figures/minutes.ts';
import { shareFigures } from '../../workers/prove/figures/shares.ts';

const S = 1_000_000;

/** Calls of one key, evenly from one second to another, the first at the beginning. */
function calls(rate: number, from: number, to: number, key = '', refused: 0 | 1 = 0): Arrival[] {
  const count = Math.round((to - from) * rate);
  return Array.from({ length: count }, (_, i) => [
    Math.round((from + i / rate) * S),
    1,
    '',
    key,
    1,
    0,
    refused,
  ]);
}

const inOrder = (...parts: Arrival[][]) => parts.flat().sort((a, b) => a[0] - b[0]);

describe('a rate raised and lowered', () => {
  const change = {
    ...{ deferred: 500, raisedUs: 10 * S, loweredUs: 14 * S, endUs: 20 * S },
    ...{ low: 30, high: 300, keys: ['p0', 'p1'], keyPart: 30, keyBurst: 1 },
  };

  test('as it should be', () => {
    const arrivals = inOrder(
      calls(30, 0, 10),
      ...[calls(280, 10.2, 14), calls(10, 10.2, 14, 'p0'), calls(10, 10.2, 14, 'p1')],
      ...[calls(28, 14, 20), calls(1, 14, 20, 'p0'), calls(1, 14, 20, 'p1')],
    );
    expect(changeFigures(arrivals, change)).toMatchObject({
      ...{ deferred: 500, rateBefore: 30, rateRaised: 300, rateLowered: 30, tolerated: 1.5 },
      ...{ reachedMs: 200, deferredReachedMs: 200, deferredLoweredExcess: 0 },
    });
  });

  test('a rate that is not reached, and one that goes on too high', () => {
    const figures = changeFigures(inOrder(calls(30, 0, 10), calls(200, 10, 20)), change);
    expect(figures).toMatchObject({ reachedMs: null, deferredReachedMs: null, rateLowered: 200 });
    expect(figures.loweredExcess).toBeGreaterThan(800);
  });

  test('what was reached only after it was lowered again does not count', () => {
    expect(changeFigures(calls(300, 14, 16), change).reachedMs).toBeNull();
  });
});

describe('a shop that was closed', () => {
  const plan = {
    ...{ closedUs: 5 * S, retryAfterMs: 3_000, endUs: 12 * S, closed: 's0' },
    ...{ shops: ['s0', 's1'], rate: 40, burst: 4 },
  };
  const before = calls(40, 0, 5, 's0');
  const refusals: Arrival[] = [...calls(100, 5, 5.03, 's0', 1)];

  test('as it should be: times count from the first 429', () => {
    const arrivals = inOrder(before, refusals, calls(40, 8.25, 12, 's0'), calls(40, 0, 12, 's1'));
    expect(closingFigures(arrivals, plan)).toMatchObject({
      ...{ refusals: 3, lastCallMs: 20, callsWhileClosed: 0, resumedMs: 3_250, tolerated: 2 },
      ...{ othersShare: 1, othersShareBefore: 1, resumedExcess: 0 },
    });
  });

  test('calls meanwhile, a burst afterwards, another shop held back', () => {
    const burst = calls(10_000, 8, 8.001, 's0');
    const arrivals = inOrder(before, refusals, calls(10, 6, 7, 's0', 1), burst, calls(40, 0, 6.5, 's1'));
    const figures = closingFigures(arrivals, plan);
    expect(figures).toMatchObject({ callsWhileClosed: 10, othersShare: 0.5, resumedMs: 3_000 });
    expect(figures.resumedExcess).toBeGreaterThan(8);
  });

  test('a shop that never comes back, and one that was never refused', () => {
    const gone = closingFigures(inOrder(before, refusals, calls(40, 0, 12, 's1')), plan);
    expect(gone.resumedMs).toBeNull();
    expect(closingFigures(before, plan)).toMatchObject({ refusals: 0, lastCallMs: null, resumedMs: null });
  });
});

describe('a capacity that moves', () => {
  const phases = [
    { capacity: 200, fromUs: 0, toUs: 20 * S },
    { capacity: 80, fromUs: 20 * S, toUs: 40 * S },
  ];
  const arrivals = inOrder(
    calls(10, 0, 10),
    calls(190, 10, 20),
    calls(40, 20, 40),
    calls(10, 30, 40, '', 1),
    calls(90, 20, 21, '', 1),
  );

  test('counts from ten seconds after each change', () => {
    expect(adaptiveFigures(arrivals, phases)).toEqual([
      { capacity: 200, used: 0.95, refusedShare: 0, refusedShareOfAll: 0 },
      { capacity: 80, used: 0.5, refusedShare: 0.2, refusedShareOfAll: 0.1919 },
    ]);
  });

  test('the series of the chart', () => {
    const samples = [
      { atUs: 20.1 * S, limit: 150 },
      { atUs: 30.6 * S, limit: 90 },
    ];
    const series = adaptiveSeries(arrivals, phases, samples);
    expect(series).toHaveLength(80);
    expect(series[40]).toEqual({
      ...{ atMs: 20_000, capacity: 80, acceptedPerS: 40, throttledPerS: 90, limit: 150 },
    });
    // Before the first look the limit was that, after the last it is.
    expect([0, 60, 61, 79].map((i) => series[i]!.limit)).toEqual([150, 150, 90, 90]);
  });
});

test('tokens count in the minute in which they were told, requests when they came', () => {
  const completions = Array.from({ length: 80 }, (_, i) => ({
    ...{ atUs: i * S, endUs: (i + 2) * S, tokens: 10, refused: false },
  }));
  const plan = { fromUs: 0, toUs: 78 * S, requestsPerMinute: 100, tokensPerMinute: 1_000 };
  expect(minuteFigures(completions, plan)).toEqual({
    ...{ requests: 80, tokens: 800, refused: 0 },
    ...{ mostTokensShare: 0.6, mostRequestsShare: 0.6, leastTokensShare: 0.58 },
  });
  expect(minuteFigures(completions, { ...plan, toUs: 50 * S }).leastTokensShare).toBeNull();
});

test('shares of keys, beside their weights', () => {
  const arrivals = inOrder(
    calls(66, 0, 10, 'a'),
    calls(40, 0, 10, 'b'),
    calls(14, 0, 10, 'c'),
    calls(9, 10, 20, 'c'),
  );
  const weights = { a: 3, b: 2, c: 1 };
  expect(shareFigures(arrivals, { fromUs: 0, toUs: 10 * S, weights, rate: 120 })).toEqual({
    tokens: { a: 660, b: 400, c: 140 },
    ofShare: { a: 1.1, b: 1, c: 0.7 },
    used: 1,
  });
  expect(shareFigures([], { fromUs: 0, toUs: S, weights, rate: 1 }).ofShare).toEqual({ a: 0, b: 0, c: 0 });
});

test.each([
  [atMost('x', 5, 5, 'ms'), { promised: '≤ 5 ms', was: '5 ms', kept: true }],
  [atMost('x', 5.1, 5), { was: '5.1', kept: false }],
  [atLeast('x', 0.951, 0.95, '%'), { promised: '≥ 95 %', was: '95.1 %', kept: true }],
  [atLeast('x', null, 0), { was: 'never', kept: false }],
  [atMost('x', Number.POSITIVE_INFINITY, 1), { was: 'never', kept: false }],
  [atMost('x', Number.NaN, 1), { was: 'never', kept: false }],
  [exactly('x', 0, 0), { promised: '0', kept: true }],
])('a demand: %j', (demand, expected) => {
  expect(demand).toMatchObject(expected);
});

test('options as a command line', () => {
  expect(flags({ serviceMs: 5, heed: true, json: false, paced: undefined, limits: { a: 1 } })).toEqual([
    '--service-ms',
    '5',
    '--heed',
    '--limits',
    '{"a":1}',
  ]);
});

test.each([
  ['a deploy', [1, 1, 2, 2], { changes: 1, flaps: 0, samples: 4 }],
  ['an old process that brings the old limits back', [1, 2, 1, 2], { changes: 3, flaps: 2 }],
  ['the old limits in the end', [1, 2, 1], { changes: 2, flaps: 2 }],
  ['the new limits never came', [1, 1], { changes: 0, flaps: 1 }],
])('%s', (_, rates, expected) => {
  expect(flapFigures(rates, 2)).toMatchObject(expected);
});
