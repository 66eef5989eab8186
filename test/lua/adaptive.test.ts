import fc from 'fast-check';
import { expect, test } from 'vitest';
import { assemble } from '../../scripts/assemble-script.mjs';
import type { AdaptiveState } from '../../src/core/buckets/adaptive.ts';
import type { Adaptive } from '../../src/core/limits/adaptive.ts';
import {
  ADAPTIVE_START_US,
  type AdaptiveHistory,
  adaptiveHistories,
  play,
} from '../core/support/adaptive-history.ts';
import { connect } from '../support/redis.ts';

const RUNS = Number(process.env.FLYBALL_PARITY_RUNS ?? 400);
const redis = connect();
const { source } = assemble('../test/lua/support/adaptive-history');

const FIELDS: readonly (keyof AdaptiveState)[] = [
  'value',
  'bad',
  'climbUs',
  'cutUs',
  'riseUs',
  'used',
  'busy',
  'windowUs',
  'calls',
  'failed',
  'latencySumUs',
  'usualNs',
  'lookUs',
  'lookFrom',
];

const ruleNumbers = ({ min, max, mode, latencyUs, errorPermille }: Adaptive) => ({
  min: Math.round(min * 1_000),
  max: Math.round(max * 1_000),
  gradient: mode === 'gradient',
  latencyUs,
  errorPermille,
});

async function inLua(history: AdaptiveHistory): Promise<number[][]> {
  let now = ADAPTIVE_START_US;
  const steps = history.steps.map(({ afterUs, used, report }, index) => {
    now += afterUs;
    const changed = index >= history.steps.length / 2;
    const told = report && [
      now - report.agoUs,
      report.calls,
      report.throttled,
      report.failed,
      report.latencySumUs,
    ];
    return { now, used, changed, report: told ?? [] };
  });
  const input = {
    start: ADAPTIVE_START_US,
    rule: ruleNumbers(history.rule),
    changed: ruleNumbers(history.changed),
    initial: Math.round(history.initial * 1_000),
    period: history.periodUs,
    fields: FIELDS,
    steps,
  };
  const reply = (await redis.eval(source, 0, JSON.stringify(input))) as string[];
  return reply.map((line) => line.split(' ').map(Number));
}

test('Lua and TypeScript agree on an adaptive limit, state for state', { timeout: 120_000 }, async () => {
  let states = 0;
  let cuts = 0;
  let looks = 0;
  let rises = 0;
  await fc.assert(
    fc.asyncProperty(adaptiveHistories, async (history) => {
      const played = [...play(history)];
      const model = played.map(({ state }) => FIELDS.map((field) => state[field]));
      expect(await inLua(history)).toEqual(model);
      states += played.length;
      cuts += played.filter(({ before, state }) => state.cutUs > before.cutUs && state.lookFrom === 0).length;
      looks += played.filter(({ before, state }) => state.lookFrom > before.lookFrom).length;
      rises += played.filter(({ before, state }) => state.value > before.value).length;
    }),
    { numRuns: RUNS, endOnFailure: false },
  );
  // That the histories come upon everything, and not just once.
  for (const [seen, share] of [
    [cuts, 0.03],
    [looks, 0.0005],
    [rises, 0.01],
  ] as const) {
    expect(seen / states).toBeGreaterThan(share);
  }
});
