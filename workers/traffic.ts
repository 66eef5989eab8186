import type { CostRange } from './process/options.ts';

/** One job to add: when, counted from the start of the traffic, and its data. */
export interface PlannedJob {
  /** Its number, from 0, in the order of the plan. */
  readonly n: number;
  readonly atMs: number;
  readonly key: string;
  readonly cost: number;
}

export interface KeyedTraffic {
  /** Keys `k0` to `k(keys-1)`; `k0` floods. */
  readonly keys: number;
  /** The governor-wide limit, tokens a second. */
  readonly rate: number;
  /** The limit of each key, tokens a second. */
  readonly keyRate: number;
}

/** What the keys ask for, in tokens a second. */
export interface Demand {
  readonly floodRate: number;
  readonly otherRate: number;
  readonly totalRate: number;
}

/** The key that asks for more than it may have. */
export const FLOODING_KEY = 'k0';

/** A backlog: all jobs at once, one key. The same seed gives the same jobs. */
export function planBacklog(jobs: number, cost: CostRange, seed: number): PlannedJob[] {
  const random = randomFrom(seed);
  return Array.from({ length: jobs }, (_, n) => ({
    n,
    atMs: 0,
    key: FLOODING_KEY,
    cost: draw(cost, random),
  }));
}

/**
 * How much each key asks for. The flooding key wants five times its limit. The others want what they can all
 * have: each well under its own limit, and all together, with the flooding key held at its limit, under the
 * governor's. So if they get less, the flooding key is the cause.
 */
export function demandOf({ keys, rate, keyRate }: KeyedTraffic): Demand {
  const together = Math.min(0.6 * rate, 0.9 * (rate - keyRate));
  const otherRate = Math.min(together / (keys - 1), 0.8 * keyRate);
  const floodRate = 5 * keyRate;
  return { floodRate, otherRate, totalRate: floodRate + otherRate * (keys - 1) };
}

/** Traffic of many keys over time, in order of time. The same seed gives the same jobs. */
export function planTraffic(
  jobs: number,
  cost: CostRange,
  seed: number,
  traffic: KeyedTraffic,
): PlannedJob[] {
  const random = randomFrom(seed);
  const { floodRate, otherRate } = demandOf(traffic);
  const meanCost = (cost.min + cost.max) / 2;
  const sources = Array.from({ length: traffic.keys }, (_, i) => {
    const gapMs = (1000 * meanCost) / (i === 0 ? floodRate : otherRate);
    return { key: `k${i}`, gapMs, nextMs: random() * gapMs };
  });
  return Array.from({ length: jobs }, (_, n) => {
    let source = sources[0]!;
    for (const other of sources) if (other.nextMs < source.nextMs) source = other;
    const atMs = source.nextMs;
    // Half to one and a half of the mean gap: uneven, as traffic is, but no key floods by chance.
    source.nextMs += source.gapMs * (0.5 + random());
    return { n, atMs, key: source.key, cost: draw(cost, random) };
  });
}

/** Jobs of each key, all at once, one key after the other. Cost 1. */
export function planBacklogOfKeys(
  jobsOfKey: readonly (readonly [key: string, jobs: number])[],
): PlannedJob[] {
  const keys = jobsOfKey.flatMap(([key, jobs]) => Array.from({ length: jobs }, () => key));
  return keys.map((key, n) => ({ n, atMs: 0, key, cost: 1 }));
}

/** Jobs of each key at an even rate of its own, per second, in order of time. Cost 1. */
export function planPaced(
  ratePerKey: readonly (readonly [key: string, rate: number])[],
  seconds: number,
): PlannedJob[] {
  const jobs = ratePerKey.flatMap(([key, rate]) =>
    Array.from({ length: Math.floor(rate * seconds) }, (_, i) => ({ atMs: (1000 * i) / rate, key, cost: 1 })),
  );
  return jobs.sort((a, b) => a.atMs - b.atMs).map((job, n) => ({ n, ...job }));
}

/** BullMQ keeps ids that are whole numbers for itself. `source` tells producers of one queue apart. */
export function jobId(n: number, source = 'call'): string {
  return `${source}-${n}`;
}

/** The data of a job. */
export interface JobData {
  readonly cost: number;
  readonly key: string;
}

function draw({ min, max }: CostRange, random: () => number): number {
  return min + Math.floor(random() * (max - min + 1));
}

/** Mulberry32: small, and the same on every machine. */
function randomFrom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
