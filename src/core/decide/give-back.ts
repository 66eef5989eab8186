import { type AdaptiveReport, held, observed } from '../buckets/adaptive.ts';
import {
  heldOf,
  type LeaseState,
  leaveQueue,
  release as releaseLease,
  renew as renewLease,
} from '../buckets/concurrency/leases.ts';
import type { Moment } from '../buckets/moment.ts';
import { type Bucket, refund, repace, settle as settleRate } from '../buckets/rate/debt.ts';
import { rateAt } from '../buckets/rate/drain.ts';
import { correct, type WindowState } from '../buckets/window/window.ts';
import type { Limits } from '../limits/limit.ts';
import { type Buckets, stateName } from './buckets.ts';
import { actualOf, type Cost, type LeaseLeg, type Leg, type RateLeg } from './legs.ts';
import { wakeAll } from './refuse.ts';
import type { Receipt, Wake } from './verdict.ts';
import { type LeaseView, restUs, save, type View, viewsOf } from './views.ts';

/**
 * What comes after a grant: taking it back before its start, correcting its cost, and giving its slots back or keeping
 * them. lua/includes/{cancel,settle,holding,report}.lua are the same in Lua.
 */

/** The leg's view if it has state that still says something; else there is nothing to give back to. */
function viewOf(buckets: Buckets, leg: Leg, holder: string, at: Moment): View | undefined {
  const stored = buckets.get(stateName(leg));
  if (leg.kind === 'share' || stored === undefined || restUs(leg, stored) <= at.nowUs) return undefined;
  return viewsOf(buckets, [leg], { priority: 1, holder }, at)[0];
}

/**
 * Takes a grant back that has not started yet. One that was made under other limits was recalled by their change.
 *
 * @returns whether all of it was given back.
 */
export function cancel(buckets: Buckets, receipt: Receipt, at: Moment): boolean {
  const { startUs, ahead, version, holder, legs } = receipt;
  if (!ahead || at.nowUs >= startUs || version !== at.version) return false;
  let whole = true;
  for (const { leg, grantedAfter, pushedUnits } of legs) {
    if (leg.kind === 'share') continue;
    const view = viewOf(buckets, leg, holder, at);
    const given =
      view !== undefined &&
      (leg.kind === 'rate'
        ? refund(view.state as Bucket, leg.limit, grantedAfter, leg.cost, pushedUnits, at)
        : leg.kind === 'window' && correct(view.state as WindowState, leg.limit, startUs, -leg.cost));
    if (given) save(buckets, view);
    whole &&= given;
  }
  return whole;
}

/** A leg as it is under the limits in force: it may have been made under others. Undefined if its limit is gone. */
function legUnder<L extends Leg>(limits: Limits, leg: L): L | undefined {
  const limit = limits.find(
    ({ name, kind, by }) => name === leg.limit.name && kind === leg.limit.kind && by === leg.limit.by,
  );
  return limit && { ...leg, limit };
}

/**
 * A receipt, and what each of its legs has cost after all, under the limits in force.
 * @throws {@link InvalidOptionError} for a cost that is none.
 */
export function settledUnder(
  limits: Limits,
  receipt: Receipt,
  actual: Cost,
): { receipt: Receipt; actual: number[] } {
  const tokens = actualOf(
    receipt.legs.map(({ leg }) => leg),
    actual,
  );
  const settled = receipt.legs.flatMap((charged, index) => {
    const leg = legUnder(limits, charged.leg);
    return leg === undefined ? [] : [{ charged: { ...charged, leg }, actual: tokens[index]! }];
  });
  const legs = settled.map(({ charged }) => charged);
  return { receipt: { ...receipt, legs }, actual: settled.map(({ actual }) => actual) };
}

/** A slot under the limits in force; undefined if its limit is gone. */
export function slotUnder(limits: Limits, slot: HeldSlot): HeldSlot | undefined {
  const leg = legUnder(limits, slot.leg);
  return leg && { ...slot, leg };
}

/** Corrects what a grant has cost, leg by leg. One that was made under other limits is only corrected upwards. */
export function settle(buckets: Buckets, receipt: Receipt, actual: readonly number[], at: Moment): void {
  for (const [index, { leg }] of receipt.legs.entries()) {
    const by = actual[index]! - leg.cost;
    if (by === 0 || leg.kind === 'concurrency' || leg.kind === 'share') continue;
    if (by < 0 && receipt.version !== at.version) continue;
    const view =
      by > 0 ? viewsOf(buckets, [leg], { priority: 1, holder: '' }, at)[0]! : viewOf(buckets, leg, '', at);
    if (view === undefined) continue;
    if (leg.kind === 'rate')
      settleRate(view.state as Bucket, leg.limit, receipt.startUs, leg.cost, actual[index]!, at);
    else correct(view.state as WindowState, leg.limit, receipt.startUs, by);
    save(buckets, view);
  }
}

/** A slot as its holder knows it. */
export interface HeldSlot {
  readonly leg: LeaseLeg;
  readonly holder: string;
  readonly fence: number;
}

/** Gives a slot back. @returns whether it was still held. */
export function release(
  buckets: Buckets,
  { leg, holder, fence }: HeldSlot,
  at: Moment,
  wakeUp: Wake,
): boolean {
  const view = viewOf(buckets, leg, holder, at) as LeaseView | undefined;
  if (view === undefined) return false;
  const held = releaseLease(view.state, holder, fence);
  wakeAll(view, wakeUp);
  save(buckets, view);
  return held;
}

/** Keeps a slot for another lease's length. @returns whether it was still held. */
export function renew(buckets: Buckets, { leg, holder, fence }: HeldSlot, at: Moment): boolean {
  const isLost = at.coldAtUs > 0 && fence < at.coldAtUs && at.nowUs < at.coldAtUs + leg.limit.leaseUs;
  const view = (
    isLost ? viewsOf(buckets, [leg], { priority: 1, holder }, at)[0] : viewOf(buckets, leg, holder, at)
  ) as LeaseView | undefined;
  if (view === undefined) return false;
  const held = renewLease(view.state, leg.limit, holder, fence, isLost ? leg.cost : undefined);
  if (held) save(buckets, view);
  return held;
}

/** Gives up a place in the queues for slots. */
export function leave(
  buckets: Buckets,
  legs: readonly Leg[],
  holder: string,
  at: Moment,
  wakeUp: Wake,
): void {
  for (const leg of legs) {
    if (leg.kind !== 'concurrency') continue;
    const view = viewOf(buckets, leg, holder, at) as LeaseView | undefined;
    if (view === undefined) continue;
    leaveQueue(view.state, holder);
    wakeAll(view, wakeUp);
    save(buckets, view);
  }
}

/** Whether the leg's limit learns from what becomes of calls. */
export const isAdaptive = (leg: Leg): leg is RateLeg | LeaseLeg =>
  (leg.kind === 'rate' || leg.kind === 'concurrency') && leg.limit.adaptive !== null;

/** Tells the adaptive limits of a request what calls came to. */
export function report(
  buckets: Buckets,
  legs: readonly Leg[],
  calls: AdaptiveReport,
  at: Moment,
  wakeUp: Wake,
): void {
  for (const leg of legs) {
    if (!isAdaptive(leg)) continue;
    const view = viewsOf(buckets, [leg], { priority: 1, holder: '' }, at)[0]!;
    const state = view.state as Bucket | LeaseState;
    state.adaptive = observed(state.adaptive!, leg.limit.adaptive!, calls, at.nowUs);
    if (leg.kind === 'rate') {
      const bucket = state as Bucket;
      repace(bucket, Math.min(bucket.rate, rateAt(bucket, leg.limit, at.nowUs)));
    } else {
      state.adaptive = held(state.adaptive, heldOf(state as LeaseState));
      wakeAll(view as LeaseView, wakeUp);
    }
    save(buckets, view);
  }
}
