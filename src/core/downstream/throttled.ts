import { durationMs, knownNames, plainObject } from '../checks.ts';
import { type Keys, keyValue } from '../decide/demands.ts';
import { InvalidOptionError } from '../errors.ts';

/** No downstream means to be left alone for longer than this (a leap year): an answer that says so is damaged. */
export const MAX_PAUSE_MS = 366 * 86_400_000;

export interface ThrottledOptions {
  /** How long the downstream wants to be left alone, in milliseconds: 0 to 366 days. Default 0. */
  retryAfterMs?: number;
  /** The same as its Retry-After header says it: seconds, or a date. Null or what cannot be read says nothing. */
  retryAfter?: string | null;
  /** The keys that it throttles, for example `{ shop: 'acme' }`. Left out: the whole governor. */
  keys?: Keys;
  message?: string;
}

/**
 * Thrown by work whose call the downstream answered with "too many requests": by a governed processor, or in `run`. The
 * governor is paused, for the keys or as a whole, in all processes. A BullMQ job goes back without an attempt and without
 * a `failed` event; `run` rejects with it. Of two times the longer counts. Without any nothing is paused, and a BullMQ job
 * stays away for a second.
 *
 * @throws {@link InvalidOptionError} `FLYBALL_INVALID_OPTION`.
 *
 * @example
 * if (response.status === 429) {
 *   throw new Throttled({ retryAfter: response.headers.get('retry-after'), keys: { shop } });
 * }
 */
export class Throttled extends Error {
  readonly retryAfterMs: number;
  readonly retryAfter: string | null;
  readonly keys?: Keys;
  // A plain property, so that another copy of the package knows it, and a sandbox brings it along.
  readonly flyballThrottled = true;

  constructor(options: ThrottledOptions = {}) {
    const given = plainObject('options', options) as Partial<ThrottledOptions>;
    knownNames('options', given, ['retryAfterMs', 'retryAfter', 'keys', 'message']);
    const { retryAfterMs = 0, retryAfter = null, keys, message } = given;
    if (message !== undefined && typeof message !== 'string') {
      throw new InvalidOptionError('message', 'a string', message);
    }
    if (retryAfter !== null && typeof retryAfter !== 'string') {
      throw new InvalidOptionError('retryAfter', 'a string, as in a Retry-After header, or null', retryAfter);
    }
    const afterMs = durationMs('retryAfterMs', retryAfterMs, 0, MAX_PAUSE_MS);
    super(message ?? 'the downstream answered "too many requests"');
    this.name = 'Throttled';
    this.retryAfterMs = afterMs;
    this.retryAfter = retryAfter;
    if (keys !== undefined) this.keys = checkedKeys(keys);
  }
}

/** Whether `error` is a {@link Throttled}, by whichever copy of the package, or from a sandbox. */
export function isThrottled(error: unknown): error is Throttled {
  if (typeof error !== 'object' || error === null || !('flyballThrottled' in error)) return false;
  const { flyballThrottled, retryAfterMs } = error as Partial<Throttled>;
  return flyballThrottled === true && typeof retryAfterMs === 'number' && retryAfterMs >= 0;
}

/** How long a throttled call asks for, in milliseconds. @param wallMs - This machine's wall clock, for a date. */
export function pauseOf(throttled: Throttled, wallMs: number): number {
  const saidMs = retryAfterOf(throttled.retryAfter ?? undefined, wallMs) ?? 0;
  return Math.min(MAX_PAUSE_MS, Math.max(throttled.retryAfterMs, saidMs));
}

// No key at all would pause the whole governor, which is not what was meant.
function checkedKeys(keys: Keys): Keys {
  const entries = Object.entries(plainObject('keys', keys));
  if (entries.length === 0) throw new InvalidOptionError('keys', 'at least one attribute, or nothing', keys);
  for (const [attribute, value] of entries) keyValue(attribute, value);
  return Object.freeze({ ...keys });
}

/** Milliseconds from now on, of either form of Retry-After; undefined if it is not valid. */
export function retryAfterOf(value: string | undefined, nowMs: number): number | undefined {
  if (typeof value !== 'string') return undefined;
  const text = value.trim();
  if (/^\d+(\.\d+)?$/.test(text)) return Math.ceil(Number(text) * 1_000);
  const ms = dateMs(text);
  return ms === undefined ? undefined : Math.max(0, ms - nowMs);
}

const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'];

/** Milliseconds since the epoch of an HTTP date (RFC 9110, IMF-fixdate); undefined if it is not valid. */
export function dateMs(text: string | undefined): number | undefined {
  const found = /^\w{3}, (\d{2}) (\w{3}) (\d{4}) (\d{2}):(\d{2}):(\d{2}) GMT$/.exec(text?.trim() ?? '');
  const month = MONTHS.indexOf(found?.[2] ?? '');
  if (found === null || month < 0) return undefined;
  const [day = 0, , year = 0, hour = 0, minute = 0, second = 0] = found.slice(1).map(Number);
  return daysSinceEpoch(year, month + 1, day) * 86_400_000 + ((hour * 60 + minute) * 60 + second) * 1_000;
}

// The civil calendar in whole numbers, counted from March so that a leap day comes last. (core has no Date.)
function daysSinceEpoch(year: number, month: number, day: number): number {
  const years = month <= 2 ? year - 1 : year;
  const era = Math.floor(years / 400);
  const ofEra = years - era * 400;
  const ofYear = Math.floor((153 * ((month + 9) % 12) + 2) / 5) + day - 1;
  return era * 146_097 + ofEra * 365 + Math.floor(ofEra / 4) - Math.floor(ofEra / 100) + ofYear - 719_468;
}
