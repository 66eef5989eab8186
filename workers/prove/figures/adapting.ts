import type { Arrival } from '../../downstream/arrivals.ts';
import { round } from '../../measure/measure.ts';
import { ratePerSecond } from '../../measure/rolling.ts';

/** A time in which the service could take `capacity` calls a second; microseconds of its clock. */
export interface Phase {
  readonly capacity: number;
  readonly fromUs: number;
  readonly toUs: number;
}

/** The limit as the governor had it at a moment. */
export interface Sample {
  readonly atUs: number;
  readonly limit: number;
}

export interface PhaseFigures {
  readonly capacity: number;
  /** Calls that were accepted, over what the capacity allows, from 10 s after the phase began to its end. */
  readonly used: number;
  /** The share of all calls in that time that was answered 429. */
  readonly refusedShare: number;
  /** The same over the whole phase. */
  readonly refusedShareOfAll: number;
}

/** One point of the chart. */
export interface SeriesPoint {
  readonly atMs: number;
  readonly capacity: number;
  readonly limit: number;
  readonly acceptedPerS: number;
  readonly throttledPerS: number;
}

const SETTLING_US = 10_000_000;
const STEP_US = 500_000;

export function adaptiveFigures(arrivals: readonly Arrival[], phases: readonly Phase[]): PhaseFigures[] {
  return phases.map(({ capacity, fromUs, toUs }) => {
    const settledUs = fromUs + SETTLING_US;
    const { accepted } = ratesOf(arrivals, settledUs, toUs);
    return {
      capacity,
      used: round(accepted / capacity),
      refusedShare: refusedShare(arrivals, settledUs, toUs),
      refusedShareOfAll: refusedShare(arrivals, fromUs, toUs),
    };
  });
}

/** Half-second steps from the first phase to the end of the last; the limit as it was last seen in or before each. */
export function adaptiveSeries(
  arrivals: readonly Arrival[],
  phases: readonly Phase[],
  samples: readonly Sample[],
): SeriesPoint[] {
  const startUs = phases[0]!.fromUs;
  return phases.flatMap(({ capacity, fromUs, toUs }) => {
    const steps = Math.floor((toUs - fromUs) / STEP_US);
    return Array.from({ length: steps }, (_, i): SeriesPoint => {
      const beginUs = fromUs + i * STEP_US;
      const endUs = beginUs + STEP_US;
      const { accepted, refused } = ratesOf(arrivals, beginUs, endUs);
      const seen = samples.findLast(({ atUs }) => atUs < endUs) ?? samples[0]!;
      return {
        atMs: Math.round((beginUs - startUs) / 1000),
        ...{ capacity, limit: seen.limit, acceptedPerS: accepted, throttledPerS: refused },
      };
    });
  });
}

function ratesOf(arrivals: readonly Arrival[], fromUs: number, toUs: number) {
  const one = (refused: 0 | 1) =>
    arrivals.filter((arrival) => arrival[6] === refused).map(([atUs]) => ({ atUs, cost: 1 }));
  return { accepted: ratePerSecond(one(0), fromUs, toUs), refused: ratePerSecond(one(1), fromUs, toUs) };
}

function refusedShare(arrivals: readonly Arrival[], fromUs: number, toUs: number): number {
  const { accepted, refused } = ratesOf(arrivals, fromUs, toUs);
  return round(refused === 0 ? 0 : refused / (accepted + refused));
}
