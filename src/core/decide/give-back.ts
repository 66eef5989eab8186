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
import { actualOf, type ConcurrencyDemand, type Cost, type Demand, type RateDemand } from './demands.ts';
import { wakeAll } from './refuse.ts';
import type { Receipt, Wake } from './verdict.ts';
import { type LeaseView, restUs, save, type View, viewsOf } from './views.ts';

/**
 * What comes after a grant: taking it back before its start, correcting its cost, and giving its slots back or keeping
 * them. lua/includes/{cancel,settle,holding,report}.lua are the same in Lua.
 */

/** The demand's view if it has state that still says something; else there is nothing to give back to. */
function viewOf(buckets: Buckets, demand: Demand, holder: string, at: Moment): View | undefined {
  const stored = buckets.get(stateName(demand));
  if (demand.kind === 'share' || stored === undefined || restUs(demand, stored) <= at.nowUs) return undefined;
  return viewsOf(buckets, [demand], { priority: 1, holder }, at)[0];
}

/**
 * Takes a grant back that has not started yet. One that was made under other limits was recalled by their change.
 *
 * @returns whether all of it was given back.
 */
export function cancel(buckets: Buckets, receipt: Receipt, at: Moment): boolean {
  const { startUs, ahead, version, holder, demands } = receipt;
  if (!ahead || at.nowUs >= startUs || version !== at.version) return false;
  let whole = true;
  for (const { demand, grantedAfter, pushedUnits } of demands) {
    if (demand.kind === 'share') continue;
    const view = viewOf(buckets, demand, holder, at);
    const given =
      view !== undefined &&
      (demand.kind === 'rate'
        ? refund(view.state as Bucket, demand.limit, grantedAfter, demand.cost, pushedUnits, at)
        : demand.kind === 'window' &&
          correct(view.state as WindowState, demand.limit, startUs, -demand.cost));
    if (given) save(buckets, view);
    whole &&= given;
  }
  return whole;
}

/** A demand as it is under the limits in force: it may have been made under others. Undefined if its limit is gone. */
function demandUnder<L extends Demand>(limits: Limits, demand: L): L | undefined {
  const limit = limits.find(
    ({ name, kind, by }) =>
      name === demand.limit.name && kind === demand.limit.kind && by === demand.limit.by,
  );
  return limit && { ...demand, limit };
}

/**
 * A receipt, and what each of its demands has cost after all, under the limits in force.
 * @throws {@link InvalidOptionError} for a cost that is none.
 */
export function settledUnder(
  limits: Limits,
  receipt: Receipt,
  actual: Cost,
): { receipt: Receipt; actual: number[] } {
  const tokens = actualOf(
    receipt.demands.map(({ demand }) => demand),
    actual,
  );
  const settled = receipt.demands.flatMap((charged, index) => {
    const demand = demandUnder(limits, charged.demand);
    return demand === undefined ? [] : [{ charged: { ...charged, demand }, actual: tokens[index]! }];
  });
  const demands = settled.map(({ charged }) => charged);
  return { receipt: { ...receipt, demands }, actual: settled.map(({ actual }) => actual) };
}

/** A slot under the limits in force; undefined if its limit is gone. */
export function slotUnder(limits: Limits, slot: HeldSlot): HeldSlot | undefined {
  const demand = demandUnder(limits, slot.demand);
  return demand && { ...slot, demand };
}

/** Corrects what a grant has cost, demand by demand. One that was made under other limits is only corrected upwards. */
export function settle(buckets: Buckets, receipt: Receipt, actual: readonly number[], at: Moment): void {
  for (const [index, { demand }] of receipt.demands.entries()) {
    const by = actual[index]! - demand.cost;
    if (by === 0 || demand.kind === 'concurrency' || demand.kind === 'share') continue;
    if (by < 0 && receipt.version !== at.version) continue;
    const view =
      by > 0
        ? viewsOf(buckets, [demand], { priority: 1, holder: '' }, at)[0]!
        : viewOf(buckets, demand, '', at);
    if (view === undefined) continue;
    if (demand.kind === 'rate')
      settleRate(view.state as Bucket, demand.limit, receipt.startUs, demand.cost, actual[index]!, at);
    else correct(view.state as WindowState, demand.limit, receipt.startUs, by);
    save(buckets, view);
  }
}

/** A slot as its holder knows it. */
export interface HeldSlot {
  readonly demand: ConcurrencyDemand;
  readonly holder: string;
  readonly fence: number;
}

/** Gives a slot back. @returns whether it was still held. */
export function release(
  buckets: Buckets,
  { demand, holder, fence }: HeldSlot,
  at: Moment,
  wakeUp: Wake,
): boolean {
  const view = viewOf(buckets, demand, holder, at) as LeaseView | undefined;
  if (view === undefined) return false;
  const held = releaseLease(view.state, holder, fence);
  wakeAll(view, wakeUp);
  save(buckets, view);
  return held;
}

/** Keeps a slot for another lease's length. @returns whether it was still held. */
export function renew(buckets: Buckets, { demand, holder, fence }: HeldSlot, at: Moment): boolean {
  const isLost = at.coldAtUs > 0 && fence < at.coldAtUs && at.nowUs < at.coldAtUs + demand.limit.leaseUs;
  const view = (
    isLost ? viewsOf(buckets, [demand], { priority: 1, holder }, at)[0] : viewOf(buckets, demand, holder, at)
  ) as LeaseView | undefined;
  if (view === undefined) return false;
  const held = renewLease(view.state, demand.limit, holder, fence, isLost ? demand.cost : undefined);
  if (held) save(buckets, view);
  return held;
}

/** Gives up a place in the queues for slots. */
export function leave(
  buckets: Buckets,
  demands: readonly Demand[],
  holder: string,
  at: Moment,
  wakeUp: Wake,
): void {
  for (const demand of demands) {
    if (demand.kind !== 'concurrency') continue;
    const view = viewOf(buckets, demand, holder, at) as LeaseView | undefined;
    if (view === undefined) continue;
    leaveQueue(view.state, holder);
    wakeAll(view, wakeUp);
    save(buckets, view);
  }
}

/** Whether the demand's limit learns from what becomes of calls. */
export const isAdaptive = (demand: Demand): demand is RateDemand | ConcurrencyDemand =>
  (demand.kind === 'rate' || demand.kind === 'concurrency') && demand.limit.adaptive !== null;

/** Tells the adaptive limits of a request what calls came to. */
export function report(
  buckets: Buckets,
  demands: readonly Demand[],
  calls: AdaptiveReport,
  at: Moment,
  wakeUp: Wake,
): void {
  for (const demand of demands) {
    if (!isAdaptive(demand)) continue;
    const view = viewsOf(buckets, [demand], { priority: 1, holder: '' }, at)[0]!;
    const state = view.state as Bucket | LeaseState;
    state.adaptive = observed(state.adaptive!, demand.limit.adaptive!, calls, at.nowUs);
    if (demand.kind === 'rate') {
      const bucket = state as Bucket;
      repace(bucket, Math.min(bucket.rate, rateAt(bucket, demand.limit, at.nowUs)));
    } else {
      state.adaptive = held(state.adaptive, heldOf(state as LeaseState));
      wakeAll(view as LeaseView, wakeUp);
    }
    save(buckets, view);
  }
}
