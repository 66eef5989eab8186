import type { Grant } from '../answers.ts';
import { durationMs, flag, knownNames, plainObject } from '../checks.ts';
import type { Keys } from '../decide/demands.ts';
import { InvalidOptionError } from '../errors.ts';
import { dateMs, MAX_PAUSE_MS, retryAfterOf } from './throttled.ts';

/** Anything that headers can be read from: `Headers` of fetch, or an object with names in lower case. */
export type HeadersLike =
  | { get(name: string): string | null }
  | Readonly<Record<string, string | readonly string[] | number | undefined>>;

/** What the downstream says of how it is treated. */
export interface FeedbackOptions {
  /** It answered "too many requests" (a 429). Without a time nothing is paused; adaptive limits fall. */
  throttled?: boolean;
  /** The call failed in another way. For adaptive limits. */
  failed?: boolean;
  /** How long the call took, in milliseconds. For adaptive limits. */
  latencyMs?: number;
  /** Nothing is to be sent for so long, in milliseconds. */
  retryAfterMs?: number;
  /** The same as HTTP says it: seconds, or a date. */
  retryAfter?: string;
  /**
   * The answer's headers. Read are Retry-After, and where nothing remains RateLimit (or X-RateLimit-Remaining with
   * X-RateLimit-Reset). They can begin a pause, and never end one.
   */
  headers?: HeadersLike;
  /** The keys that it concerns. Left out: the whole governor. */
  keys?: Keys;
  /** The grant under which the call was made: what an adaptive limit counts from. Without it: now. */
  grant?: Grant;
}

const NAMES = ['throttled', 'failed', 'latencyMs', 'retryAfterMs', 'retryAfter', 'headers', 'keys', 'grant'];
const FOREVER = Number.POSITIVE_INFINITY;
// A reset further off than this (from 1970 on, in seconds) is a date, as some services send it.
const IS_A_DATE_S = 1_000_000_000;
const MAX_HEADER = 1_000;

/**
 * Reads what a downstream says. Of several times the longest counts: Retry-After is a floor.
 *
 * @param wallMs - This machine's wall clock, for dates in headers that come without a Date of their own.
 * @throws {@link InvalidOptionError} for options that are not valid. Headers that cannot be read say nothing.
 */
export function parseFeedback(options: unknown, wallMs: number) {
  const given = plainObject('options', options) as FeedbackOptions;
  knownNames('options', given, NAMES);
  const { throttled = false, failed = false, headers, latencyMs, retryAfterMs = 0, retryAfter } = given;
  const read = headers === undefined ? () => undefined : reader(headers);
  const nowMs = dateMs(read('date')) ?? wallMs;
  const times = [
    durationMs('retryAfterMs', retryAfterMs, 0, FOREVER),
    retryAfter === undefined ? 0 : strictly(retryAfterOf(retryAfter, nowMs), retryAfter),
    retryAfterOf(read('retry-after'), nowMs) ?? 0,
    resetOf(read, nowMs),
  ];
  return {
    throttled: flag('throttled', throttled),
    failed: flag('failed', failed),
    latencyMs: latencyMs === undefined ? undefined : durationMs('latencyMs', latencyMs, 0, FOREVER),
    /** 0: no pause was asked for. */
    pauseMs: Math.max(0, Math.min(MAX_PAUSE_MS, Math.max(...times))),
    keys: given.keys,
    grant: given.grant,
  };
}

function strictly(ms: number | undefined, received: unknown): number {
  if (ms !== undefined) return ms;
  throw new InvalidOptionError('retryAfter', 'seconds or an HTTP date, as in a Retry-After header', received);
}

function reader(headers: HeadersLike): (name: string) => string | undefined {
  if (typeof headers !== 'object' || headers === null || Array.isArray(headers)) {
    throw new InvalidOptionError('headers', 'Headers or an object', headers);
  }
  const { get } = headers as { get?: unknown };
  if (typeof get === 'function') {
    const read = get as (name: string) => unknown;
    return (name) => textOf(read.call(headers, name));
  }
  const byName = new Map(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));
  return (name) => textOf(byName.get(name));
}

// Clients of HTTP give texts, numbers, lists or null.
function textOf(value: unknown): string | undefined {
  const first: unknown = Array.isArray(value) ? value[0] : value;
  return typeof first === 'string' || typeof first === 'number' ? String(first) : undefined;
}

/** Milliseconds until something remains again, if nothing does now; else 0. The longest of several policies. */
function resetOf(read: (name: string) => string | undefined, nowMs: number): number {
  const policies = (read('ratelimit') ?? '').slice(0, MAX_HEADER).split(/,(?=\s*")/);
  const resets = policies.map((policy) => {
    const remaining = param(policy, ['r', 'remaining']);
    return remaining === 0 ? (param(policy, ['t', 'reset']) ?? 0) : 0;
  });
  const remaining = read('ratelimit-remaining') ?? read('x-ratelimit-remaining');
  const reset = read('ratelimit-reset') ?? read('x-ratelimit-reset') ?? '';
  const isOut = remaining !== undefined && /^0+$/.test(remaining.trim());
  if (isOut && /^\d+(\.\d+)?$/.test(reset.trim())) resets.push(Number(reset));
  return Math.max(
    ...resets.map((seconds) => (seconds >= IS_A_DATE_S ? dateS(seconds) * 1_000 - nowMs : seconds * 1_000)),
  );
}

// Some services send milliseconds.
const dateS = (value: number): number => (value >= IS_A_DATE_S * 100 ? value / 1_000 : value);

function param(policy: string, names: readonly string[]): number | undefined {
  for (const part of policy.split(/[;,]/)) {
    const [name, value] = part.split('=').map((text) => text.trim());
    if (names.includes(name!) && /^\d+$/.test(value ?? '')) return Number(value);
  }
  return undefined;
}
