import { durationMs, knownNames, oneOf, plainObject } from '../checks.ts';
import type { Terms } from '../decide/ask.ts';
import type { Cost, Keys } from '../decide/demands.ts';
import { InvalidOptionError } from '../errors.ts';

/** How urgent a request is, to limits that `reserve` a share of their burst. */
export type Priority = 'high' | 'normal' | 'low';

/** Options of one request. */
export interface RequestOptions {
  /** Values for the limits declared with `by`, for example `{ shop: 'acme' }`. */
  keys?: Keys;
  /**
   * Default `'normal'`. Means something to limits with `reserve` only: those leave a share of their burst to the more urgent,
   * and `'high'` passes work that was deferred. A request that has waited for 10 s counts as one class more urgent, so that
   * none starves.
   */
  priority?: Priority;
  /**
   * Who holds the slots of concurrency limits: 1 to 200 characters. The same holder that asks again is let in again, and
   * has one slot; its earlier grant has lost it. Default: a new holder each time.
   */
  holder?: string;
}

export interface ReserveOptions extends RequestOptions {
  /** Longest time until the start, in milliseconds; 0: now or not at all. Default `Infinity`. */
  maxWaitMs?: number;
}

/** How this process asks: what waits and adapters add to a request. */
export interface AskOptions {
  keys?: Keys | undefined;
  priority?: Priority | undefined;
  holder?: string | undefined;
  maxWaitMs?: number;
  /**
   * Which refusals give a turn in the line. `'none'` (default): none. `'keyed'`: those of limits with `by`. `'all'`:
   * governor-wide limits too.
   */
  turns?: 'none' | 'keyed' | 'all';
  /** Longest time until a turn, in milliseconds. Default `Infinity`. */
  maxTurnMs?: number;
  /** This request was given a turn before and comes back from it. Default false. */
  returning?: boolean;
  /** A returning request that must wait no longer than this keeps its turn; milliseconds, default 1,000. */
  patienceMs?: number;
  /** How long the work has waited already, in milliseconds: what makes it more urgent with time. Default 0. */
  waitedMs?: number;
  /** It waits in the queue of a concurrency limit that has no slot. Default false. */
  queue?: boolean;
}

export interface WaitOptions extends RequestOptions {
  /** Longest wait in milliseconds; 0 never waits. Default `Infinity`. */
  maxWaitMs?: number;
  /** Ends the wait early; the call rejects with the signal's reason. */
  signal?: AbortSignal;
}

/** Options of a piece of work that is run under the limits. */
export interface RunOptions<T> extends WaitOptions {
  /** Tokens it takes. Default 1. */
  cost?: Cost;
  /** What it has cost after all, told from its result; see `Grant.settle`. */
  settle?: (result: T) => Cost;
}

export const PATIENCE_MS = 1_000;
/** A request that has waited for so long counts as one class more urgent. */
const AGES_MS = 10_000;
const FOREVER = Number.POSITIVE_INFINITY;

export const REQUEST_NAMES = ['keys', 'priority', 'holder'];
export const RESERVE_NAMES = [...REQUEST_NAMES, 'maxWaitMs'];
export const WAIT_NAMES = [...REQUEST_NAMES, 'maxWaitMs', 'signal'];
export const RUN_NAMES = [...WAIT_NAMES, 'cost', 'settle'];

const CLASSES = { high: 0, normal: 1, low: 2 } as const;

/** On the path of every decision: most requests have no options, or few. @throws {@link InvalidOptionError} */
export function checkNames(options: object, known: readonly string[]): void {
  knownNames('options', plainObject('options', options), known);
}

/** A request to which nothing else can be said. @throws {@link InvalidOptionError} */
export function checkedRequest(options: RequestOptions) {
  checkNames(options, REQUEST_NAMES);
  const { keys, priority, holder } = options;
  return { keys, priority: classOf(priority), holder: holderOf(holder) };
}

/** The class of a request that has waited for so long. */
export function classOf(priority: unknown = 'normal', waitedMs = 0): Terms['priority'] {
  const given = CLASSES[oneOf('priority', priority, ['high', 'normal', 'low'])];
  return Math.max(0, given - Math.floor(waitedMs / AGES_MS)) as Terms['priority'];
}

export function termsOf(options: AskOptions): Terms {
  const { priority, waitedMs, maxWaitMs = FOREVER, maxTurnMs = FOREVER, turns = 'none' } = options;
  return {
    maxWaitUs: toUs(durationMs('maxWaitMs', maxWaitMs, 0, FOREVER)),
    maxTurnUs: turns === 'none' ? 0 : toUs(maxTurnMs),
    turns: turns === 'all' ? 'all' : 'keyed',
    returning: options.returning ?? false,
    patienceUs: toUs(options.patienceMs ?? PATIENCE_MS),
    priority: classOf(priority, waitedMs),
    queue: options.queue ?? false,
  };
}

// A holder is half of a text in the store, before which a number and a space stand.
export function holderOf(holder: unknown): string | undefined {
  if (holder === undefined) return undefined;
  if (typeof holder === 'string' && holder.length >= 1 && holder.length <= 200 && !/\p{C}/u.test(holder))
    return holder;
  throw new InvalidOptionError('holder', '1 to 200 characters, none of them a control character', holder);
}

export function signalOf(signal: unknown): AbortSignal | undefined {
  if (signal === undefined || signal instanceof AbortSignal) return signal;
  throw new InvalidOptionError('signal', 'an AbortSignal', signal);
}

export const toUs = (ms: number): number => Math.min(Math.floor(ms * 1_000), Number.MAX_SAFE_INTEGER);
