import { check, exactly, flag, knownNames, oneOf, wholeNumber } from '../checks.ts';
import { type LimitKind, parseMaxKeys, perPeriod } from './kind.ts';

/** A window limit as a user writes it: at most so much per window, all of it at once if need be. */
export interface WindowLimitOptions {
  kind: 'window';
  /** Tokens per window: a whole number from 1. */
  max: number;
  /** Length of the window in milliseconds, above 0, at most 3 decimals, at most 366 days. */
  windowMs: number;
  /**
   * `'fixed'` (default): counts from the start of each window; up to 2 × `max` pass around an edge. `'sliding'`: counts in
   * `cells`, the oldest by its remaining share; at most `max` in any windowMs × (1 − 1/cells), up to 2 × `max` in windowMs.
   * `'log'`: exact, at most `max` in any windowMs; keeps an entry for each grant.
   */
  mode?: 'fixed' | 'sliding' | 'log';
  /** Only with `'fixed'`: windows begin at whole multiples of their length since 1970 (true), or with the first use (false, the default). */
  aligned?: boolean;
  /** Only with `'sliding'`: cells in a window, 2 to 100. Default 10. */
  cells?: number;
  /** Name of the attribute that has a window of its own for each of its values. */
  by?: string;
  /** As for a rate limit. */
  maxKeys?: number;
}

/** A window limit in exact numbers. */
export interface WindowLimit {
  readonly name: string;
  readonly kind: 'window';
  readonly by: string | null;
  readonly mode: 'fixed' | 'sliding' | 'log';
  readonly max: number;
  /** For `'sliding'` a multiple of `cells`. */
  readonly windowUs: number;
  readonly aligned: boolean;
  readonly cells: number;
  readonly maxKeys: number | null;
  readonly options: Readonly<WindowLimitOptions>;
}

const MAX_WINDOW_MS = 366 * 86_400_000;
// The weighted cell of a sliding window is a product of the two; it has to stay exact.
const MAX_PRODUCT = 2 ** 52;
const MAX_TOKENS = 2 ** 40;
/** More entries than this in a log are asked for by mistake: 100 bytes each. */
const MAX_LOG = 1_000_000;

const WINDOW_NAMES = ['kind', 'max', 'windowMs', 'mode', 'aligned', 'cells', 'by', 'maxKeys'];

export const WINDOW_LIMIT: LimitKind<WindowLimit> = {
  parse(name, path, given, by) {
    knownNames(path, given, WINDOW_NAMES);
    const { mode: asked = 'fixed', aligned: isAligned = false, cells = 10 } = given;
    const mode = oneOf(`${path}.mode`, asked, ['fixed', 'sliding', 'log']);
    const max = wholeNumber(`${path}.max`, given.max, 1, mode === 'log' ? MAX_LOG : MAX_TOKENS);
    const windowUs = exactly(`${path}.windowMs`, given.windowMs, 1_000, MAX_WINDOW_MS, 'milliseconds');
    const aligned = flag(`${path}.aligned`, isAligned);
    const nothing = `nothing with mode '${mode}'`;
    check(given.aligned === undefined || mode === 'fixed', `${path}.aligned`, nothing, aligned);
    check(given.cells === undefined || mode === 'sliding', `${path}.cells`, nothing, cells);
    const cellCount = wholeNumber(`${path}.cells`, cells, 2, 100);
    if (mode === 'sliding') {
      const whole = `a whole number of microseconds for each of ${cellCount} cells`;
      check(windowUs % cellCount === 0, `${path}.windowMs`, whole, given.windowMs);
      const exact = 'less, or more cells or a shorter window, which can be counted exactly';
      check(max * (windowUs / cellCount) <= MAX_PRODUCT, `${path}.max`, exact, max);
    }
    const maxKeys = parseMaxKeys(path, given.maxKeys, by);
    return Object.freeze({
      name,
      kind: 'window',
      by,
      mode,
      max,
      windowUs,
      aligned,
      cells: cellCount,
      maxKeys,
      options: Object.freeze({
        kind: 'window',
        max,
        windowMs: given.windowMs as number,
        mode,
        ...(mode === 'fixed' && { aligned }),
        ...(mode === 'sliding' && { cells: cellCount }),
        ...(by !== null && { by }),
        ...(maxKeys !== null && { maxKeys }),
      }),
    });
  },
  words: ({ kind, max, windowMs, mode, ...rest }) => [`${max} ${perPeriod(windowMs)}, ${mode} window`, rest],
  attributeOf: ({ by }) => by,
  size: ({ max }) => max,
  mostCost: ({ max }) => max,
  countsTokens: true,
  fillingUs: ({ windowUs }) => windowUs,
  intervalUs: ({ windowUs, max }, cost) => (cost * windowUs) / max,
};
