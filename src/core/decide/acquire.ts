import { held as heldAtOnce } from '../buckets/adaptive.ts';
import { heldOf, lease } from '../buckets/concurrency/leases.ts';
import type { Moment } from '../buckets/moment.ts';
import { commit, withinHorizon } from '../buckets/rate/debt.ts';
import { chargeShare } from '../buckets/share/share.ts';
import { countIn, windowStartable } from '../buckets/window/window.ts';
import type { Buckets } from './buckets.ts';
import type { Demand } from './demands.ts';
import { canReserve, refuse, wakeAll } from './refuse.ts';
import type { Charge, Receipt, Terms, Verdict, Wake } from './verdict.ts';
import {
  type Asker,
  effectiveOf,
  type LeaseView,
  type RateView,
  remainingOf,
  type ShareView,
  save,
  type View,
  viewsOf,
  type WindowView,
} from './views.ts';

/**
 * Decides one request over all its buckets: all are charged or none is. A refusal changes nothing that a decision
 * reads, unless it gives a slot or a place in a queue. lua/includes/decide/acquire.lua is the same in Lua.
 */
export function acquire(
  buckets: Buckets,
  demands: readonly Demand[],
  asker: Omit<Asker, 'priority'>,
  terms: Terms,
  at: Moment,
  wakeUp: Wake,
): Verdict {
  const views = viewsOf(buckets, demands, { ...asker, priority: terms.priority }, at);
  const paused = longest(views, (view) => view.pausedUs);
  if (views[paused]!.pausedUs > 0) return refuse(buckets, views, paused, 'paused', asker, terms, at, wakeUp);
  const line = longest(views, (view) => lineAheadUs(view, terms, at));
  if (lineAheadUs(views[line]!, terms, at) > 0) {
    return refuse(buckets, views, line, 'line', asker, terms, at, wakeUp);
  }
  const binding = bindingOf(views);
  const { waitUs } = views[binding]!;
  const startUs = at.nowUs + waitUs;
  if (waitUs > 0 && (waitUs > terms.maxWaitUs || !mayReserve(views, binding, startUs, terms, at))) {
    const refusing = ownLine(views, binding, terms, at);
    return refuse(buckets, views, refusing, views[refusing]!.demand.kind, asker, terms, at, wakeUp);
  }
  if (!views.every((view) => isWithinHorizon(view, startUs))) {
    return refuse(buckets, views, binding, 'horizon', asker, terms, at, wakeUp);
  }
  return grant(buckets, views, asker.holder, waitUs, at, wakeUp);
}

/** How long the line holds a request up. One of high priority passes it where priorities mean something. */
function lineAheadUs({ demand, lineUs, state }: View, terms: Terms, at: Moment): number {
  if (lineUs === 0 || terms.returning) return 0;
  // Nobody has come for what the share has: those of the line stand behind this one in their queue.
  if (demand.kind === 'share' && (state as ShareView['state']).debt === 0) return 0;
  if (demand.kind === 'rate' && demand.limit.kept !== null && terms.priority === 0) return 0;
  return lineUs - at.nowUs;
}

/** Index of the view with the longest time; of equals one that all requests meet, since it may reserve. */
function longest(views: readonly View[], timeUs: (view: View) => number): number {
  let found = 0;
  for (let index = 1; index < views.length; index++) {
    const more = timeUs(views[index]!) - timeUs(views[found]!);
    if (more > 0 || (more === 0 && views[found]!.demand.by !== null && views[index]!.demand.by === null))
      found = index;
  }
  return found;
}

/** The one that makes it wait. A queue for slots is joined only when nothing else is in the way. */
function bindingOf(views: readonly View[]): number {
  const ownUs = (view: View) => (view.demand.kind === 'concurrency' ? 0 : view.waitUs);
  const others = longest(views, ownUs);
  return ownUs(views[others]!) > 0 ? others : longest(views, (view) => view.waitUs);
}

/**
 * A request reserves only while no limit in it is wider than the one that makes it wait: else it would push the wider
 * bucket forward to its own start and idle everyone else. Of two different attributes, either may be the wider one.
 */
function mayReserve(
  views: readonly View[],
  binding: number,
  startUs: number,
  terms: Terms,
  at: Moment,
): boolean {
  const { demand } = views[binding]!;
  if (demand.kind !== 'rate') return false;
  const { by } = demand;
  return views.every(
    (view, index) =>
      (by === null || view.demand.by === by) &&
      (index === binding || view.demand.kind === 'rate' || view.waitUs === 0) &&
      canReserve(view, terms, at) &&
      (view.demand.kind !== 'window' ||
        windowStartable((view as WindowView).state, view.demand.limit, startUs)),
  );
}

/**
 * Who would have to wait for a fair limit for too long to reserve there is put into its own key's line: all meet the limit,
 * but those of other keys that stand behind it had better be looked at, since they may have more of their shares left.
 */
function ownLine(views: View[], binding: number, terms: Terms, at: Moment): number {
  const whole = views[binding]!;
  const share = views[binding + 1];
  if (share?.demand.kind !== 'share') return binding;
  if (terms.maxTurnUs === 0 || !views.every((view) => canReserve(view, terms, at))) return binding;
  views[binding + 1] = { ...(share as ShareView), waitUs: whole.waitUs };
  return binding + 1;
}

const aheadOf = (state: { readonly atUs: number }, startUs: number): number =>
  Math.max(0, startUs - state.atUs);

function isWithinHorizon(view: View, startUs: number): boolean {
  if (view.demand.kind !== 'rate') return true;
  const { state, demand } = view as RateView;
  return withinHorizon(state, demand.limit, aheadOf(state, startUs), demand.cost);
}

function grant(
  buckets: Buckets,
  views: readonly View[],
  holder: string,
  waitUs: number,
  at: Moment,
  wakeUp: Wake,
): Verdict {
  const startUs = at.nowUs + waitUs;
  const demands = views.map((view) => {
    const charged = charge(view, holder, startUs);
    if (view.demand.kind === 'concurrency') wakeAll(view as LeaseView, wakeUp);
    save(buckets, view);
    return waitUs > 0 ? charged : { ...charged, grantedAfter: 0, pushedUnits: 0 };
  });
  return {
    granted: true,
    waitUs,
    receipt: { startUs, ahead: waitUs > 0, version: at.version, holder, demands },
  };
}

/** Takes the cost from a bucket, from `startUs` on. */
function charge(view: View, holder: string, startUs: number): Charge {
  const { demand } = view;
  let [grantedAfter, pushedUnits, fence] = [0, 0, 0];
  if (demand.kind === 'rate') {
    const { state } = view as RateView;
    pushedUnits = commit(state, demand.limit, aheadOf(state, startUs), demand.cost, view.emptyUs);
    grantedAfter = state.granted;
  } else if (demand.kind === 'window') {
    countIn((view as WindowView).state, demand.limit, startUs, demand.cost);
  } else if (demand.kind === 'concurrency') {
    const { state } = view as LeaseView;
    fence = lease(state, demand.limit, demand.cost, holder);
    if (state.adaptive !== null) state.adaptive = heldAtOnce(state.adaptive, heldOf(state));
  } else {
    const { state, group, whole, idleUs } = view as ShareView;
    chargeShare(state, group, demand.limit, whole.state, demand, idleUs);
  }
  return { demand, grantedAfter, pushedUnits, fence };
}

/**
 * Takes as many whole tokens as there are now, from 0 to `most`, from each bucket of a request as many. A fraction of a
 * token stays where it is.
 */
export function atMost(
  buckets: Buckets,
  demands: readonly Demand[],
  most: number,
  priority: Asker['priority'],
  at: Moment,
): number {
  const views = viewsOf(buckets, demands, { priority, holder: '' }, at);
  const terms = { returning: false, priority } as Terms;
  const available = Math.min(most, ...views.map((view) => availableOf(view, terms, at)));
  if (available < 1) return 0;
  for (const view of views) {
    charge({ ...view, demand: { ...view.demand, cost: available } } as View, '', at.nowUs);
    save(buckets, view);
  }
  return available;
}

function availableOf(view: View, terms: Terms, at: Moment): number {
  if (view.pausedUs > 0 || lineAheadUs(view, terms, at) > 0) return 0;
  const { demand } = view;
  const kept = demand.kind === 'rate' && demand.limit.kept !== null ? demand.limit.kept[terms.priority] : 0;
  if (demand.kind === 'share') return (view as ShareView).waitUs > 0 ? 0 : Number.MAX_SAFE_INTEGER;
  return Math.max(0, remainingOf(view) - kept);
}

/** Charges a request whatever the buckets hold, now; who comes after waits until it has drained. */
export function force(
  buckets: Buckets,
  demands: readonly Demand[],
  holder: string,
  at: Moment,
): Receipt | null {
  const views = viewsOf(buckets, demands, { priority: 0, holder }, at);
  if (!views.every((view) => isWithinHorizon(view, 0))) return null;
  const charged = views.map((view) => {
    const demand = charge(view, holder, 0);
    save(buckets, view);
    return { ...demand, grantedAfter: 0, pushedUnits: 0 };
  });
  return { startUs: at.nowUs, ahead: false, version: at.version, holder, demands: charged };
}

/** What a bucket looks like to a request that takes nothing. */
export interface Sight {
  /** Whole tokens, or free slots. */
  readonly remaining: number;
  readonly waitUs: number;
  readonly lineUs: number;
  readonly pausedUs: number;
  readonly granted: number;
  readonly refused: number;
  /** The limit as it is now: units a microsecond of a rate, slots, or tokens of a window. */
  readonly effective: number;
}

export function peek(
  buckets: Buckets,
  demands: readonly Demand[],
  priority: Asker['priority'],
  at: Moment,
): Sight[] {
  return viewsOf(buckets, demands, { priority, holder: '' }, at).map((view) => ({
    remaining: remainingOf(view),
    waitUs: view.waitUs,
    lineUs: view.lineUs === 0 ? 0 : view.lineUs - at.nowUs,
    pausedUs: view.pausedUs,
    granted: view.state.granted,
    refused: view.state.refused,
    effective: effectiveOf(view),
  }));
}
