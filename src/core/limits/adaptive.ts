import { check, durationMs, knownNames, oneOf, optional, plainObject, shareOf } from '../checks.ts';

/** How a limit follows what the downstream can take. */
export interface AdaptiveOptions {
  /** The least the limit may come to: tokens per period, or slots. Above 0, at most what the limit starts with; three decimals. */
  min: number;
  /** The most: from what the limit starts with to 1e9, of slots to 10,000; three decimals. */
  max: number;
  /** What counts as too much, apart from an answer that says so (a 429). */
  target?: {
    /** A mean latency over this is too much; milliseconds, 1 to 3,600,000. Default: latency is not looked at. */
    latencyMs?: number;
    /** A share of failed calls over this is too much: 0.001 to 1. Default: failures are not looked at. */
    errorRate?: number;
  };
  /**
   * `'aimd'` (default): falls by a share when there is too much, rises by steps with time. `'gradient'`: also follows how
   * the latest latency compares with the usual, before anything fails.
   */
  mode?: 'aimd' | 'gradient';
}

/** The same, checked and complete. */
export interface Adaptive {
  readonly min: number;
  readonly max: number;
  readonly mode: 'aimd' | 'gradient';
  /** Microseconds; 0: not looked at. */
  readonly latencyUs: number;
  /** Thousandths of the calls; 0: not looked at. */
  readonly errorPermille: number;
  readonly options: Readonly<AdaptiveOptions>;
}

/**
 * @param initial - Where the limit starts, in the same unit as `min` and `max`.
 * @throws {@link InvalidOptionError}
 */
export function parseAdaptive(path: string, value: unknown, initial: number, most = 1e9): Adaptive {
  const given = plainObject(path, value);
  knownNames(path, given, ['min', 'max', 'target', 'mode']);
  const { target: goal = {}, mode: asked = 'aimd' } = given;
  const min = amount(`${path}.min`, given.min, 0, initial, `above 0, at most the ${initial} it starts with`);
  const fromInitial = `from the ${initial} it starts with to ${most}`;
  const max = amount(`${path}.max`, given.max, initial, most, fromInitial);
  const target = plainObject(`${path}.target`, goal);
  knownNames(`${path}.target`, target, ['latencyMs', 'errorRate']);
  const latencyMs = optional(target.latencyMs, (value) =>
    durationMs(`${path}.target.latencyMs`, value, 1, 3_600_000),
  );
  const errorRate = optional(target.errorRate, (value) =>
    shareOf(`${path}.target.errorRate`, value, 0.001, 1),
  );
  const mode = oneOf(`${path}.mode`, asked, ['aimd', 'gradient']);
  const goals = {
    ...(latencyMs !== undefined && { latencyMs }),
    ...(errorRate !== undefined && { errorRate }),
  };
  const hasGoals = Object.keys(goals).length > 0;
  return Object.freeze({
    min,
    max,
    mode,
    latencyUs: Math.round((latencyMs ?? 0) * 1_000),
    errorPermille: Math.round((errorRate ?? 0) * 1_000),
    options: Object.freeze({ min, max, ...(hasGoals && { target: goals }), mode }),
  });
}

// Three decimals, as a rate itself has: the store keeps it in thousandths.
function amount(option: string, value: unknown, least: number, most: number, range: string): number {
  const inRange = typeof value === 'number' && value >= least && value <= most;
  const scaled = inRange ? Math.round(value * 1_000) : 0;
  check(scaled >= 1, option, `a number ${range}`, value);
  return scaled / 1_000;
}
