/**
 * What a call of lua/decide.lua is made of. Everything in it is a whole number, by position: this file says which. The build makes
 * lua/includes/protocol.lua from it.
 */

/** The operations, in the order of their numbers (from 1), and the part of lua/includes that has each under its name. */
export const OPERATION_PARTS = {
  setTerms: 'ask',
  acquire: 'decide/acquire',
  force: 'decide/force',
  cancel: 'decide/give-back',
  peek: 'decide/peek',
  atMost: 'decide/at-most',
  settle: 'decide/give-back',
  release: 'decide/give-back',
  renew: 'decide/give-back',
  leave: 'decide/give-back',
  pause: 'decide/pause',
  resume: 'decide/pause',
  report: 'decide/give-back',
  setHolder: 'ask',
} as const;

/** The kinds of buckets, in the order of their numbers (from 1). */
export const KINDS = ['rate', 'window', 'concurrency', 'share'] as const;

/** Why a request is refused, in the order of their numbers (from 0). The last: `paused`, with the whole governor. */
export const REASONS = [
  'rate',
  'line',
  'horizon',
  'window',
  'concurrency',
  'share',
  'paused',
  'governorPaused',
] as const;

/** How a window counts, in the order of their numbers (from 1). */
const MODES = ['fixed', 'sliding', 'log'] as const;

/**
 * The numbers of a limit, after that of its kind. A name that ends with ? is a yes (1) or no (0). Of a rate: rate is units a
 * microsecond, periodUs units a token; kept is what normal and low requests must leave. maxKeys 0: any number.
 */
export const LIMIT_FIELDS = {
  rate: ['rate', 'periodUs', 'burst', 'oversize?', 'maxKeys', 'fastest'],
  window: ['mode', 'max', 'windowUs', 'cells', 'aligned?', 'maxKeys'],
  concurrency: ['max', 'leaseUs'],
} as const;

/** What a limit may have besides, after those; all 0: it has none. Adaptive values are in thousandths; period 0: of slots. */
export const PART_FIELDS = {
  kept: ['any?', 'normal', 'low'],
  penalty: ['afterUs', 'permille', 'forUs'],
  adaptive: ['max', 'min', 'gradient?', 'latencyUs', 'errorPermille', 'periodUs'],
} as const;
export const LIMIT_PARTS = {
  rate: ['kept', 'penalty', 'adaptive'],
  window: [],
  concurrency: ['adaptive'],
} as const;

/** What peek replies for each bucket, in this order. */
export const REPORT_FIELDS = [
  'remaining',
  'waitUs',
  'lineUs',
  'pausedUs',
  'granted',
  'refused',
  'effective',
] as const;

type Numbers<Names extends readonly string[]> = Readonly<Record<Names[number], number>>;

/** Each name's number: its place in the list, counted from `first`. */
export const numbersOf = <const Names extends readonly string[]>(names: Names, first: number) =>
  Object.fromEntries(names.map((name, index) => [name, first + index])) as Numbers<Names>;

export const OPERATION = numbersOf(Object.keys(OPERATION_PARTS) as (keyof typeof OPERATION_PARTS)[], 1);
export const KIND = numbersOf(KINDS, 1);
export const MODE = numbersOf(MODES, 1);
