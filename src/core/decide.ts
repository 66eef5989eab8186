import {
  type Bucket,
  blank,
  commit,
  drained,
  refund,
  remainingTokens,
  waitUs as waitOf,
  withinHorizon,
} from './gcra.ts';
import type { Limits, RateLimit } from './limit.ts';
import { forgetLine, lineAfter } from './line.ts';
import type { Leg } from './request.ts';

/** How a request may be answered other than at once. Times in whole microseconds. */
export interface Terms {
  /** A grant may start at most this much later (a reservation); 0: now or not at all. */
  readonly maxWaitUs: number;
  /** A refused request may be given a slot at most this far ahead; 0: none. */
  readonly maxSlotUs: number;
  /** Which limits give slots: those with keys, or all (for who cannot keep a refused request at the head of a queue). */
  readonly slots: 'keyed' | 'all';
  /** The request was given a slot before and comes back from it: the line does not hold it up. */
  readonly returning: boolean;
  /** A returning request that must wait no longer than this is told so and keeps its place; else it gets a new slot. */
  readonly patienceUs: number;
}

/** Why a request was refused: too few tokens, work deferred before it, or a start too far ahead to be exact. */
export type RefusalReason = 'rate' | 'line' | 'horizon';

/**
 * What is needed to take a grant back: per bucket what `granted` was after it, and how far it was moved forward. A grant
 * that starts at once has no legs: nothing of it can be taken back.
 */
export interface Receipt {
  readonly startUs: number;
  readonly legs: readonly {
    readonly leg: Leg;
    readonly grantedAfter: number;
    readonly pushedUnits: number;
  }[];
}

export type Verdict =
  | { readonly granted: true; readonly waitUs: number; readonly receipt: Receipt }
  | {
      readonly granted: false;
      /** The limit that refused. */
      readonly limit: RateLimit;
      readonly reason: RefusalReason;
      /** From now until the request may be made again with success, or until its slot. */
      readonly waitUs: number;
      readonly slotted: boolean;
    };

/** The buckets of a governor, as a decision sees them. */
export interface Buckets {
  get(bucket: string): Bucket | undefined;
  set(bucket: string, state: Bucket): void;
}

interface View {
  readonly leg: Leg;
  /** The state as stored; undefined if there is none. */
  readonly stored: Bucket | undefined;
  readonly state: Bucket;
  /** From the store's now until there is room; includes the time for which a stepped clock stands still. */
  readonly waitUs: number;
  /** From the store's now until the line ends, for who has to mind it. */
  readonly lineUs: number;
}

/**
 * Decides one request over all its buckets: all are charged or none is. A refusal changes nothing that a decision
 * reads, unless it gives a slot. lua/includes/acquire.lua is the same in Lua.
 */
export function acquire(
  buckets: Buckets,
  legs: readonly Leg[],
  terms: Terms,
  nowUs: number,
  coldAtUs: number,
): Verdict {
  const views = legs.map((leg) => view(buckets, leg, terms, nowUs, coldAtUs));
  const line = longest(views, (view) => view.lineUs);
  if (views[line]!.lineUs > 0) return refuse(buckets, views, line, 'line', terms, nowUs);
  const binding = longest(views, (view) => view.waitUs);
  const { waitUs } = views[binding]!;
  if (waitUs > terms.maxWaitUs || (waitUs > 0 && !mayReserve(views, binding))) {
    return refuse(buckets, views, binding, 'rate', terms, nowUs);
  }
  const startUs = nowUs + waitUs;
  if (!views.every(({ leg, state }) => withinHorizon(state, leg.limit, aheadOf(state, startUs), leg.cost))) {
    return refuse(buckets, views, binding, 'horizon', terms, nowUs);
  }
  return grant(buckets, views, waitUs, startUs);
}

function view(buckets: Buckets, leg: Leg, terms: Terms, nowUs: number, coldAtUs: number): View {
  const stored = buckets.get(leg.bucket);
  const state = stateOf(stored, leg, nowUs, coldAtUs);
  const wait = waitOf(state, leg.limit, leg.cost);
  const waitUs = wait === 0 ? 0 : state.atUs - nowUs + wait;
  const lineUs = terms.returning || state.lineUs === 0 ? 0 : state.lineUs - nowUs;
  return { leg, stored, state, waitUs, lineUs };
}

/** A bucket as it stands now, its line forgotten if the work in it is not coming. */
function stateOf(stored: Bucket | undefined, leg: Leg, nowUs: number, coldAtUs: number): Bucket {
  const before = stored ?? blank(leg.limit, nowUs, coldAtUs);
  const state = drained(before, leg.limit, nowUs);
  forgetLine(before, state);
  return state;
}

const isKeyed = (view: View): boolean => view.leg.limit.by !== null;

/** Index of the leg with the longest time; of equals a governor-wide one, since it may reserve. */
function longest(views: readonly View[], timeUs: (view: View) => number): number {
  let found = 0;
  for (let index = 1; index < views.length; index++) {
    const more = timeUs(views[index]!) - timeUs(views[found]!);
    if (more > 0 || (more === 0 && isKeyed(views[found]!) && !isKeyed(views[index]!))) found = index;
  }
  return found;
}

/**
 * A request reserves only while no limit in it is wider than the one that makes it wait: else it would push the wider
 * bucket forward to its own start and idle everyone else. Of two different attributes, either may be the wider one.
 */
function mayReserve(views: readonly View[], binding: number): boolean {
  const { by } = views[binding]!.leg.limit;
  return by === null || views.every(({ leg }) => leg.limit.by === by);
}

const aheadOf = (state: Bucket, startUs: number): number => Math.max(0, startUs - state.atUs);

function grant(buckets: Buckets, views: readonly View[], waitUs: number, startUs: number): Verdict {
  const legs = views.map(({ leg, state }) => {
    const pushedUnits = commit(state, leg.limit, aheadOf(state, startUs), leg.cost);
    buckets.set(leg.bucket, state);
    return { leg, grantedAfter: state.granted, pushedUnits };
  });
  return { granted: true, waitUs, receipt: { startUs, legs: waitUs === 0 ? [] : legs } };
}

function refuse(
  buckets: Buckets,
  views: readonly View[],
  refusing: number,
  reason: RefusalReason,
  terms: Terms,
  nowUs: number,
): Verdict {
  const { leg, stored, state } = views[refusing]!;
  const longestWaitUs = Math.max(...views.map((view) => view.waitUs));
  const keepsPlace = terms.returning && longestWaitUs <= terms.patienceUs;
  const takesSlot = !keepsPlace && (reason === 'line' || terms.slots === 'all' || isKeyed(views[refusing]!));
  // A returning request does not mind the line while there is room, but a new slot is at its end.
  const waitUs = takesSlot ? Math.max(longestWaitUs, state.lineUs - nowUs) : longestWaitUs;
  const verdict = { granted: false, limit: leg.limit, reason, waitUs } as const;
  if (takesSlot && waitUs <= terms.maxSlotUs) {
    // The line moves on by its own need: another limit of this request must not close it for everybody else.
    const ownUs = Math.max(nowUs + views[refusing]!.waitUs, state.lineUs);
    const joined = unchanged(stored, state) ?? state;
    buckets.set(leg.bucket, {
      ...joined,
      lineUs: lineAfter(state, leg.limit, ownUs, leg.cost),
      refused: state.refused + 1,
    });
    return { ...verdict, slotted: true };
  }
  // Only the counter moves. A bucket without state stays without: a state with nothing in it would never expire.
  if (stored !== undefined) buckets.set(leg.bucket, { ...stored, refused: stored.refused + 1 });
  return { ...verdict, slotted: false };
}

/**
 * The state as stored, if it says the same as its drained form. A slot must not store the drained one: a bucket would be
 * full since the last refusal only, and a line whose work is not coming would never be forgotten.
 */
function unchanged(stored: Bucket | undefined, state: Bucket): Bucket | undefined {
  if (stored === undefined || stored.atUs > state.atUs) return undefined;
  return stored.rate === state.rate && stored.periodUs === state.periodUs ? stored : undefined;
}

/** Charges a request whatever the buckets hold, now; who comes after waits until it has drained. */
export function force(buckets: Buckets, legs: readonly Leg[], nowUs: number, coldAtUs: number): boolean {
  const states = legs.map((leg) => stateOf(buckets.get(leg.bucket), leg, nowUs, coldAtUs));
  if (!legs.every((leg, index) => withinHorizon(states[index]!, leg.limit, 0, leg.cost))) return false;
  for (const [index, leg] of legs.entries()) {
    commit(states[index]!, leg.limit, 0, leg.cost);
    buckets.set(leg.bucket, states[index]!);
  }
  return true;
}

/**
 * Takes a grant back that has not started yet.
 *
 * @param receipt - Its limits are those in force ({@link underLimits}).
 * @returns whether all of it was given back.
 */
export function cancel(buckets: Buckets, receipt: Receipt, nowUs: number): boolean {
  if (nowUs >= receipt.startUs || receipt.legs.length === 0) return false;
  let whole = true;
  for (const { leg, grantedAfter, pushedUnits } of receipt.legs) {
    const stored = buckets.get(leg.bucket);
    if (stored === undefined) {
      whole = false;
      continue;
    }
    const state = drained(stored, leg.limit, nowUs);
    if (refund(state, leg.limit, grantedAfter, leg.cost, pushedUnits)) buckets.set(leg.bucket, state);
    else whole = false;
  }
  return whole;
}

/** A receipt in the units of the limits in force; legs whose limit is gone have nothing to give back. */
export function underLimits(receipt: Receipt, limits: Limits): Receipt {
  const legs = receipt.legs.flatMap((granted) => {
    const { limit: then } = granted.leg;
    const limit = limits.find(({ name, by }) => name === then.name && by === then.by);
    if (limit === undefined) return [];
    const sameUnits = limit.rate === then.rate && limit.periodUs === then.periodUs;
    return [{ ...granted, leg: { ...granted.leg, limit }, pushedUnits: sameUnits ? granted.pushedUnits : 0 }];
  });
  return { ...receipt, legs };
}

/** What a bucket looks like to a request that takes nothing. */
export interface Sight {
  readonly remaining: number;
  readonly waitUs: number;
  readonly lineUs: number;
  readonly granted: number;
  readonly refused: number;
}

export function peek(buckets: Buckets, legs: readonly Leg[], nowUs: number, coldAtUs: number): Sight[] {
  const terms: Terms = { maxWaitUs: 0, maxSlotUs: 0, slots: 'keyed', returning: false, patienceUs: 0 };
  return legs.map((leg) => {
    const { state, waitUs, lineUs } = view(buckets, leg, terms, nowUs, coldAtUs);
    const remaining = remainingTokens(state, leg.limit);
    return { remaining, waitUs, lineUs, granted: state.granted, refused: state.refused };
  });
}
