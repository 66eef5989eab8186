import type { Adaptive } from '../limits/adaptive.ts';
import {
  JUDGED_CALLS,
  JUDGED_US,
  LEAST_CUT_KEEPS,
  LEAST_FAILED,
  LOOK_SOON_US,
  LOOK_US,
  MAX_CLIMB_US,
  MAX_CLOCK_STEP_US,
  MAX_STEP_US,
  MOST,
  MOST_CUT_KEEPS,
  NEXT_CUT_KEEPS,
  NEXT_CUT_US,
  RETURN_US,
  SETTLE_US,
  SHARE_OF_AT_LEAST,
  TOKEN_STEP_US,
  TOLERANCE,
  USE_TOKENS,
  USE_US,
} from './constants.ts';

/**
 * A limit that follows what the downstream can take (docs/adaptive.md says why these rules, and what they come to).
 *
 * Nothing runs in the background and nobody leads: each call that touches the limit brings its state up to date
 * ({@link risen}), each report of finished calls may cut it ({@link observed}), and the first to come does it for
 * all. State is whole numbers. lua/includes/buckets/adaptive.lua is the same in Lua, operation for operation;
 * test/lua/adaptive.test.ts holds the two together.
 */
export interface AdaptiveState {
  /** The limit now, in thousandths of a token per period, or of a slot. */
  value: number;
  /** The level that was too much when it was last cut, as far as that is known: what it climbs back to, and then past. */
  bad: number;
  /** How long it has climbed since, in microseconds; time in which less than half was used does not count. */
  climbUs: number;
  /** The store's clock when it was last cut: only calls granted after that can cut it again. */
  cutUs: number;
  /** Up to when use has been looked at. */
  riseUs: number;
  /** Tokens granted since `riseUs`; of slots, the most that were held at once. */
  used: number;
  /** 1: at least half of the limit was used when that was last looked at; else 0. */
  busy: number;
  /** Since when calls are counted here, and what they came to. */
  windowUs: number;
  calls: number;
  failed: number;
  latencySumUs: number;
  /** For `'gradient'`: the latency of calls that do not queue, in nanoseconds; 0: not known. */
  usualNs: number;
  /** For `'gradient'`: when to look at it next, with half the load; and the value to come back to, 0: no look is under way. */
  lookUs: number;
  lookFrom: number;
}

/** What calls came to, from one process; those of one report are near each other in time. */
export interface AdaptiveReport {
  /**
   * The store's clock when the calls were granted. If any were throttled, the latest grant among those; else the earliest
   * of all. A call that waited for its start counts from its grant: no later cut could have stopped it.
   */
  readonly startedUs: number;
  /** Calls that ended, throttled and failed ones included. */
  readonly calls: number;
  /** Those of them that the downstream turned away as too many. */
  readonly throttled: number;
  readonly failed: number;
  readonly latencySumUs: number;
}

/** @param initial - Where the limit starts: tokens per period, or slots. */
export function begun(rule: Adaptive, initial: number, nowUs: number): AdaptiveState {
  const value = within(rule, Math.round(initial * 1_000));
  return {
    value,
    bad: value,
    // As if it had just come back to a level that was too much: it probes from here, slowly at first.
    climbUs: RETURN_US,
    cutUs: 0,
    riseUs: nowUs,
    used: 0,
    busy: 0,
    windowUs: nowUs,
    calls: 0,
    failed: 0,
    latencySumUs: 0,
    usualNs: 0,
    lookUs: 0,
    lookFrom: 0,
  };
}

/**
 * The state brought to `nowUs`; to be called before any other function here, whenever the limit is touched.
 *
 * The limit rises with the time in which at least half of it was used: what nobody uses proves nothing. A clock that
 * steps back gives nothing.
 *
 * @param periodUs - The period that `value` is per; 0: the limit is of slots.
 */
export function risen(state: AdaptiveState, rule: Adaptive, periodUs: number, nowUs: number): AdaptiveState {
  const next = { ...state, value: within(rule, state.value) };
  if (next.riseUs - nowUs > MAX_CLOCK_STEP_US) return rewound(next, nowUs);
  const elapsedUs = nowUs - next.riseUs;
  if (elapsedUs < USE_US) return next;
  const allowed = periodUs === 0 ? next.value : (next.value * elapsedUs) / periodUs;
  if (periodUs > 0 && allowed < USE_TOKENS * 1_000) return next;
  const busy = next.used * 2_000 >= allowed;
  if (busy && rule.mode === 'aimd') climb(next, rule, Math.min(elapsedUs, stepUs(next, periodUs)));
  next.busy = busy ? 1 : 0;
  next.riseUs = nowUs;
  next.used = 0;
  return next;
}

const stepUs = ({ used }: AdaptiveState, periodUs: number): number =>
  periodUs === 0 ? MAX_STEP_US : Math.min(MAX_STEP_US, used * TOKEN_STEP_US);

/**
 * Along a cubic curve through 0.9 × bad at the start, bad after {@link RETURN_US} and 1.1 × bad after twice that. The
 * limit is back soon, careful where it was too much, and fast again where that has long been passed.
 */
function climb(state: AdaptiveState, rule: Adaptive, us: number): void {
  if (state.value < most(rule)) state.climbUs = Math.min(MAX_CLIMB_US, state.climbUs + us);
  const turns = (state.climbUs - RETURN_US) / RETURN_US;
  const level = Math.floor(state.bad + (state.bad / 10) * turns * turns * turns);
  state.value = Math.max(state.value, within(rule, level));
}

/** Tokens of a rate were granted. */
export function used(state: AdaptiveState, tokens: number): AdaptiveState {
  return { ...state, used: Math.min(MOST, state.used + tokens) };
}

/** So many slots are held. Call it before {@link risen} and after each grant, so that the most is known. */
export function held(state: AdaptiveState, slots: number): AdaptiveState {
  return { ...state, used: Math.max(state.used, slots) };
}

/**
 * Counts what calls came to, and cuts the limit if it was too much: once an epoch, since calls that were granted before
 * the last cut say nothing of what is left of the limit, however many processes report them.
 */
export function observed(
  state: AdaptiveState,
  rule: Adaptive,
  report: AdaptiveReport,
  nowUs: number,
): AdaptiveState {
  if (Math.min(report.startedUs, nowUs) < state.cutUs + SETTLE_US) return state;
  if (report.throttled > 0) {
    const share = Math.floor((report.throttled * 1_000) / Math.max(SHARE_OF_AT_LEAST, report.calls));
    return cut(state, rule, 1_000 - share, nowUs);
  }
  const counted = {
    ...state,
    calls: Math.min(MOST, state.calls + report.calls),
    failed: Math.min(MOST, state.failed + report.failed),
    latencySumUs: Math.min(MOST, state.latencySumUs + report.latencySumUs),
  };
  if (counted.calls < JUDGED_CALLS || nowUs - counted.windowUs < JUDGED_US) return counted;
  return judged(counted, rule, nowUs);
}

function judged(state: AdaptiveState, rule: Adaptive, nowUs: number): AdaptiveState {
  const { calls, failed, latencySumUs } = state;
  let keeps = 1_000;
  if (rule.errorPermille > 0 && failed >= LEAST_FAILED && failed * 1_000 > rule.errorPermille * calls) {
    keeps = Math.min(LEAST_CUT_KEEPS, 1_000 - Math.floor((failed * 1_000) / calls));
  }
  if (rule.latencyUs > 0 && latencySumUs > rule.latencyUs * calls) {
    keeps = Math.min(keeps, LEAST_CUT_KEEPS, Math.floor((rule.latencyUs * calls * 1_000) / latencySumUs));
  }
  if (keeps < 1_000) return cut(state, rule, keeps, nowUs);
  const next = { ...state, windowUs: nowUs, calls: 0, failed: 0, latencySumUs: 0 };
  if (rule.mode !== 'gradient') return next;
  const meanNs = Math.floor((latencySumUs * 1_000) / calls);
  return followed(next, rule, Math.min(MOST, Math.max(1, meanNs)), nowUs);
}

function cut(state: AdaptiveState, rule: Adaptive, keepsPermille: number, nowUs: number): AdaptiveState {
  const least = nowUs - state.cutUs < NEXT_CUT_US ? NEXT_CUT_KEEPS : LEAST_CUT_KEEPS;
  const keeps = Math.min(least, Math.max(MOST_CUT_KEEPS, keepsPermille));
  const value = within(rule, Math.floor((state.value * keeps) / 1_000));
  return {
    ...since(state, nowUs),
    value,
    // Of a deeper cut too: what is left of the calls is about what the downstream took, so the level before is far off.
    bad: Math.floor((value * 1_000) / LEAST_CUT_KEEPS),
    climbUs: 0,
    lookFrom: 0,
  };
}

// Only calls granted from now on count.
const since = (state: AdaptiveState, nowUs: number): AdaptiveState => ({
  ...state,
  cutUs: Math.max(state.cutUs, nowUs),
  riseUs: Math.max(state.riseUs, nowUs),
  used: 0,
  busy: 0,
  windowUs: nowUs,
  calls: 0,
  failed: 0,
  latencySumUs: 0,
});

/** The gradient: gives way as latency grows over the usual, and else rises by the root of the limit, a fifth of it at once. */
function followed(state: AdaptiveState, rule: Adaptive, meanNs: number, nowUs: number): AdaptiveState {
  const { value, usualNs, lookFrom } = state;
  if (usualNs === 0) return { ...state, usualNs: meanNs, lookUs: nowUs + LOOK_SOON_US };
  if (lookFrom > 0) {
    // Far lower than thought: what was thought was its own queue, and half the load may have one still.
    const lower = meanNs * 11 <= usualNs * 10;
    const looked = lower ? meanNs : Math.floor((usualNs + meanNs) / 2);
    const lookUs = nowUs + (lower ? LOOK_SOON_US : LOOK_US);
    return { ...state, value: within(rule, lookFrom), lookFrom: 0, usualNs: looked, lookUs };
  }
  if (state.busy === 0) return state;
  if (nowUs >= state.lookUs) {
    return { ...since(state, nowUs), value: within(rule, Math.floor(value / 2)), lookFrom: value };
  }
  const next = { ...state };
  if (meanNs < usualNs) next.usualNs = usualNs - Math.floor((usualNs - meanNs) / 8);
  const gradient = Math.min(1_000, Math.max(MOST_CUT_KEEPS, Math.floor((next.usualNs * TOLERANCE) / meanNs)));
  const aim = Math.floor((value * gradient) / 1_000 + Math.sqrt(value * 1_000));
  next.value = within(rule, value + Math.floor((aim - value) / 5));
  return next;
}

// The earlier time was the wrong one: standing still until the clock comes there again would stop the limit's life.
const rewound = (state: AdaptiveState, nowUs: number): AdaptiveState => ({
  ...state,
  cutUs: Math.min(state.cutUs, nowUs),
  riseUs: nowUs,
  used: 0,
  windowUs: Math.min(state.windowUs, nowUs),
  lookUs: Math.min(state.lookUs, nowUs + LOOK_US),
});

const most = (rule: Adaptive): number => Math.round(rule.max * 1_000);

const within = (rule: Adaptive, value: number): number =>
  Math.min(most(rule), Math.max(Math.round(rule.min * 1_000), value));
