import { MAX_DEBT_UNITS, type RateLimit } from '../../limits/rate.ts';
import { MAX_CLOCK_STEP_US, movedBy } from '../moment.ts';
import { whenWorth, worthUs } from '../ramp.ts';
import { type Bucket, ceilDiv, costUnits } from '../rate/debt.ts';

/**
 * Fairness: how the values of an attribute share one limit, by weight and max-min: what one does not use is the others'.
 *
 * Each value has a bucket that drains at its share of the limit. Its share is its weight among the weights of those that
 * use theirs (the active ones), of what the light users leave. While the limit itself has half its burst to spare, anyone
 * may pass: nothing is held back for somebody who does not come. The limit's own bucket is charged as ever, so none of this
 * can break its bound. lua/includes/buckets/share/share.lua is the same in Lua.
 */
export interface ShareState {
  /** What it owes, in {@link WHOLE} units for each microsecond of the whole limit. */
  debt: number;
  atUs: number;
  lineUs: number;
  granted: number;
  refused: number;
  closedUs: number;
  /** Units that drained a microsecond of late. */
  share: number;
}

/** What is known of all values of one limit together. */
export interface ShareGroup {
  /** Those that use their share, with their weight, until when they count as such. */
  active: ReadonlyMap<string, { readonly weight: number; readonly untilUs: number }>;
  /** What the others were granted, in this second and in the one before. */
  second: number;
  light: number;
  lightBefore: number;
}

/** The whole limit, as a share. */
export const WHOLE = 65_536;
const SECOND_US = 1_000_000;
const OWED_US = 1_000_000;
/** A value counts as active for this long after it was last seen to use its share. */
const ACTIVE_US = 1_000_000;
/** For so long after its end a pause is remembered that left a share empty. */
const PAUSE_KEPT_US = 60_000_000;
// However much the light users had of late, this much is left to share: they may stop.
const LEAST_LEFT = WHOLE / 4;

export const blankShare = (nowUs: number): ShareState => ({
  debt: 0,
  atUs: nowUs,
  lineUs: 0,
  granted: 0,
  refused: 0,
  closedUs: 0,
  share: WHOLE,
});

export const blankGroup = (nowUs: number): ShareGroup => ({
  active: new Map(),
  second: Math.floor(nowUs / SECOND_US),
  light: 0,
  lightBefore: 0,
});

/** The group now: without those whose activity is over. */
export function groupAt(stored: ShareGroup, nowUs: number): ShareGroup {
  const second = Math.floor(nowUs / SECOND_US);
  const passed = second - stored.second;
  return {
    active: new Map(
      [...stored.active].filter(
        ([, { untilUs }]) => untilUs > nowUs && untilUs - nowUs <= ACTIVE_US + MAX_CLOCK_STEP_US,
      ),
    ),
    second: passed === 0 ? stored.second : second,
    light: passed === 0 ? stored.light : 0,
    lightBefore: passed === 0 ? stored.lightBefore : passed === 1 ? stored.light : 0,
  };
}

/** The share of a value of that weight, in units a microsecond. */
export function shareIn(group: ShareGroup, key: string, weight: number, nowUs: number): number {
  let total = weight;
  for (const [other, { weight: theirs }] of group.active) if (other !== key) total += theirs;
  const restUs = SECOND_US - (nowUs - group.second * SECOND_US);
  const lightUnits = Math.floor((group.lightBefore * restUs) / SECOND_US) + group.light;
  const left = Math.max(LEAST_LEFT, WHOLE - Math.floor(lightUnits / SECOND_US));
  return Math.max(1, Math.floor((left * weight) / total));
}

/** The value's bucket as it stands now. */
export function sharedAt(stored: ShareState, share: number, nowUs: number): ShareState {
  const state = { ...stored, share };
  const stepUs = state.atUs - nowUs;
  if (stepUs > MAX_CLOCK_STEP_US) {
    state.lineUs = movedBy(state.lineUs, stepUs);
    state.closedUs = movedBy(state.closedUs, stepUs);
    state.atUs = nowUs;
  } else if (nowUs > state.atUs) {
    const elapsedUs = worthUs(state.atUs, nowUs, state.closedUs);
    state.debt = elapsedUs >= ceilDiv(state.debt, stored.share) ? 0 : state.debt - elapsedUs * stored.share;
    state.atUs = nowUs;
  }
  return state;
}

/** What `cost` tokens take of the whole limit's time, in units. */
export const shareUnits = (limit: RateLimit, whole: Bucket, cost: number): number =>
  Math.min(MAX_DEBT_UNITS, Math.ceil((cost * limit.periodUs * WHOLE) / whole.rate));

/** How much a value may owe: its share of the burst, and one cost in any case. */
function capacity(state: ShareState, limit: RateLimit, whole: Bucket, cost: number): number {
  return shareUnits(limit, whole, Math.max(cost, Math.floor((limit.burst * state.share) / WHOLE)));
}

/** What it owes at the least after a pause of its own, which has left it empty, and in a ramp; 0: there was none, or long ago. */
export function owedByPause(state: ShareState, limit: RateLimit, whole: Bucket, cost: number): number {
  const { atUs, closedUs, share } = state;
  if (closedUs === 0 || closedUs > atUs) return 0;
  return Math.max(0, roomUnits(state, limit, whole, cost) - worthUs(closedUs, atUs, closedUs) * share);
}

/**
 * What was to spare is owed for a second of its share at most, as that is now: whoever asks most often is not to have all of
 * it, nor to stand back for long for what nobody else wanted.
 */
export const mostOwed = (state: ShareState, limit: RateLimit, whole: Bucket, cost: number): number =>
  capacity(state, limit, whole, cost) + state.share * OWED_US;

/** Whether the limit has so much to spare that nobody's share matters. */
export const hasSpare = (limit: RateLimit, whole: Bucket, cost: number): boolean =>
  whole.debt + costUnits(limit, Math.ceil(limit.burst / 2) + cost) <= limit.burst * limit.periodUs;

/**
 * How much a value may owe after a grant. There is room for two of them: else one that comes late from its slot would find its
 * bucket full, and the time for which it was so lost.
 */
function roomUnits(state: ShareState, limit: RateLimit, whole: Bucket, cost: number): number {
  return Math.max(capacity(state, limit, whole, cost), 2 * shareUnits(limit, whole, cost));
}

/** Microseconds from the bucket's own time until its share allows `cost` tokens. */
export function shareWaitUs(state: ShareState, limit: RateLimit, whole: Bucket, cost: number): number {
  const over = state.debt + shareUnits(limit, whole, cost) - roomUnits(state, limit, whole, cost);
  if (over <= 0) return 0;
  return whenWorth(ceilDiv(over, state.share), state.atUs, state.closedUs) - state.atUs;
}

/**
 * Whether it uses its share: then it counts among those that share the limit. One that comes back from its slot has just
 * drained: it still does.
 *
 * @param idleUs - How long it had owed nothing before it was charged.
 */
const isActive = (
  state: ShareState,
  limit: RateLimit,
  whole: Bucket,
  cost: number,
  idleUs: number,
): boolean =>
  state.debt * 2 > capacity(state, limit, whole, cost) ||
  (state.granted > 0 && idleUs * 2 < ceilDiv(shareUnits(limit, whole, cost), state.share));

/** A share while the limit is not used up: up to a quarter more for all, so that nothing of it is lost. */
export function eased(share: number, limit: RateLimit, whole: Bucket): number {
  const capacityUnits = limit.burst * limit.periodUs;
  const leftUnits = Math.max(0, capacityUnits - whole.debt);
  return Math.floor(share * (1 + leftUnits / capacityUnits / 4));
}

/** Charges a grant to the value and tells the group. */
export function chargeShare(
  state: ShareState,
  group: ShareGroup,
  limit: RateLimit,
  whole: Bucket,
  { key, weight, cost }: { readonly key: string; readonly weight: number; readonly cost: number },
  idleUs: number,
): void {
  const units = shareUnits(limit, whole, cost);
  if (isActive(state, limit, whole, cost, idleUs)) activate(group, key, weight, state.atUs);
  // What an active one takes is no light use, even where it is all that it takes.
  else if (!group.active.has(key)) group.light += units;
  state.debt = Math.min(state.debt + units, mostOwed(state, limit, whole, cost));
  state.granted += cost;
}

export function activate(group: ShareGroup, key: string, weight: number, nowUs: number): void {
  group.active = new Map(group.active).set(key, { weight, untilUs: nowUs + ACTIVE_US });
}

export const shareFullUs = (state: ShareState): number => state.atUs + ceilDiv(state.debt, state.share);

/** From when a value's bucket says nothing more than none does: it is full, and a pause of its own is long over. */
export function shareRestUs(state: ShareState): number {
  return Math.max(shareFullUs(state), state.closedUs === 0 ? 0 : state.closedUs + PAUSE_KEPT_US);
}

export const groupOverUs = (group: ShareGroup): number => (group.second + 2) * SECOND_US;
