import { describe, expect, test } from 'vitest';
import { parseAdaptive } from '../../../src/core/limits/adaptive.ts';
import { type Run, type Second, simulate, type World } from '../support/adaptive-sim.ts';
import { type Capacity, queueing, throttling, throttlingByTheSecond } from '../support/downstreams.ts';

/* What the rule comes to in simulated fleets. Each seed is the same run each time. */

const SEEDS = [1, 2, 3, 4, 5];

const sum = (seconds: readonly Second[], of: (second: Second) => number): number =>
  seconds.reduce((total, second) => total + of(second), 0);
const perSecond = (seconds: readonly Second[]): number => sum(seconds, (s) => s.accepted) / seconds.length;
const throttledShare = (seconds: readonly Second[]): number =>
  sum(seconds, (s) => s.throttled) / sum(seconds, (s) => s.accepted + s.throttled);
const meanMs = (seconds: readonly Second[]): number =>
  sum(seconds, (s) => s.latencySumUs) / sum(seconds, (s) => s.accepted) / 1_000;

describe('a downstream whose capacity moves from 200 to 80 and back to 200', () => {
  const capacity: Capacity = [
    { fromMs: 0, capacity: 200 },
    { fromMs: 30_000, capacity: 80 },
    { fromMs: 60_000, capacity: 200 },
  ];
  const rule = parseAdaptive('adaptive', { min: 20, max: 400 }, 200);
  const base = { rule, initial: 200, periodUs: 1_000_000, lastsMs: 90_000 };

  function meetsTheCase({ seconds }: Run, burstShare: number): void {
    for (const [index, { capacity: most }] of capacity.entries()) {
      // From 10 s after each change on, in each 5 s.
      for (let from = 30 * index + 10; from + 5 <= 30 * (index + 1); from++) {
        const accepted = perSecond(seconds.slice(from, from + 5));
        expect(accepted).toBeGreaterThan(0.85 * most);
        expect(accepted).toBeLessThanOrEqual(most * (1 + burstShare / 5));
      }
    }
    expect(throttledShare(seconds)).toBeLessThan(0.03);
  }

  test.for(
    [1, 4, 50].flatMap((processes) => [100, 250, 500].map((reportMs) => [processes, reportMs] as const)),
  )('%d processes that report every %d ms', ([processes, reportMs]) => {
    for (const seed of SEEDS) {
      for (const burstMs of [20, 50, 200]) {
        const downstream = throttling(capacity, burstMs);
        meetsTheCase(simulate({ ...base, seed, processes, reportMs, downstream }), burstMs / 1_000);
      }
    }
  });

  test('a downstream that counts by whole seconds, and turns all away until the next', () => {
    for (const seed of SEEDS) {
      const downstream = throttlingByTheSecond(capacity);
      meetsTheCase(simulate({ ...base, seed, processes: 8, reportMs: 250, downstream }), 1);
    }
  });

  test('one overload is a few cuts, however many processes report it', () => {
    const cuts = [1, 50].map((processes) => {
      const downstream = throttling(capacity);
      const { cutsUs } = simulate({ ...base, seed: 1, processes, reportMs: 250, downstream });
      return cutsUs.filter((us) => us >= 30e6 && us < 32e6).length;
    });
    for (const count of cuts) expect(count).toBeLessThanOrEqual(8);
  });

  test('while nobody calls the limit stays where it is', () => {
    const demand = (atMs: number) => (atMs > 30_000 && atMs < 80_000 ? 0 : 1);
    const world = { ...base, seed: 1, processes: 4, reportMs: 250, demand };
    const { seconds } = simulate({ ...world, downstream: throttling([{ fromMs: 0, capacity: 100 }]) });
    expect(new Set(seconds.slice(31, 79).map(({ limit }) => limit)).size).toBe(1);
  });
});

describe('slots of a database with a knee at 40 calls of 100 ms', () => {
  const base = { periodUs: 0, processes: 8, reportMs: 250, lastsMs: 120_000 };
  const knee: Capacity = [{ fromMs: 0, capacity: 40 }];
  const gradient = parseAdaptive('adaptive', { min: 4, max: 400, mode: 'gradient' }, 20);
  const run = (seed: number, more: Partial<World> = {}): Run =>
    simulate({ ...base, seed, rule: gradient, initial: 20, downstream: queueing(knee, () => 100), ...more });
  const limits = ({ seconds }: Run, from: number) => seconds.slice(from).map(({ limit }) => limit);

  test('a target latency is kept, with all of the capacity used', () => {
    const rule = parseAdaptive('adaptive', { min: 4, max: 400, target: { latencyMs: 240 } }, 20);
    for (const seed of SEEDS) {
      const settled = run(seed, { rule }).seconds.slice(30);
      expect(meanMs(settled)).toBeLessThan(240);
      expect(perSecond(settled)).toBeGreaterThan(0.95 * (40 / 0.1));
    }
  });

  test.for([4, 20, 200, 400])('the gradient settles near the knee from %d', (initial) => {
    const rule = parseAdaptive('adaptive', { min: 4, max: 400, mode: 'gradient' }, initial);
    for (const seed of SEEDS) {
      const settled = run(seed, { rule, initial });
      expect(Math.max(...limits(settled, 60))).toBeLessThan(90);
      expect(perSecond(settled.seconds.slice(60))).toBeGreaterThan(0.95 * (40 / 0.1));
      expect(meanMs(settled.seconds.slice(60))).toBeLessThan(200);
    }
  });

  test('and stays there for half an hour', () => {
    const long = run(1, { lastsMs: 1_800_000 });
    expect(Math.max(...limits(long, 60))).toBeLessThan(90);
    // At half of it while it looks at the latency.
    expect(Math.min(...limits(long, 60))).toBeGreaterThan(25);
    expect(perSecond(long.seconds.slice(60))).toBeGreaterThan(0.95 * (40 / 0.1));
  });

  test('a database that turns slow for good is the usual before long, and fast again too', () => {
    const serviceMs = (atMs: number) => (atMs > 120_000 && atMs < 360_000 ? 300 : 100);
    const { seconds } = run(1, { lastsMs: 480_000, downstream: queueing(knee, serviceMs) });
    expect(perSecond(seconds.slice(300, 360))).toBeGreaterThan(0.9 * (40 / 0.3));
    expect(meanMs(seconds.slice(300, 360))).toBeLessThan(600);
    expect(perSecond(seconds.slice(420))).toBeGreaterThan(0.95 * (40 / 0.1));
    expect(meanMs(seconds.slice(420))).toBeLessThan(200);
  });

  test('half of the servers go and come back', () => {
    const servers: Capacity = [...knee, { fromMs: 60_000, capacity: 20 }, { fromMs: 120_000, capacity: 40 }];
    const { seconds } = run(1, { lastsMs: 180_000, downstream: queueing(servers, () => 100) });
    expect(meanMs(seconds.slice(80, 120))).toBeLessThan(240);
    expect(perSecond(seconds.slice(150))).toBeGreaterThan(0.95 * (40 / 0.1));
  });

  test('calls that fail cut it, in either mode', () => {
    for (const mode of ['aimd', 'gradient'] as const) {
      const rule = parseAdaptive('adaptive', { min: 4, max: 400, mode, target: { errorRate: 0.02 } }, 200);
      const downstream = queueing(knee, () => 100, 240);
      const { seconds } = run(1, { rule, initial: 200, downstream });
      const settled = seconds.slice(60);
      expect(sum(settled, (s) => s.failed) / sum(settled, (s) => s.accepted + s.failed)).toBeLessThan(0.03);
      expect(perSecond(settled)).toBeGreaterThan(0.9 * (40 / 0.1));
    }
  });
});
