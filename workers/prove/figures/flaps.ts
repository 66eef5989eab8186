/** The limits in force, read from the store again and again. */
export interface FlapFigures {
  /** Changes other than the one from old to new. */
  readonly flaps: number;
  readonly changes: number;
  readonly samples: number;
}

/** @param rates - In order of time. @param newRate - The one that a deploy brings; if it never came, that counts as a flap too. */
export function flapFigures(rates: readonly number[], newRate: number): FlapFigures {
  const changes = rates.filter((rate, i) => i > 0 && rate !== rates[i - 1]).length;
  const flaps = rates.at(-1) === newRate ? changes - 1 : Math.max(1, changes);
  return { flaps, changes, samples: rates.length };
}
