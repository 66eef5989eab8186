import {
  blankLeases,
  heldOf,
  type LeaseState,
  lapsed,
  leasesEmptyUs,
  leaseWaitUs,
  slotsOf,
} from '../buckets/concurrency/leases.ts';
import { blankRegistry, hasOwnBucket, type KeyRegistry, registerBucket } from '../buckets/key-overflow.ts';
import { LINE_GRACE_US, openLine } from '../buckets/line.ts';
import type { Moment } from '../buckets/moment.ts';
import {
  ADAPTIVE_KEPT_US,
  type Bucket,
  blank,
  ceilDiv,
  costUnits,
  emptyUsOf,
  fullAtUs,
  waitUs as rateWaitUs,
  remainingTokens,
} from '../buckets/rate/debt.ts';
import { drained } from '../buckets/rate/drain.ts';
import {
  blankGroup,
  blankShare,
  eased,
  groupAt,
  groupOverUs,
  hasSpare,
  mostOwed,
  owedByPause,
  type ShareGroup,
  type ShareState,
  sharedAt,
  shareFullUs,
  shareIn,
  shareRestUs,
  shareUnits,
  shareWaitUs,
} from '../buckets/share/share.ts';
import {
  blankWindow,
  converted,
  moved,
  usedOf,
  type WindowState,
  windowEmptyUs,
  windowIntervalUs,
  windowWaitUs,
} from '../buckets/window/window.ts';
import { type Buckets, groupName, registryName, type State, stateName } from './buckets.ts';
import type { ConcurrencyDemand, Demand, RateDemand, ShareDemand, WindowDemand } from './demands.ts';

/** Who asks, as far as its buckets are concerned. */
export interface Asker {
  /** 0 high, 1 normal, 2 low. */
  readonly priority: 0 | 1 | 2;
  /** Whose slots they are to be. */
  readonly holder: string;
  /** The process that asks; '': nothing is known of it. */
  readonly instance?: string;
}

interface ViewOf<L extends Demand, S> {
  readonly demand: L;
  /** As stored; undefined if there is none. */
  readonly stored: S | undefined;
  /** As it stands now: a copy that may be changed. */
  readonly state: S;
  /** From the store's now until there is room; includes the time for which a stepped clock stands still. */
  readonly waitUs: number;
  /** From the store's now until its pause ends; 0: it is not paused. */
  readonly pausedUs: number;
  /** When its pause or its governor's ends or ended; 0: there was none. */
  readonly emptyUs: number;
  /** The line as it counts: when it ends; 0: there is none. */
  readonly lineUs: number;
}

export type RateView = ViewOf<RateDemand, Bucket>;
export type WindowView = ViewOf<WindowDemand, WindowState>;
export type LeaseView = ViewOf<ConcurrencyDemand, LeaseState>;
export type ShareView = ViewOf<ShareDemand, ShareState> & {
  readonly group: ShareGroup;
  readonly whole: RateView;
  /** How long it has owed nothing. */
  readonly idleUs: number;
};

/** One bucket of a request, as it looks to it now. */
export type View = RateView | WindowView | LeaseView | ShareView;

export function viewsOf(buckets: Buckets, demands: readonly Demand[], asker: Asker, at: Moment): View[] {
  const views: View[] = [];
  for (const demand of demands) {
    if (demand.kind === 'rate') views.push(viewRate(buckets, own(buckets, demand, at), asker, at));
    else if (demand.kind === 'window') views.push(viewWindow(buckets, own(buckets, demand, at), at));
    else if (demand.kind === 'concurrency') views.push(viewLeases(buckets, demand, asker, at));
    else views.push(viewShare(buckets, demand, views.at(-1) as RateView, at));
  }
  return views;
}

/** The demand's own bucket, or the one that values without share. */
function own<L extends RateDemand | WindowDemand>(buckets: Buckets, demand: L, at: Moment): L {
  const { maxKeys, name } = demand.limit;
  if (maxKeys === null) return demand;
  const registry = (buckets.get(registryName(name)) as KeyRegistry | undefined) ?? blankRegistry();
  const shared = { ...demand, bucket: name };
  const stored = buckets.get(stateName(shared));
  const atRest = stored === undefined || restUs(shared, stored) <= at.nowUs;
  return hasOwnBucket(registry, stateName(demand), maxKeys, atRest, at.nowUs) ? demand : shared;
}

function viewRate(buckets: Buckets, demand: RateDemand, { priority }: Asker, at: Moment): RateView {
  const { limit } = demand;
  const stored = buckets.get(stateName(demand)) as Bucket | undefined;
  const before = stored ?? blank(limit, at);
  const state = drained(before, limit, at);
  const emptyUs = emptyUsOf(state, at);
  const full = state.debt === 0 && emptyUs <= state.atUs;
  const fullUs = fullAtUs(before, limit, emptyUsOf(before, at));
  state.lineUs = openLine(state.lineUs, state.atUs, full, fullUs);
  // Full for half a token's time: it is not over its limit.
  const relievedUs = Math.min(LINE_GRACE_US, ceilDiv(limit.periodUs, 2 * state.rate));
  if (full && state.atUs - fullUs >= relievedUs) state.overUs = 0;
  // Nor is one that was paused since.
  if (emptyUs > state.overUs) state.overUs = 0;
  const wait = rateWaitUs(state, limit, demand.cost, priority, emptyUs);
  const waitUs = wait === 0 ? 0 : state.atUs - at.nowUs + wait;
  return { demand, stored, state, waitUs, pausedUs: pausedUs(state, at), emptyUs, lineUs: state.lineUs };
}

function viewWindow(buckets: Buckets, demand: WindowDemand, at: Moment): WindowView {
  const { limit } = demand;
  const stored = buckets.get(stateName(demand)) as WindowState | undefined;
  const before = converted(stored ?? blankWindow(limit, at.nowUs, at.coldAtUs), limit);
  const state = moved(before, limit, at.nowUs);
  const empty = usedOf(state, limit) === 0;
  state.lineUs = openLine(
    state.lineUs,
    state.atUs,
    empty,
    Math.min(windowEmptyUs(before, limit), state.atUs),
  );
  const paused = pausedUs(state, at);
  const wait = windowWaitUs(state, limit, demand.cost);
  const waitUs = Math.max(paused, wait === 0 ? 0 : state.atUs - at.nowUs + wait);
  const emptyUs = emptyUsOf(state, at);
  return { demand, stored: stored && before, state, waitUs, pausedUs: paused, emptyUs, lineUs: state.lineUs };
}

function viewLeases(buckets: Buckets, demand: ConcurrencyDemand, { holder }: Asker, at: Moment): LeaseView {
  const { limit } = demand;
  const stored = buckets.get(stateName(demand)) as LeaseState | undefined;
  const state = lapsed(stored ?? blankLeases(limit, at.nowUs), limit, at.nowUs);
  const paused = pausedUs(state, at);
  // Whoever held slots when the store lost them has come to renew them by then.
  const coldUs = at.coldAtUs === 0 ? 0 : Math.max(0, at.coldAtUs + limit.leaseUs - at.nowUs);
  const own = state.leases.some((lease) => lease.holder === holder);
  const emptyUs = emptyUsOf(state, at);
  const waitUs = Math.max(paused, own ? 0 : coldUs, leaseWaitUs(state, limit, demand.cost, holder, emptyUs));
  return { demand, stored, state, waitUs, pausedUs: paused, emptyUs, lineUs: 0 };
}

function viewShare(buckets: Buckets, demand: ShareDemand, whole: RateView, at: Moment): ShareView {
  const { limit, key, weight, cost } = demand;
  const { nowUs } = at;
  const name = groupName(limit.name);
  const group = groupAt((buckets.get(name) as ShareGroup | undefined) ?? blankGroup(nowUs), nowUs);
  const stored = buckets.get(stateName(demand)) as ShareState | undefined;
  const before = stored ?? blankShare(nowUs);
  const share = eased(shareIn(group, key, weight, nowUs), limit, whole.state);
  const state = sharedAt(before, share, nowUs);
  state.lineUs = openLine(state.lineUs, state.atUs, state.debt === 0, shareFullUs(before));
  const leastOwed = owedByPause(state, limit, whole.state, cost);
  state.debt = Math.max(leastOwed, Math.min(state.debt, mostOwed(state, limit, whole.state, cost)));
  const paused = pausedUs(state, at);
  const spare = paused === 0 && leastOwed === 0 && hasSpare(limit, whole.state, cost);
  const wait = spare ? 0 : shareWaitUs(state, limit, whole.state, cost);
  const waitUs = Math.max(paused, wait === 0 ? 0 : state.atUs - nowUs + wait);
  // Work that is to spare is nobody's: it need not wait in a line either.
  return {
    demand,
    stored,
    state,
    waitUs,
    pausedUs: paused,
    emptyUs: emptyUsOf(state, at),
    lineUs: spare ? 0 : state.lineUs,
    group,
    whole,
    idleUs: Math.max(0, nowUs - shareFullUs(before)),
  };
}

const pausedUs = (state: { readonly closedUs: number }, at: Moment): number =>
  Math.max(0, emptyUsOf(state, at) - at.nowUs);

/** By how much a place in the line moves it on: what the bucket takes to come by the cost. */
export function intervalUs(view: RateView | WindowView | ShareView): number {
  const { demand } = view;
  if (demand.kind === 'window') return windowIntervalUs(demand.limit, demand.cost);
  if (demand.kind === 'rate')
    return ceilDiv(costUnits(demand.limit, demand.cost), (view as RateView).state.rate);
  const { whole, state } = view as ShareView;
  return ceilDiv(shareUnits(demand.limit, whole.state, demand.cost), state.share);
}

/** Whole tokens that could be taken now, and what may be taken of it at the most. */
export function remainingOf(view: View): number {
  const { demand, state, pausedUs, emptyUs } = view;
  if (pausedUs > 0) return 0;
  if (demand.kind === 'rate') return remainingTokens(state as Bucket, demand.limit);
  if (demand.kind === 'window')
    return Math.max(0, demand.limit.max - usedOf(state as WindowState, demand.limit));
  if (demand.kind === 'concurrency') {
    return Math.max(0, slotsOf(state as LeaseState, demand.limit, emptyUs) - heldOf(state as LeaseState));
  }
  return remainingOf((view as ShareView).whole);
}

/** Keeps a state that has been changed. */
export function save(buckets: Buckets, view: View): void {
  const { demand, state } = view;
  const untilUs = restUs(demand, state);
  buckets.set(stateName(demand), state, untilUs);
  if (demand.kind === 'share') {
    const { group } = view as ShareView;
    buckets.set(groupName(demand.limit.name), group, groupRestUs(group));
  } else if (
    demand.kind !== 'concurrency' &&
    demand.limit.maxKeys !== null &&
    demand.bucket !== demand.limit.name
  ) {
    const name = registryName(demand.limit.name);
    const registry = (buckets.get(name) as KeyRegistry | undefined) ?? blankRegistry();
    registerBucket(registry, stateName(demand), untilUs);
    buckets.set(name, registry, Number.MAX_SAFE_INTEGER);
  }
}

/** The microsecond from which a state says nothing more than none does; its expiry. */
export function restUs(demand: Pick<Demand, 'kind' | 'limit'>, state: State): number {
  if (demand.kind === 'rate') {
    const bucket = state as Bucket;
    const keptUs = bucket.adaptive === null ? 0 : bucket.atUs + ADAPTIVE_KEPT_US;
    const fullUs = fullAtUs(bucket, demand.limit as RateDemand['limit'], bucket.closedUs);
    return Math.max(fullUs, bucket.penaltyUs, keptUs) + LINE_GRACE_US;
  }
  if (demand.kind === 'window') {
    const limit = demand.limit as WindowDemand['limit'];
    const window = converted(state as WindowState, limit);
    const emptyUs = windowEmptyUs(window, limit);
    return Math.max(emptyUs, window.closedUs) + LINE_GRACE_US;
  }
  if (demand.kind === 'concurrency') {
    const leases = state as LeaseState;
    const keptUs = leases.adaptive === null ? 0 : leases.atUs + ADAPTIVE_KEPT_US;
    return Math.max(leasesEmptyUs(leases), leases.closedUs, keptUs) + LINE_GRACE_US;
  }
  return shareRestUs(state as ShareState) + LINE_GRACE_US;
}

const groupRestUs = (group: ShareGroup): number => groupOverUs(group) + LINE_GRACE_US;

/** The limit as it is now: units a microsecond of a rate or a share, slots, or tokens of a window. */
export function effectiveOf(view: View): number {
  if (view.demand.kind === 'rate') return (view as RateView).state.rate;
  if (view.demand.kind === 'share') return (view as ShareView).state.share;
  return view.demand.kind === 'concurrency'
    ? slotsOf((view as LeaseView).state, view.demand.limit, view.emptyUs)
    : view.demand.limit.max;
}
