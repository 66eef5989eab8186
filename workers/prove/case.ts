import type { Ground } from '../parent/conduct.ts';

/** What a case works with. */
export interface Stage extends Ground {
  /** Names queues and governors of this run; a case may add to it. */
  readonly name: string;
  /** Reports the progress of the run. */
  readonly say: (line: string) => void;
}

/** One promise, and what was measured. */
export interface Demand {
  readonly what: string;
  readonly promised: string;
  readonly was: string;
  readonly kept: boolean;
}

/** What a run has shown. */
export interface Proof {
  /** By the names of the JSON. */
  readonly figures: object;
  readonly demands: readonly Demand[];
  /** The course over time, for a chart. */
  readonly series?: readonly object[];
}

/** A promise, and a run of real processes that shows whether it is kept. */
export interface ProveCase {
  readonly name: string;
  /** One line for the list. */
  readonly about: string;
  run(stage: Stage): Promise<Proof>;
}

type Measured = number | null;

/** @param was - Null or not finite: it could not be measured or never came, which breaks the promise. */
export function atMost(what: string, was: Measured, most: number, unit = ''): Demand {
  return demand(what, was, `≤ ${number(most, unit)}`, (value) => value <= most, unit);
}

export function atLeast(what: string, was: Measured, least: number, unit = ''): Demand {
  return demand(what, was, `≥ ${number(least, unit)}`, (value) => value >= least, unit);
}

export function exactly(what: string, was: Measured, value: number): Demand {
  return demand(what, was, number(value), (measured) => measured === value);
}

function demand(
  what: string,
  was: Measured,
  promised: string,
  isKept: (value: number) => boolean,
  unit = '',
): Demand {
  const measured = was !== null && Number.isFinite(was);
  return { what, promised, was: measured ? number(was, unit) : 'never', kept: measured && isKept(was) };
}

/** Shares read better as percent. */
function number(value: number, unit = ''): string {
  if (unit === '%') return `${(value * 100).toLocaleString('en-US', { maximumFractionDigits: 1 })} %`;
  const text = value.toLocaleString('en-US', { maximumFractionDigits: 1 });
  return unit === '' ? text : `${text} ${unit}`;
}
