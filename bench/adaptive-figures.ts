import { writeFileSync } from 'node:fs';
import { parseAdaptive } from '../src/core/limits/adaptive.ts';
import { type Run, type Second, simulate } from '../test/core/support/adaptive-sim.ts';
import {
  type Capacity,
  capacityAt,
  queueing,
  throttling,
  throttlingByTheSecond,
} from '../test/core/support/downstreams.ts';

/*
 * Prints the tables of docs/adaptive.md from a simulation: npx tsx bench/adaptive-figures.ts [SERIES.json]
 * With a file name, it also writes the series of one run there, for bench/adaptive-chart.ts.
 */

const SEEDS = [1, 2, 3, 4, 5];
const CAPACITY: Capacity = [
  { fromMs: 0, capacity: 200 },
  { fromMs: 30_000, capacity: 80 },
  { fromMs: 60_000, capacity: 200 },
];
const LASTS_MS = 90_000;

const sum = (seconds: readonly Second[], of: (second: Second) => number): number =>
  seconds.reduce((total, second) => total + of(second), 0);
const percent = (share: number): string => `${(share * 100).toFixed(1)} %`;
const accepted = (seconds: readonly Second[]): number => sum(seconds, (s) => s.accepted);
const throttledShare = (seconds: readonly Second[]): number =>
  sum(seconds, (s) => s.throttled) / sum(seconds, (s) => s.accepted + s.throttled);

function moving(seed: number, processes: number, reportMs: number, kind: string): Run {
  const rule = parseAdaptive('adaptive', { min: 20, max: 400 }, 200);
  const downstream =
    kind === 'by the second'
      ? throttlingByTheSecond(CAPACITY)
      : throttling(CAPACITY, Number.parseInt(kind, 10));
  return simulate({
    seed,
    rule,
    initial: 200,
    periodUs: 1_000_000,
    processes,
    reportMs,
    lastsMs: LASTS_MS,
    downstream,
  });
}

/** The lowest share of the capacity that was accepted in 5 s, from 10 s after each change on. */
function leastShare({ seconds }: Run): number {
  const starts = CAPACITY.flatMap((_, phase) =>
    Array.from({ length: 16 }, (_, from) => 30 * phase + 10 + from),
  );
  return Math.min(
    ...starts.map(
      (from) => accepted(seconds.slice(from, from + 5)) / 5 / capacityAt(CAPACITY, from * 1_000_000),
    ),
  );
}

/** Seconds after the rise of the capacity until 85 % of it is accepted. */
const reached = ({ seconds }: Run): number =>
  seconds.slice(60).findIndex((second) => second.accepted >= 0.85 * 200);

console.log(
  '| downstream | processes | reports every | least accepted in 5 s | 85 % of 200 after | 429 in all | 429 at 80 |',
);
console.log('| --- | --- | --- | --- | --- | --- | --- |');
for (const kind of ['20 ms', '200 ms', '1000 ms', 'by the second']) {
  for (const [processes, reportMs] of [
    [1, 100],
    [8, 250],
    [50, 500],
  ] as const) {
    const runs = SEEDS.map((seed) => moving(seed, processes, reportMs, kind));
    const worst = (of: (run: Run) => number) => Math.max(...runs.map(of));
    const figures = [
      percent(Math.min(...runs.map(leastShare))),
      `${worst(reached)} s`,
      percent(worst(({ seconds }) => throttledShare(seconds))),
      percent(worst(({ seconds }) => throttledShare(seconds.slice(30, 60)))),
    ];
    console.log(`| ${kind} | ${processes} | ${reportMs} ms | ${figures.join(' | ')} |`);
  }
}

console.log('\n| slots: 40 servers of 100 ms | limit | accepted of capacity | mean latency |');
console.log('| --- | --- | --- | --- |');
for (const [words, options, initial] of [
  ['gradient from 20', { mode: 'gradient' }, 20],
  ['gradient from 400', { mode: 'gradient' }, 400],
  ['target of 240 ms', { target: { latencyMs: 240 } }, 20],
] as const) {
  const rule = parseAdaptive('adaptive', { min: 4, max: 400, ...options }, initial);
  const downstream = queueing([{ fromMs: 0, capacity: 40 }], () => 100);
  const world = {
    seed: 1,
    rule,
    initial,
    periodUs: 0,
    processes: 8,
    reportMs: 250,
    lastsMs: 300_000,
    downstream,
  };
  const seconds = simulate(world).seconds.slice(60);
  const limits = seconds.map(({ limit }) => limit).sort((a, b) => a - b);
  const latencyMs = sum(seconds, (s) => s.latencySumUs) / accepted(seconds) / 1_000;
  const middle = limits[Math.floor(limits.length / 2)]!.toFixed(0);
  console.log(
    `| ${words} | ${middle} | ${percent(accepted(seconds) / seconds.length / 400)} | ${latencyMs.toFixed(0)} ms |`,
  );
}

const file = process.argv[2];
if (file !== undefined) {
  const series = moving(1, 8, 250, '200 ms').seconds.map((second, index) => ({
    atMs: index * 1_000,
    capacity: capacityAt(CAPACITY, index * 1_000_000),
    limit: second.limit,
    acceptedPerS: second.accepted,
    throttledPerS: second.throttled,
  }));
  writeFileSync(file, `${JSON.stringify(series)}\n`);
}
