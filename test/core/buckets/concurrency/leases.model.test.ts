import { expect, it } from 'vitest';
import type { ConcurrencyState } from '../../../../src/core/buckets/concurrency/index.ts';
import type { Lease, Waiting } from '../../../../src/core/buckets/concurrency/state.ts';
import { ASK_AGAIN_US, WOKEN_US } from '../../../../src/core/buckets/constants.ts';
import type { HeldSlot } from '../../../../src/core/decide/give-back.ts';
import { S, slotsOf, World, ZERO_US } from '../../../support/world.ts';

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

interface Scene {
  readonly world: World;
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
const actionsOf = ({ callers }: Scene, name: Name) =>
  NEXT[callers[name].is].filter((action) => action !== 'die' || name === 'b');

const limitsOf = (max: number) => ({ slots: { kind: 'concurrency' as const, max, leaseMs: 2_000 } });
const costOf = (name: Name) => ({ slots: COSTS[name] });
const stateOf = ({ world }: Scene) =>
  world.stored({ kind: 'concurrency', bucket: 'slots' }) as ConcurrencyState | undefined;
const maxOf = ({ world }: Scene) => (world.limits[0] as { max: number }).max;

function liveOf(scene: Scene) {
  const { leases = [], waiting = [] } = stateOf(scene) ?? {};
  const alive = ({ untilUs }: { untilUs: number }) => untilUs > ZERO_US + scene.nowUs;
  return { leases: leases.filter(alive), waiting: waiting.filter(alive) };
}

const sum = (all: readonly { cost: number }[]) => all.reduce((total, { cost }) => total + cost, 0);

/** What those in the queue will take besides what is held: some hold a lease already, and who was woken and is late is passed over. */
function more(waiting: readonly Waiting[], leases: readonly Lease[], nowUs: number): number {
  const awaited = waiting.filter(({ wokenUs }) => wokenUs === 0 || ZERO_US + nowUs < wokenUs + WOKEN_US);
  return sum(awaited) - sum(leases.filter(({ holder }) => awaited.some((place) => place.holder === holder)));
}

function acts(before: Scene, name: Name, action: Action): Scene {
  const scene = { ...before, world: before.world.copy(), callers: { ...before.callers } };
  const { world, nowUs, callers } = scene;
  const caller = callers[name];
  const there = liveOf(before);
  if (action === 'ask') {
    const verdict = world.acquire(nowUs, { holder: name, cost: costOf(name), queue: true });
    const held = there.leases.filter(({ holder }) => holder !== name);
    const own = there.leases.length > held.length;
    const place = there.waiting.findIndex(({ holder }) => holder === name);
    const earlier = own ? [] : there.waiting.slice(0, place < 0 ? undefined : place);
    // Granted if there is room for it and for all who came before it, and not otherwise.
    expect(verdict.granted).toBe(
      sum(held) + more(earlier, there.leases, nowUs) + COSTS[name] <= maxOf(scene),
    );
    callers[name] = verdict.granted
      ? { is: 'holding', slot: slotsOf(verdict.receipt)[0]! }
      : { is: 'waiting', dueUs: nowUs + verdict.waitUs, woken: false };
  } else if (caller.is !== 'holding') {
    if (action === 'leave') world.leave(nowUs, { holder: name, cost: costOf(name) });
    callers[name] = { is: 'idle' };
  } else {
    const { slot } = caller;
    const held = there.leases.some(({ fence }) => fence === slot.fence);
    if (action === 'renew') expect(world.renew(nowUs, slot)).toBe(held);
    if (action === 'release') expect(world.release(nowUs, slot)).toBe(held);
    if (action !== 'renew' || !held) callers[name] = { is: 'idle' };
  }
  // Renewing makes room for nobody, and looks for nobody.
  tell(before, scene, action !== 'renew' && action !== 'die');
  return scene;
}

/** Wakes those that were told, and checks that they are the ones who fit, each once. */
function tell(before: Scene, after: Scene & { callers: Record<Name, Caller> }, looked: boolean): void {
  const { leases, waiting } = liveOf(after);
  const told = new Set(after.world.woken);
  expect(told.size).toBe(after.world.woken.length);
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

function ticks(before: Scene): Scene {
  const world = before.world.copy();
  const nowUs = before.nowUs + STEP_US;
  world.forget(nowUs);
  return { ...before, world, nowUs };
}

function changes(before: Scene): Scene {
  const world = before.world.copy();
  world.configure(before.nowUs, limitsOf(maxOf(before) === 2 ? 3 : 2));
  return { ...before, world };
}

/** Nobody who waits has something to do before time goes on. */
const settled = ({ callers, nowUs }: Scene) =>
  NAMES.every((name) => {
    const caller = callers[name];
    return caller.is !== 'waiting' || (!caller.woken && caller.dueUs > nowUs);
  });

/** What a scene looks like but for when it is. */
function picture(scene: Scene): string {
  const { leases, waiting } = liveOf(scene);
  const since = ({ untilUs }: { untilUs: number }) => untilUs - ZERO_US - scene.nowUs;
  const callers = NAMES.map((name) => {
    const caller = scene.callers[name];
    if (caller.is === 'waiting') return [caller.dueUs - scene.nowUs, caller.woken];
    return caller.is === 'idle' ? 'idle' : leases.some(({ fence }) => fence === caller.slot.fence);
  });
  const all = [
    leases.map((lease) => [lease.holder, lease.cost, since(lease)]),
    waiting.map((place) => [
      place.holder,
      place.wokenUs === 0 || place.wokenUs - ZERO_US - scene.nowUs,
      since(place),
    ]),
  ];
  return JSON.stringify([maxOf(scene), callers, all]);
}

it('keeps its promises in every state that three callers can bring it into', { timeout: 600_000 }, () => {
  const idle = { is: 'idle' } as const;
  const first: Scene = { world: new World(limitsOf(2)), nowUs: 0, callers: { a: idle, b: idle, c: idle } };
  const known = new Set([picture(first)]);
  let edge = [first];
  let steps = 0;
  while (edge.length > 0) {
    const next: Scene[] = [];
    for (const scene of edge) {
      const { leases, waiting } = liveOf(scene);
      const mayLower = sum(leases) > 2;
      expect(sum(leases)).toBeLessThanOrEqual(mayLower ? 3 : maxOf(scene));
      const followers = NAMES.flatMap((name) =>
        actionsOf(scene, name).map((action) => acts(scene, name, action)),
      );
      followers.push(changes(scene));
      if (settled(scene)) {
        // All who were woken, or whose time has come, have asked. If the head of the queue fits nevertheless, room came by
        // itself: it asks again within a second.
        const caller = waiting[0] && scene.callers[waiting[0].holder as Name];
        if (caller?.is === 'waiting') expect(caller.dueUs - scene.nowUs).toBeLessThanOrEqual(ASK_AGAIN_US);
        followers.push(ticks(scene));
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
