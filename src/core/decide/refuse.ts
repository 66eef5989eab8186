import { leaveQueue, queueUp, wake } from '../buckets/concurrency/leases.ts';
import { lineAfter } from '../buckets/line.ts';
import type { Moment } from '../buckets/moment.ts';
import { whenWorth } from '../buckets/ramp.ts';
import { penalised, rampEndUs, repace } from '../buckets/rate/debt.ts';
import { activate } from '../buckets/share/share.ts';
import { type Buckets, stateName } from './buckets.ts';
import type { RefusalReason, Terms, Verdict, Wake } from './verdict.ts';
import {
  type Asker,
  intervalUs,
  type LeaseView,
  type RateView,
  type ShareView,
  save,
  type View,
  type WindowView,
} from './views.ts';

/**
 * What a refusal leaves behind: a place in the line of the bucket that refused, a place in the queue for slots, or only its
 * counter moved. lua/includes/decide/refuse.lua is the same in Lua.
 */
export function refuse(
  buckets: Buckets,
  views: readonly View[],
  refusing: number,
  reason: RefusalReason,
  asker: Omit<Asker, 'priority'>,
  terms: Terms,
  at: Moment,
  wakeUp: Wake,
): Verdict {
  const view = views[refusing]!;
  const { demand } = view;
  for (const other of views) {
    if (other.demand.kind !== 'concurrency') continue;
    // Only who waits for nothing but a slot keeps a place: else it would hold up those behind it for something else.
    const queues = terms.queue && other === view && reason === 'concurrency';
    keepPlace(buckets, other as LeaseView, asker, queues, wakeUp);
  }
  const longestWaitUs = Math.max(...views.map((view) => view.waitUs));
  const keepsPlace = terms.returning && longestWaitUs <= patienceUs(view, reason, terms);
  const lineUs = view.lineUs === 0 ? 0 : view.lineUs - at.nowUs;
  // A pause of the whole governor is nobody's in particular, whichever of its limits says so.
  const isWhole = reason === 'paused' && at.closedUs - at.nowUs >= view.pausedUs;
  const by = isWhole ? null : demand.by;
  const verdict = { granted: false, limit: demand.limit, by, reason } as const;
  if (demand.kind === 'concurrency') {
    if (!(terms.queue && reason === 'concurrency')) countRefusal(buckets, view, at);
    return { ...verdict, waitUs: longestWaitUs, hasTurn: false };
  }
  if (demand.kind === 'share' && reason === 'share') {
    activate((view as ShareView).group, demand.key, demand.weight, view.state.atUs);
  }
  const mostTurnUs = turnBoundUs(views, view, reason, terms, at);
  const takesTurn = !keepsPlace && mostTurnUs > 0;
  // A returning request does not mind the line while there is room, but a new slot is at its end.
  const waitUs = takesTurn || reason === 'line' ? Math.max(longestWaitUs, lineUs) : longestWaitUs;
  if (takesTurn && waitUs <= mostTurnUs) {
    joinLine(buckets, view as InLine, at);
    return { ...verdict, waitUs, hasTurn: true };
  }
  countRefusal(buckets, view, at);
  return { ...verdict, waitUs, hasTurn: false };
}

/**
 * For how long a returning request waits on its place. Slots in the line of a share were given at the pace that it had then.
 * When others have come since, more return than it admits: all but the next had better have a new slot than ask and ask.
 */
function patienceUs(view: View, reason: RefusalReason, terms: Terms): number {
  if (reason !== 'share') return terms.patienceUs;
  return Math.min(terms.patienceUs, Math.floor(intervalUs(view as ShareView) / 2));
}

type InLine = RateView | WindowView | ShareView;

/** How far ahead a slot may lie; 0: none is given. */
function turnBoundUs(
  views: readonly View[],
  { demand }: View,
  reason: RefusalReason,
  terms: Terms,
  at: Moment,
): number {
  // A pause may be ended early: what it put into a line would stand there still.
  if (reason === 'paused') return 0;
  if (demand.by !== null || terms.turns === 'all') return terms.maxTurnUs;
  // All requests meet this limit. One that could reserve there waits for that; one that could not has a near slot instead.
  const couldReserve = demand.kind === 'rate' && views.every((view) => canReserve(view, terms, at));
  if (couldReserve) return reason === 'line' ? terms.maxTurnUs : 0;
  return Math.min(terms.maxTurnUs, terms.maxWaitUs);
}

function joinLine(buckets: Buckets, view: InLine, at: Moment): void {
  const { demand, stored, state } = view;
  // The line moves on by its own need: another limit of this request must not close it for everybody else.
  const ownUs = Math.max(at.nowUs + view.waitUs, view.lineUs);
  const behindUs =
    demand.kind === 'rate'
      ? whenWorth(intervalUs(view), ownUs, rampEndUs(demand.limit, view.emptyUs))
      : ownUs + intervalUs(view);
  const lineUs = lineAfter(behindUs, state.atUs);
  const punished = demand.kind === 'rate' && overLimit(view as RateView, at);
  const refused = state.refused + 1;
  if (!punished && stored !== undefined && saysTheSame(buckets, view, at)) {
    // Debt and time stay: a bucket is full since it was, not since its last refusal, or its line is never forgotten.
    const overUs = demand.kind === 'rate' ? { overUs: (view as RateView).state.overUs } : {};
    save(buckets, { ...view, state: { ...stored, ...overUs, lineUs, refused } } as View);
    return;
  }
  Object.assign(state, { lineUs, refused });
  save(buckets, view);
}

/** Whether the state as stored stands for what it is now. */
function saysTheSame(buckets: Buckets, view: InLine, at: Moment): boolean {
  const stored = view.stored!;
  if (stored.atUs > view.state.atUs || Math.max(stored.closedUs, at.closedUs) > stored.atUs) return false;
  if (view.demand.kind === 'share') return true;
  if (view.demand.kind === 'window') return !isConverted(buckets, view);
  const { periodUs, burst, version, rate } = stored as RateView['state'];
  const { state, demand } = view as RateView;
  if (periodUs !== state.periodUs || burst !== state.burst || version !== state.version) return false;
  return rate === state.rate || demand.limit.adaptive !== null;
}

/** Only the counter moves. A bucket without state stays without: a state with nothing in it would never expire. */
function countRefusal(buckets: Buckets, view: View, at: Moment): void {
  const { demand, state } = view;
  // A place in the queue may just have been given up.
  const stored =
    demand.kind === 'concurrency' ? (buckets.get(stateName(demand)) as typeof view.stored) : view.stored;
  if (demand.kind === 'rate' && view.pausedUs === 0 && overLimit(view as RateView, at)) {
    state.refused += 1;
    save(buckets, view);
    return;
  }
  if (stored === undefined) return;
  if (isOutdated(view) || isConverted(buckets, view)) {
    state.refused += 1;
    save(buckets, view);
    return;
  }
  const overUs = demand.kind === 'rate' ? { overUs: (view as RateView).state.overUs } : {};
  save(buckets, { ...view, state: { ...stored, ...overUs, refused: stored.refused + 1 } } as View);
}

/** Whether what was taken over now would be taken over again and again: a clock that was put right, other limits. */
function isOutdated({ demand, stored, state }: View): boolean {
  if (stored!.atUs > state.atUs) return true;
  return (
    demand.kind === 'rate' && (stored as RateView['state']).version !== (state as RateView['state']).version
  );
}

/** Whether a window is seen in the terms of another limit than it was stored under. */
const isConverted = (buckets: Buckets, { demand, stored }: View): boolean =>
  demand.kind === 'window' && stored !== undefined && stored !== buckets.get(stateName(demand));

/** Counts how long a bucket has been over its limit. Whether its penalty begins now; then it drains more slowly from now on. */
function overLimit({ demand: { limit }, state }: RateView, at: Moment): boolean {
  if (limit.penalty === null || state.penaltyUs > state.atUs) return false;
  if (state.overUs === 0) state.overUs = at.nowUs;
  if (at.nowUs - state.overUs < limit.penalty.afterUs) return false;
  state.overUs = 0;
  state.penaltyUs = at.nowUs + limit.penalty.forUs;
  repace(state, penalised(limit, state.rate));
  return true;
}

/** Gives a refused request its place in the queue for slots, or takes it away. */
function keepPlace(
  buckets: Buckets,
  view: LeaseView,
  { holder, instance = '' }: Omit<Asker, 'priority'>,
  queues: boolean,
  wakeUp: Wake,
): void {
  const { state, demand } = view;
  if (queues) {
    queueUp(state, demand.cost, holder, instance);
    state.refused += 1;
  } else if (state.waiting.some((place) => place.holder === holder)) leaveQueue(state, holder);
  else return;
  wakeAll(view, wakeUp);
  save(buckets, view);
}

/** Wakes those for whom there is room now. */
export function wakeAll({ state, demand, emptyUs }: LeaseView, wakeUp: Wake): void {
  for (const holder of wake(state, demand.limit, emptyUs)) wakeUp(holder);
}

/** Whether grants from this bucket are made ahead at all. */
export function canReserve({ demand, emptyUs }: View, terms: Terms, at: Moment): boolean {
  // What the less urgent reserve is what the urgent would wait for. A slot that waits for its start would be held idle.
  // And what is granted ahead cannot follow an adaptive limit that falls, nor a pause that is ended early.
  if (demand.kind === 'rate') {
    const { adaptive, kept } = demand.limit;
    return adaptive === null && (kept === null || terms.priority === 0) && emptyUs <= at.nowUs;
  }
  return demand.kind !== 'concurrency';
}
