import type { View } from '../buckets/kind.ts';
import { type Buckets, kindOf } from '../buckets/kinds.ts';
import { lineAfter } from '../buckets/line.ts';
import type { BucketState, Moment } from '../buckets/moment.ts';
import { pauseEndUs, pausesOf } from '../buckets/pause.ts';
import type { Ask } from './ask.ts';
import { wake } from './charge.ts';
import type { RefusalReason, Verdict, Wake } from './verdict.ts';
import { save, storedAs } from './view.ts';

/** A request and the buckets that it meets, as they stand. */
export interface Situation {
  readonly buckets: Buckets;
  readonly views: readonly View[];
  readonly ask: Ask;
  readonly at: Moment;
  readonly wakeUp: Wake;
}

/**
 * What a refusal leaves behind: a place in the line of the bucket that refused, a place in the queue for slots, or only its
 * counter moved. lua/includes/decide/refuse.lua is the same in Lua.
 */
export function refuse(situation: Situation, view: View, reason: RefusalReason): Verdict {
  const { buckets, views, ask, at } = situation;
  const { demand } = view;
  const kind = kindOf(demand);
  // Only one that waits for nothing but a slot keeps a place: else it would hold up those behind it for something else.
  const queues = ask.queue && kind.slots !== undefined && reason === demand.kind;
  for (const other of views) keepPlace(situation, other, queues && other === view);
  const longestWaitUs = Math.max(...views.map((view) => view.waitUs));
  // A pause of the whole governor is nobody's in particular, whichever of its limits says so.
  const isGovernorPause = reason === 'paused' && (at.pause?.untilUs ?? 0) - at.nowUs >= view.pausedUs;
  const by = isGovernorPause ? null : demand.by;
  const verdict = { granted: false, limit: demand.limit, by, reason } as const;
  if (kind.lineAfterUs === undefined) {
    if (!queues) countRefusal(buckets, view, false);
    return { ...verdict, waitUs: longestWaitUs, hasTurn: false };
  }
  const keepsTurn = ask.returning && longestWaitUs <= patienceUs(view, reason, ask);
  const mostTurnUs = turnBoundUs(situation, view, reason);
  const takesTurn = !keepsTurn && mostTurnUs > 0;
  const lineUs = view.lineUs === 0 ? 0 : view.lineUs - at.nowUs;
  // A returning request does not mind the line while there is room, but a new turn is at its end.
  const waitUs = takesTurn || reason === 'line' ? Math.max(longestWaitUs, lineUs) : longestWaitUs;
  const hasTurn = takesTurn && waitUs <= mostTurnUs;
  // The line moves on by its own need: another limit of this request must not shut it for everybody else.
  const behindUs = kind.lineAfterUs(view, Math.max(at.nowUs + view.waitUs, view.lineUs));
  const isChanged = kind.refused?.(view, reason, at) ?? false;
  if (hasTurn) joinLine(buckets, view, lineAfter(behindUs, view.state.atUs), isChanged, at);
  else countRefusal(buckets, view, isChanged);
  return { ...verdict, waitUs, hasTurn };
}

/** For how long a returning request waits on its turn. */
function patienceUs(view: View, reason: RefusalReason, ask: Ask): number {
  const { kind } = view.demand;
  const ownUs = reason === kind ? kindOf(view.demand).patienceUs?.(view) : undefined;
  return Math.min(ask.patienceUs, ownUs ?? ask.patienceUs);
}

/** How far ahead a turn may lie; 0: none is given. */
function turnBoundUs(situation: Situation, { demand }: View, reason: RefusalReason): number {
  const { ask } = situation;
  // A pause may be ended early: what it put into a line would stand there still.
  if (reason === 'paused') return 0;
  if (demand.by !== null || ask.turns === 'all') return ask.maxTurnUs;
  // All requests meet this limit. One that could reserve there waits for that; one that could not has a near turn instead.
  if (kindOf(demand).reserves && canReserve(situation)) return reason === 'line' ? ask.maxTurnUs : 0;
  return Math.min(ask.maxTurnUs, ask.maxWaitUs);
}

/** Whether the request may be granted ahead at all, as far as its buckets are concerned. */
export const canReserve = ({ views, ask, at }: Situation): boolean =>
  views.every((view) => kindOf(view.demand).canReserve(view, ask, at));

function joinLine(buckets: Buckets, view: View, lineUs: number, isChanged: boolean, at: Moment): void {
  const { stored, state } = view;
  const refused = state.refused + 1;
  // Debt and time stay: a bucket is full since it was, not since its last refusal, or its line is never forgotten.
  if (!isChanged && stored !== undefined && isCurrent({ ...view, stored }, at))
    saveStored(buckets, view, { ...stored, lineUs, refused });
  else saveStored(buckets, view, Object.assign(state, { lineUs, refused }));
}

/** Whether the state as stored stands for what it is now. */
function isCurrent(view: View & { readonly stored: BucketState }, at: Moment): boolean {
  const { stored, state, demand } = view;
  if (stored.atUs > state.atUs || pauseEndUs(pausesOf(stored, at)) > stored.atUs) return false;
  return kindOf(demand).isCurrent?.(view) ?? true;
}

/** Only the counter moves. A bucket without state stays without: a state with nothing in it would never expire. */
function countRefusal(buckets: Buckets, view: View, isChanged: boolean): void {
  const { demand, state } = view;
  // A place in the queue may just have been given up.
  const stored = storedAs(buckets, demand);
  if (stored === undefined && !isChanged) return;
  // A clock that was put right, or other limits: what was taken over now would be taken over again and again.
  const isOutdated =
    stored !== undefined &&
    (stored.atUs > state.atUs || (kindOf(demand).isOutdated?.({ ...view, stored }) ?? false));
  if (stored === undefined || isChanged || isOutdated)
    saveStored(buckets, view, Object.assign(state, { refused: state.refused + 1 }));
  else saveStored(buckets, view, { ...stored, refused: stored.refused + 1 });
}

function saveStored(buckets: Buckets, view: View, kept: BucketState): void {
  if (kept !== view.state) kindOf(view.demand).carry?.(view.state, kept);
  save(buckets, view, kept);
}

/** Gives a refused request its place in the queue for slots, or takes it away. */
function keepPlace({ buckets, ask, wakeUp }: Situation, view: View, queues: boolean): void {
  const { slots } = kindOf(view.demand);
  if (slots === undefined) return;
  if (queues) slots.join(view, ask);
  else if (!slots.leave(view, ask.holder)) return;
  wake(view, wakeUp);
  save(buckets, view);
}
