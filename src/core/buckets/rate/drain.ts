import { MAX_DEBT_UNITS, type RateLimit } from '../../limits/rate.ts';
import { type AdaptiveState, begun, risen } from '../adaptive.ts';
import { MAX_AHEAD_US, MAX_CLOCK_STEP_US, type Moment, movedBy, RECALL_US } from '../moment.ts';
import { isRamping, RAMP_US, worthUs } from '../ramp.ts';
import {
  ADAPTIVE_KEPT_US,
  type Bucket,
  debtAt,
  emptyUsOf,
  less,
  penalised,
  rampEndUs,
  repace,
} from './debt.ts';

/** What time, pauses and changes of the limits make of a bucket. lua/includes/buckets/rate/drain.lua is the same in Lua. */

/**
 * The bucket as it stands now, in the limit's own units: a function of what is stored and of the moment alone, so that who
 * looks often sees the same as who looks once.
 *
 * A clock that steps back must not give tokens twice: the bucket's time stands still until the clock has caught up.
 * If it is behind by more than {@link MAX_CLOCK_STEP_US}, the earlier time was the wrong one, and standing still
 * would stop the work for as long as it was wrong: the bucket adopts `nowUs` and keeps its debt.
 */
export function drained(stored: Bucket, limit: RateLimit, at: Moment): Bucket {
  const { nowUs } = at;
  const bucket = stored.atUs - nowUs > MAX_CLOCK_STEP_US ? stepped(stored, nowUs) : { ...stored };
  const emptyUs = emptyUsOf(bucket, at);
  if (bucket.rampUs !== 0 && bucket.rampUs !== rampEndUs(limit, emptyUs)) leaveRamp(bucket);
  bucket.adaptive = limit.adaptive && adapted(bucket, limit, nowUs);
  const rate = rateAt(bucket, limit, nowUs);
  if (bucket.version !== at.version || bucket.periodUs !== limit.periodUs) {
    changeOver(bucket, limit, emptyUs, at);
  }
  if (bucket.penaltyUs > bucket.atUs && bucket.penaltyUs < nowUs) {
    advance(bucket, limit, emptyUs, bucket.penaltyUs);
    repace(bucket, rate);
  }
  advance(bucket, limit, emptyUs, nowUs);
  if (bucket.lastUs <= nowUs + RECALL_US) bucket.promised = 0;
  repace(bucket, rate);
  bucket.rampUs = emptyUs <= nowUs && isRamping(nowUs, rampEndUs(limit, emptyUs)) ? emptyUs : 0;
  return { ...bucket, burst: limit.burst, version: at.version };
}

/**
 * Takes the bucket to the moment at which the limits changed, and there into the terms of the new ones.
 *
 * What was promised to start later than {@link RECALL_US} after it is taken back. What may still be used left no more debt than
 * a full burst and that time's worth; and what was never promised so far ahead stays owed, whatever it comes to.
 */
function changeOver(bucket: Bucket, limit: RateLimit, emptyUs: number, at: Moment): void {
  const changedUs = at.changedUs === 0 ? at.nowUs : Math.min(at.changedUs, at.nowUs);
  advance(bucket, limit, emptyUs, changedUs);
  const laterUs = bucket.lastUs - bucket.atUs - RECALL_US;
  if (laterUs > 0 && bucket.promised > 0) {
    const burst = bucket.burst * bucket.periodUs;
    // No more than that was granted for so long.
    const recalled = Math.min(bucket.promised, burst + bucket.rate * laterUs);
    const usable = burst + bucket.rate * RECALL_US;
    bucket.debt = Math.min(bucket.debt, Math.max(usable, bucket.debt - recalled));
    bucket.lastUs = bucket.atUs + RECALL_US;
  }
  bucket.promised = 0;
  if (bucket.lineUs > bucket.atUs) {
    // The same work, at the new pace; a pause takes as long as it did.
    const fromUs = Math.min(bucket.lineUs, Math.max(bucket.atUs, emptyUs));
    const pace = (bucket.rate * limit.periodUs) / (limit.rate * bucket.periodUs);
    bucket.lineUs = fromUs + Math.min(MAX_AHEAD_US, Math.ceil((bucket.lineUs - fromUs) * pace));
  }
  if (bucket.periodUs !== limit.periodUs) bucket.debt = convert(bucket.debt, bucket.periodUs, limit.periodUs);
  bucket.periodUs = limit.periodUs;
  bucket.rate = rateAt(bucket, limit, bucket.atUs);
}

/**
 * Another pause came before the ramp of one was over. What was promised in it lies behind less debt than its start is away, since
 * that drains more slowly; from now on it may drain faster. By no more than a ramp holds back in all.
 */
function leaveRamp(bucket: Bucket): void {
  if (bucket.lastUs <= bucket.atUs) return;
  bucket.debt = Math.min(MAX_DEBT_UNITS, bucket.debt + (bucket.rate * RAMP_US) / 2);
}

function stepped(bucket: Bucket, nowUs: number): Bucket {
  const stepUs = bucket.atUs - nowUs;
  return {
    ...bucket,
    atUs: nowUs,
    lineUs: movedBy(bucket.lineUs, stepUs),
    lastUs: movedBy(bucket.lastUs, stepUs),
    closedUs: movedBy(bucket.closedUs, stepUs),
    rampUs: movedBy(bucket.rampUs, stepUs),
    overUs: movedBy(bucket.overUs, stepUs),
    penaltyUs: movedBy(bucket.penaltyUs, stepUs),
  };
}

function advance(bucket: Bucket, limit: RateLimit, emptyUs: number, us: number): void {
  if (us < bucket.atUs) return;
  bucket.promised = less(bucket, bucket.promised, worthUs(bucket.atUs, us, rampEndUs(limit, emptyUs)));
  bucket.debt = debtAt(bucket, limit, us, emptyUs);
  bucket.atUs = us;
}

function adapted(bucket: Bucket, limit: RateLimit, nowUs: number): AdaptiveState {
  const rule = limit.adaptive!;
  if (bucket.adaptive === null || nowUs - bucket.atUs > ADAPTIVE_KEPT_US)
    return begun(rule, limit.rate / 1_000, nowUs);
  return risen(bucket.adaptive, rule, limit.options.periodMs * 1_000, nowUs);
}

/** What the bucket drains at: what an adaptive limit has come to, or the limit's rate; in a penalty a share of it. */
export function rateAt({ adaptive, penaltyUs }: Bucket, limit: RateLimit, us: number): number {
  const rate = adaptive === null ? limit.rate : adaptive.value;
  return penaltyUs > us ? penalised(limit, rate) : rate;
}

// What was used stays used, in tokens. The fraction of a token is rounded up by at least a unit: on the safe side.
function convert(debt: number, fromPeriodUs: number, toPeriodUs: number): number {
  const fraction = debt % fromPeriodUs;
  const tokens = (debt - fraction) / fromPeriodUs;
  const rest =
    fraction === 0 ? 0 : Math.min(toPeriodUs, Math.ceil((fraction / fromPeriodUs) * toPeriodUs) + 1);
  return Math.min(MAX_DEBT_UNITS, tokens * toPeriodUs + rest);
}
