import {
  check,
  exactly,
  flag,
  knownNames,
  oneOf,
  optional,
  plainObject,
  shareOf,
  wholeNumber,
} from '../checks.ts';
import { type Adaptive, type AdaptiveOptions, parseAdaptive } from './adaptive.ts';
import { type LimitKind, parseMaxKeys, perPeriod } from './kind.ts';
import { type Penalty, type PenaltyOptions, parsePenalty } from './penalty.ts';
import { checkExact, inUnits, RATE_SCALE } from './rate-units.ts';

/** A rate limit as a user writes it; {@link perSecond} and its like write it for them. */
export interface RateLimitOptions {
  kind?: 'rate';
  /** Tokens per period: above 0, at most 3 decimals (0.1 is taken as exactly 1 in 10 periods). */
  rate: number;
  /** Length of the period in milliseconds, above 0, at most 3 decimals (whole microseconds), at most 366 days. */
  periodMs: number;
  /**
   * Size of the bucket: the most tokens that may pass at one instant. A whole number from 1. Default: `rate`, but
   * at most one second's worth and at least 1, so that an idle night is not paid out in one blow. With `strict`: a tenth
   * of `rate`.
   */
  burst?: number;
  /** Name of the attribute that has a bucket of its own for each of its values, for example `'shop'`. */
  by?: string;
  /**
   * Never more than `rate` in any window of `periodMs`, for a provider that counts so. (A bucket alone lets
   * burst + rate × W pass.) The sustained rate is then `rate` − `burst` per period. Default false.
   */
  strict?: boolean;
  /** What becomes of a cost above the burst: `'refuse'` (default), an error; `'debt'`: it passes when the bucket is full, and leaves it owing. */
  oversize?: 'refuse' | 'debt';
  /**
   * Shares of the burst that are kept for requests of that priority and above, from 0 to 0.9 in all: with
   * `{ high: 0.2, normal: 0.1 }`, `normal` requests pass while more than 20 % remains and `low` ones while more than 30 %
   * does. Default: none is kept, and priorities mean nothing to this limit.
   */
  reserve?: { high?: number; normal?: number };
  /**
   * Only with `by`: the limit is one for all values of the attribute together, and they share it by weight (max-min): what
   * one does not use is the others'. Default false: each value has a limit of its own.
   */
  fair?: boolean;
  /** Only with `fair`: weights of values that do not have weight 1, whole numbers from 1 to 1,000. */
  weights?: Record<string, number>;
  /** The rate follows what the downstream can take, between two bounds; `rate` is where it starts. */
  adaptive?: AdaptiveOptions;
  /** A bucket that stays over its limit for long runs at a share of it for a while. */
  penalty?: PenaltyOptions;
  /**
   * Only with `by`: values beyond this many with state share one bucket, so that a long tail of them cannot fill the store.
   * A whole number from 1 to 10,000,000. Default: none share.
   */
  maxKeys?: number;
}

/**
 * A rate limit in exact numbers. One token is `periodUs` units of debt, and `rate` units drain each microsecond,
 * so that no rate and no period is ever rounded.
 */
export interface RateLimit {
  readonly name: string;
  readonly kind: 'rate';
  /** The attribute whose values have buckets of their own; null: one bucket for all. */
  readonly by: string | null;
  /** Units that drain per microsecond; `rate / periodUs` is tokens per microsecond (in lowest terms if it never changes). */
  readonly rate: number;
  readonly periodUs: number;
  readonly burst: number;
  /** Whether a cost above the burst passes when the bucket is full. */
  readonly oversize: boolean;
  /** Tokens of the burst that requests of priority 0 (high), 1 (normal) and 2 (low) must leave; null: priorities mean nothing. */
  readonly kept: readonly [number, number, number] | null;
  /** How its values share it; null: it is not shared. Then `by` is null, and `fair.by` names the attribute. */
  readonly fair: { readonly by: string; readonly weights: Readonly<Record<string, number>> } | null;
  readonly adaptive: Adaptive | null;
  readonly penalty: Penalty | null;
  readonly maxKeys: number | null;
  /** As it was written, complete: what the store keeps. */
  readonly options: Readonly<RateLimitOptions>;
}

const MAX_PERIOD_MS = 366 * 86_400_000;
const MAX_RATE = 1_000_000_000;
// A rate of which a share may be taken is kept this much finer, so that the share is whole units too.
const PENALTY_SCALE = 1_000;
const STRICT_BURST_SHARE = 10;
// 0.2 + 0.1 is a little more than 0.3.
const ROUNDING = 1e-9;

const RATE_NAMES = [
  'kind',
  'rate',
  'periodMs',
  'burst',
  'by',
  'strict',
  'oversize',
  'reserve',
  'fair',
  'weights',
  'adaptive',
  'penalty',
  'maxKeys',
];

/** `rate` tokens per second, evenly. */
export const perSecond = rateOver(1_000);
/** `rate` tokens per minute, evenly: `perMinute(60)` lets one pass each second. */
export const perMinute = rateOver(60_000);
/** `rate` tokens per hour, evenly. */
export const perHour = rateOver(3_600_000);
/** `rate` tokens per day of 24 hours, evenly. */
export const perDay = rateOver(86_400_000);

function rateOver(periodMs: number) {
  return (
    rate: number,
    options: Omit<RateLimitOptions, 'kind' | 'rate' | 'periodMs'> = {},
  ): RateLimitOptions => ({
    rate,
    periodMs,
    ...plainObject('options', options),
  });
}

export const RATE_LIMIT: LimitKind<RateLimit> = {
  parse(name, path, given, by) {
    knownNames(path, given, RATE_NAMES);
    const { rate, periodMs, burst, strict: isStrict = false, oversize: above = 'refuse' } = given;
    const strict = flag(`${path}.strict`, isStrict);
    const scaledRate = exactly(`${path}.rate`, rate, RATE_SCALE, MAX_RATE, 'tokens per period');
    const us = exactly(`${path}.periodMs`, periodMs, 1_000, MAX_PERIOD_MS, 'milliseconds');
    const size =
      burst === undefined
        ? defaultBurst(rate as number, us, strict)
        : wholeNumber(`${path}.burst`, burst, 1, Number.MAX_SAFE_INTEGER);
    const sustained = strict ? scaledRate - size * RATE_SCALE : scaledRate;
    check(sustained > 0, `${path}.burst`, `less than the rate ${rate}, which strict needs`, size);
    const { rate: unitsPerUs, periodUs } =
      given.adaptive === undefined
        ? inUnits(sustained, us, given.penalty === undefined ? 1 : PENALTY_SCALE)
        : // Thousandths of a token per period, whatever they come to: what the rate is changed in.
          { rate: sustained, periodUs: us * RATE_SCALE };
    checkExact(path, unitsPerUs, periodUs, size, rate);
    const fair = parseFair(path, given, by);
    const initial = sustained / RATE_SCALE;
    const adaptive =
      optional(given.adaptive, (value) => parseAdaptive(`${path}.adaptive`, value, initial)) ?? null;
    if (adaptive !== null) {
      // The largest rate it may come to must be exact too.
      checkExact(path, Math.ceil(adaptive.max * RATE_SCALE), periodUs, size, adaptive.max);
    }
    const penalty = optional(given.penalty, (value) => parsePenalty(`${path}.penalty`, value)) ?? null;
    const maxKeys = parseMaxKeys(path, given.maxKeys, by, fair !== null);
    const oversize = oneOf(`${path}.oversize`, above, ['refuse', 'debt']);
    const { kept, reserve } = parseReserve(`${path}.reserve`, given.reserve, size);
    const options = {
      kind: 'rate',
      rate: rate as number,
      periodMs: periodMs as number,
      burst: size,
      ...(by !== null && { by }),
      ...(strict && { strict }),
      ...(oversize === 'debt' && { oversize }),
      ...(reserve && { reserve }),
      ...(fair && { fair: true, weights: fair.weights }),
      ...(adaptive && { adaptive: adaptive.options }),
      ...(penalty && { penalty: penalty.options }),
      ...(maxKeys !== null && { maxKeys }),
    } as const;
    return Object.freeze({
      name,
      kind: 'rate',
      by: fair === null ? by : null,
      rate: unitsPerUs,
      periodUs,
      burst: size,
      oversize: oversize === 'debt',
      kept,
      fair,
      adaptive,
      penalty,
      maxKeys,
      options: Object.freeze(options),
    });
  },
  words: ({ kind, rate, periodMs, ...rest }) => [`${rate} ${perPeriod(periodMs)}`, rest],
  attributeOf: ({ by, fair }) => fair?.by ?? by,
  size: ({ burst }) => burst,
  mostCost: ({ oversize, burst }) => (oversize ? Number.POSITIVE_INFINITY : burst),
  countsTokens: true,
  fillingUs,
  intervalUs: ({ periodUs, rate }, cost) => (cost * periodUs) / rate,
};

function fillingUs(limit: RateLimit): number {
  const { rate: perPeriod, burst = 0, strict = false } = limit.options;
  const sustained = strict ? perPeriod - burst : perPeriod;
  const slowest = (limit.adaptive?.min ?? sustained) / sustained;
  const share = (limit.penalty?.permille ?? 1_000) / 1_000;
  return Math.ceil((limit.burst * limit.periodUs) / limit.rate / slowest / share);
}

function defaultBurst(rate: number, us: number, strict: boolean): number {
  if (strict) return Math.max(1, Math.floor(rate / STRICT_BURST_SHARE));
  return Math.max(1, Math.min(Math.floor(rate), Math.floor((rate * 1_000_000) / us)));
}

function parseReserve(path: string, value: unknown, burst: number) {
  if (value === undefined) return { kept: null, reserve: undefined };
  const given = plainObject(path, value);
  knownNames(path, given, ['high', 'normal']);
  const { high: ofHigh = 0, normal: ofNormal = 0 } = given;
  const high = shareOf(`${path}.high`, ofHigh, 0, 0.9);
  const normal = shareOf(`${path}.normal`, ofNormal, 0, 0.9);
  check(high + normal <= 0.9, path, 'shares of 0.9 in all at most', value);
  // Rounded up, so that a share of a small burst is a token at least; down where all of the burst would be kept.
  const keptFrom = (share: number) => Math.min(burst - 1, Math.ceil(share * burst - ROUNDING));
  const kept = Object.freeze([0, keptFrom(high), keptFrom(high + normal)] as const);
  return { kept, reserve: Object.freeze({ high, normal }) };
}

function parseFair(path: string, given: Record<string, unknown>, by: string | null): RateLimit['fair'] {
  const { fair: isFair = false } = given;
  const fair = flag(`${path}.fair`, isFair);
  const { weights: asked } = given;
  const shared = 'the attribute whose values share the limit, which fair needs';
  check(!fair || by !== null, `${path}.by`, shared, given.by);
  check(fair || asked === undefined, `${path}.weights`, 'weights only together with fair: true', asked);
  if (!fair) return null;
  const weights = Object.entries(plainObject(`${path}.weights`, asked === undefined ? {} : asked)).map(
    ([key, weight]) => [key, wholeNumber(`${path}.weights.${key}`, weight, 1, 1_000)] as const,
  );
  return Object.freeze({ by: by!, weights: Object.freeze(Object.fromEntries(weights)) });
}
