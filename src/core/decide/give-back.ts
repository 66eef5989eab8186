import type { AdaptiveReport } from '../buckets/adaptive.ts';
import { type Buckets, kindOf } from '../buckets/kinds.ts';
import type { Moment } from '../buckets/moment.ts';
import type { Limits } from '../limits/limit.ts';
import { wake } from './charge.ts';
import { actualOf, type ConcurrencyDemand, type Cost, type Demand } from './demands.ts';
import type { Receipt, Wake } from './verdict.ts';
import { nobody, save, viewIfKept, viewOf } from './view.ts';

/**
 * What comes after a grant: taking it back before its start, correcting its cost, and giving its slots back or keeping
 * them. lua/includes/decide/give-back.lua is the same in Lua.
 */

/**
 * Takes a grant back that has not started yet. One that was made under other limits was recalled by their change.
 *
 * @returns whether all of it was given back.
 */
export function cancel(buckets: Buckets, receipt: Receipt, at: Moment): boolean {
  const { startUs, ahead, version, holder, charges } = receipt;
  if (!ahead || at.nowUs >= startUs || version !== at.version) return false;
  let allGiven = true;
  for (const charge of charges) {
    const kind = kindOf(charge.demand);
    if (kind.giveBack === undefined) continue;
    const view = viewIfKept(buckets, charge.demand, nobody(holder), at);
    const isGiven = view !== undefined && kind.giveBack(view, charge, startUs);
    if (isGiven) save(buckets, view);
    allGiven &&= isGiven;
  }
  return allGiven;
}

/** A demand as it is under the limits in force: it may have been made under others. Undefined if its limit is gone. */
function demandUnder<D extends Demand>(limits: Limits, demand: D): D | undefined {
  const { name, kind, by } = demand.limit;
  const limit = limits.find((other) => other.name === name && other.kind === kind && other.by === by);
  return limit && { ...demand, limit };
}

/**
 * A receipt, and what each of its demands has cost after all, under the limits in force.
 * @throws {@link InvalidOptionError} for a cost that is not valid.
 */
export function settledUnder(
  limits: Limits,
  receipt: Receipt,
  actual: Cost,
): { receipt: Receipt; actual: number[] } {
  const demands = receipt.charges.map(({ demand }) => demand);
  const tokens = actualOf(demands, actual);
  const settled = receipt.charges.flatMap((charged, index) => {
    const demand = demandUnder(limits, charged.demand);
    return demand === undefined ? [] : [{ charged: { ...charged, demand }, actual: tokens[index]! }];
  });
  const charges = settled.map(({ charged }) => charged);
  return { receipt: { ...receipt, charges }, actual: settled.map(({ actual }) => actual) };
}

/** A slot under the limits in force; undefined if its limit is gone. */
export function slotUnder(limits: Limits, slot: HeldSlot): HeldSlot | undefined {
  const demand = demandUnder(limits, slot.demand);
  return demand && { ...slot, demand };
}

/** Corrects what a grant has cost, demand by demand. One that was made under other limits is only corrected upwards. */
export function settle(buckets: Buckets, receipt: Receipt, actual: readonly number[], at: Moment): void {
  for (const [index, { demand }] of receipt.charges.entries()) {
    const by = actual[index]! - demand.cost;
    const kind = kindOf(demand);
    if (kind.settle === undefined || by === 0 || (by < 0 && receipt.version !== at.version)) continue;
    const look = by > 0 ? viewOf : viewIfKept;
    const view = look(buckets, demand, nobody(), at);
    if (view === undefined) continue;
    kind.settle(view, receipt.startUs, actual[index]!);
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
  const view = viewIfKept(buckets, demand, nobody(holder), at);
  if (view === undefined) return false;
  const isHeld = kindOf(demand).slots!.release(view, holder, fence);
  wake(view, wakeUp);
  save(buckets, view);
  return isHeld;
}

/** Keeps a slot for another lease's length. @returns whether it was still held. */
export function renew(buckets: Buckets, { demand, holder, fence }: HeldSlot, at: Moment): boolean {
  const isLost = at.coldAtUs > 0 && fence < at.coldAtUs && at.nowUs < at.coldAtUs + demand.limit.leaseUs;
  const view = (isLost ? viewOf : viewIfKept)(buckets, demand, nobody(holder), at);
  if (view === undefined) return false;
  const isHeld = kindOf(demand).slots!.renew(view, holder, fence, isLost ? demand.cost : undefined);
  if (isHeld) save(buckets, view);
  return isHeld;
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
    const { slots } = kindOf(demand);
    const view = slots && viewIfKept(buckets, demand, nobody(holder), at);
    if (view === undefined) continue;
    slots!.leave(view, holder);
    wake(view, wakeUp);
    save(buckets, view);
  }
}

/** Whether the demand's limit learns from what becomes of calls. */
export const isAdaptive = (demand: Demand): boolean =>
  kindOf(demand).observe !== undefined && 'adaptive' in demand.limit && demand.limit.adaptive !== null;

/** Tells the adaptive limits of a request what calls came to. */
export function report(
  buckets: Buckets,
  demands: readonly Demand[],
  calls: AdaptiveReport,
  at: Moment,
  wakeUp: Wake,
): void {
  for (const demand of demands.filter(isAdaptive)) {
    const view = viewOf(buckets, demand, nobody(), at);
    kindOf(demand).observe!(view, calls, at.nowUs);
    wake(view, wakeUp);
    save(buckets, view);
  }
}
