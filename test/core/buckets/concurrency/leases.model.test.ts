import { expect, it } from 'vitest';
import {
  ASK_AGAIN_US,
  type Lease,
  type LeaseState,
  type Waiting,
  WOKEN_US,
} from '../../../../src/core/buckets/concurrency/leases.ts';
import type { HeldSlot } from '../../../../src/core/decide/give-back.ts';
import { S, ZERO_US } from '../../support/desk.ts';
import { Office, slotsOf } from '../../support/office.ts';

/*
 * Every state that three callers can bring the slots of a limit into: who asks, waits, asks again when it is woken or its time
 * has come, renews, releases, gives up, or (one of them) dies; in steps of a second, and the limit raised and lowered at any moment.
 */
const STEP_US = S;
const COSTS = { a: 1, b: 2, c: 1 } as const;
type Name = keyof typeof COSTS;
const NAMES = Object.keys(COSTS) as Name[];

type Caller =
  | { readonly is: 'idle' }
  | { readonly is: 'waiting'; readonly dueUs: number; readonly woken: boolean }
  | { readonly is: 'holding'; readonly slot: HeldSlot };

interface World {
  readonly office: Office;
  readonly nowUs: number;
  readonly callers: Readonly<Record<Name, Caller>>;
}

type Action = 'ask' | 'release' | 'renew' | 'leave' | 'die';
const NEXT: Readonly<Record<Caller['is'], readonly Action[]>> = {
  idle: ['ask'],
  waiting: ['ask', 'leave', 'die'],
  holding: ['release', 'renew', 'die', 'ask'],
};

/** One of them may die: it says nothing, and its place or its lease lapses. */
const actionsOf = ({ callers }: World, name: Name) =>
  NEXT[callers[name].is].filter((action) => action !== 'die' || name === 'b');

const limitsOf = (max: number) => ({ slots: { kind: 'concurrency' as const, max, leaseMs: 2_000 } });
const costOf = (name: Name) => ({ slots: COSTS[name] });
const stateOf = ({ office }: World) =>
  office.stored({ kind: 'concurrency', bucket: 'slots' }) as LeaseState | undefined;
const maxOf = ({ office }: World) => (office.limits[0] as { max: number }).max;

function liveOf(world: World) {
  const { leases = [], waiting = [] } = stateOf(world) ?? {};
  const alive = ({ untilUs }: { untilUs: number }) => untilUs > ZERO_US + world.nowUs;
  return { leases: leases.filter(alive), waiting: waiting.filter(alive) };
}

const sum = (all: readonly { cost: number }[]) => all.reduce((total, { cost }) => total + cost, 0);

/** What those in the queue will take besides what is held: some hold a lease already, and who was woken and is late is passed over. */
function more(waiting: readonly Waiting[], leases: readonly Lease[], nowUs: number): number {
  const awaited = waiting.filter(({ wokenUs }) => wokenUs === 0 || ZERO_US + nowUs < wokenUs + WOKEN_US);
  return sum(awaited) - sum(leases.filter(({ holder }) => awaited.some((place) => place.holder === holder)));
}

function acts(before: World, name: Name, action: Action): World {
  const world = { ...before, office: before.office.copy(), callers: { ...before.callers } };
  const { office, nowUs, callers } = world;
  const caller = callers[name];
  const there = liveOf(before);
  if (action === 'ask') {
    const verdict = office.ask(nowUs, { holder: name, cost: costOf(name), queue: true });
    const held = there.leases.filter(({ holder }) => holder !== name);
    const own = there.leases.length > held.length;
    const place = there.waiting.findIndex(({ holder }) => holder === name);
    const earlier = own ? [] : there.waiting.slice(0, place < 0 ? undefined : place);
    // Granted if there is room for it and for all who came before it, and not otherwise.
    expect(verdict.granted).toBe(
      sum(held) + more(earlier, there.leases, nowUs) + COSTS[name] <= maxOf(world),
    );
    callers[name] = verdict.granted
      ? { is: 'holding', slot: slotsOf(verdict.receipt)[0]! }
      : { is: 'waiting', dueUs: nowUs + verdict.waitUs, woken: false };
  } else if (caller.is !== 'holding') {
    if (action === 'leave') office.leave(nowUs, { holder: name, cost: costOf(name) });
    callers[name] = { is: 'idle' };
  } else {
    const { slot } = caller;
    const held = there.leases.some(({ fence }) => fence === slot.fence);
    if (action === 'renew') expect(office.renew(nowUs, slot)).toBe(held);
    if (action === 'release') expect(office.release(nowUs, slot)).toBe(held);
    if (action !== 'renew' || !held) callers[name] = { is: 'idle' };
  }
  // Renewing makes room for nobody, and looks for nobody.
  tell(before, world, action !== 'renew' && action !== 'die');
  return world;
}

/** Wakes those that were told, and checks that they are the ones who fit, each once. */
function tell(before: World, after: World & { callers: Record<Name, Caller> }, looked: boolean): void {
  const { leases, waiting } = liveOf(after);
  const told = new Set(after.office.woken);
  expect(told.size).toBe(after.office.woken.length);
  let taken = sum(leases);
  for (const place of waiting) {
    const holder = place.holder as Name;
    taken += more([place], leases, after.nowUs);
    const caller = after.callers[holder];
    if (told.has(holder)) {
      expect(taken).toBeLessThanOrEqual(maxOf(after));
      if (caller.is !== 'waiting') continue;
      expect(caller === before.callers[holder] && caller.woken).toBe(false);
      after.callers[holder] = { ...caller, woken: true };
    } else if (looked && taken <= maxOf(after) && caller.is === 'waiting') {
      expect(caller.woken).toBe(true);
    }
  }
}

function ticks(before: World): World {
  const office = before.office.copy();
  const nowUs = before.nowUs + STEP_US;
  office.forget(nowUs);
  return { ...before, office, nowUs };
}

function changes(before: World): World {
  const office = before.office.copy();
  office.change(limitsOf(maxOf(before) === 2 ? 3 : 2), before.nowUs);
  return { ...before, office };
}

/** Nobody who waits has something to do before time goes on. */
const settled = ({ callers, nowUs }: World) =>
  NAMES.every((name) => {
    const caller = callers[name];
    return caller.is !== 'waiting' || (!caller.woken && caller.dueUs > nowUs);
  });

/** What a world looks like but for when it is. */
function picture(world: World): string {
  const { leases, waiting } = liveOf(world);
  const since = ({ untilUs }: { untilUs: number }) => untilUs - ZERO_US - world.nowUs;
  const callers = NAMES.map((name) => {
    const caller = world.callers[name];
    if (caller.is === 'waiting') return [caller.dueUs - world.nowUs, caller.woken];
    return caller.is === 'idle' ? 'idle' : leases.some(({ fence }) => fence === caller.slot.fence);
  });
  const all = [
    leases.map((lease) => [lease.holder, lease.cost, since(lease)]),
    waiting.map((place) => [
      place.holder,
      place.wokenUs === 0 || place.wokenUs - ZERO_US - world.nowUs,
      since(place),
    ]),
  ];
  return JSON.stringify([maxOf(world), callers, all]);
}

it('keeps its promises in every state that three callers can bring it into', { timeout: 600_000 }, () => {
  const idle = { is: 'idle' } as const;
  const first: World = { office: new Office(limitsOf(2)), nowUs: 0, callers: { a: idle, b: idle, c: idle } };
  const known = new Set([picture(first)]);
  let edge = [first];
  let steps = 0;
  while (edge.length > 0) {
    const next: World[] = [];
    for (const world of edge) {
      const { leases, waiting } = liveOf(world);
      const mayLower = sum(leases) > 2;
      expect(sum(leases)).toBeLessThanOrEqual(mayLower ? 3 : maxOf(world));
      const followers = NAMES.flatMap((name) =>
        actionsOf(world, name).map((action) => acts(world, name, action)),
      );
      followers.push(changes(world));
      if (settled(world)) {
        // All who were woken, or whose time has come, have asked. If the head of the queue fits nevertheless, room came by
        // itself: it asks again within a second.
        const caller = waiting[0] && world.callers[waiting[0].holder as Name];
        if (caller?.is === 'waiting') expect(caller.dueUs - world.nowUs).toBeLessThanOrEqual(ASK_AGAIN_US);
        followers.push(ticks(world));
      }
      for (const follower of followers) {
        steps += 1;
        const seen = picture(follower);
        if (known.has(seen)) continue;
        known.add(seen);
        next.push(follower);
      }
    }
    edge = next;
  }
  expect(known.size).toBeGreaterThan(1_000);
  expect(steps).toBeGreaterThan(known.size);
});
