import type { Asker, View } from '../buckets/kind.ts';

import { type Buckets, kindOf } from '../buckets/kinds.ts';
import type { Moment } from '../buckets/moment.ts';
import type { Ask } from './ask.ts';
import { charge } from './charge.ts';
import type { Demand } from './demands.ts';
import { canReserve, refuse, type Situation } from './refuse.ts';
import type { Verdict, Wake } from './verdict.ts';
import { viewsOf } from './view.ts';

/**
 * Decides one request over all its buckets: all are charged or none is. A refusal changes nothing that a decision
 * reads, unless it gives a turn or a place in a queue. lua/includes/decide/acquire.lua is the same in Lua.
 */
export function acquire(
  buckets: Buckets,
  demands: readonly Demand[],
  ask: Ask,
  at: Moment,
  wakeUp: Wake,
): Verdict {
  const views = viewsOf(buckets, demands, ask, at);
  const situation: Situation = { buckets, views, ask, at, wakeUp };
  const paused = longest(views, (view) => view.pausedUs);
  if (paused.pausedUs > 0) return refuse(situation, paused, 'paused');
  const line = longest(views, (view) => lineAheadUs(view, ask, at));
  if (lineAheadUs(line, ask, at) > 0) return refuse(situation, line, 'line');
  const binding = bindingOf(views);
  const { waitUs } = binding;
  const startUs = at.nowUs + waitUs;
  if (waitUs > 0 && (waitUs > ask.maxWaitUs || !mayReserve(situation, binding, startUs)))
    return refuseFor(situation, binding);
  if (!views.every((view) => kindOf(view.demand).staysExact?.(view, startUs) ?? true))
    return refuse(situation, binding, 'horizon');
  return grant(situation, waitUs);
}

/** How long the line holds a request up. */
export function lineAheadUs(view: View, asker: Asker & Partial<Ask>, at: Moment): number {
  if (view.lineUs === 0 || asker.returning || kindOf(view.demand).passesLine?.(view, asker)) return 0;
  return view.lineUs - at.nowUs;
}

/** The view with the longest time; of equals one that all requests meet, since it may reserve. */
function longest(views: readonly View[], timeUs: (view: View) => number): View {
  return views.reduce((found, view) => {
    const moreUs = timeUs(view) - timeUs(found);
    return moreUs > 0 || (moreUs === 0 && found.demand.by !== null && view.demand.by === null) ? view : found;
  });
}

/** The one that makes it wait. A queue for slots is joined only when nothing else is in the way. */
function bindingOf(views: readonly View[]): View {
  const outsideQueuesUs = (view: View) => (kindOf(view.demand).slots === undefined ? view.waitUs : 0);
  const others = longest(views, outsideQueuesUs);
  return outsideQueuesUs(others) > 0 ? others : longest(views, (view) => view.waitUs);
}

/**
 * A request reserves only while no limit in it is wider than the one that makes it wait: else it would push the wider
 * bucket forward to its own start and idle everyone else. Of two different attributes, either may be the wider one.
 */
function mayReserve({ views, ask, at }: Situation, binding: View, startUs: number): boolean {
  if (!kindOf(binding.demand).reserves) return false;
  const { by } = binding.demand;
  return views.every((view) => {
    const kind = kindOf(view.demand);
    return (
      (by === null || view.demand.by === by) &&
      (kind.reserves || view.waitUs === 0) &&
      kind.canReserve(view, ask, at) &&
      (kind.countsAhead?.(view, startUs) ?? true)
    );
  });
}

/**
 * Refuses a request that would have to wait too long. One that cannot reserve in a fair limit is put into its own key's line:
 * all meet the limit, but those of other keys behind it may have more of their shares left, and are looked at.
 */
function refuseFor(situation: Situation, binding: View): Verdict {
  const { views, ask } = situation;
  const share = views.find(({ demand }) => demand.parent !== undefined && demand.parent === binding.demand);
  if (share === undefined || ask.maxTurnUs === 0 || !canReserve(situation))
    return refuse(situation, binding, binding.demand.kind);
  const own = { ...share, waitUs: binding.waitUs };
  const others = views.map((view) => (view === share ? own : view));
  return refuse({ ...situation, views: others }, own, own.demand.kind);
}

function grant({ buckets, views, ask, at, wakeUp }: Situation, waitUs: number): Verdict {
  const startUs = at.nowUs + waitUs;
  const ahead = waitUs > 0;
  const charges = views.map((view) => charge(buckets, view, ask, startUs, ahead, wakeUp));
  const receipt = { startUs, ahead, version: at.version, holder: ask.holder, charges };
  return { granted: true, waitUs, receipt };
}
