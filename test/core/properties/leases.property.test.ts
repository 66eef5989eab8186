import fc from 'fast-check';
import { expect, it } from 'vitest';
import type { ConcurrencyState } from '../../../src/core/buckets/concurrency/index.ts';
import type { Lease, Waiting } from '../../../src/core/buckets/concurrency/state.ts';
import { MAX_CLOCK_STEP_US, WOKEN_US } from '../../../src/core/buckets/constants.ts';
import type { HeldSlot } from '../../../src/core/decide/give-back.ts';
import { runs } from '../../support/runs.ts';
import { S, slotsOf, World, ZERO_US } from '../../support/world.ts';

/*
 * Slots of any weight, many holders, a clock that steps back by less than a second, a limit that is raised and lowered, and states that are
 * forgotten. leases.model.test.ts goes through all that few of them can do.
 */
const numRuns = runs(1_000);

const limitsOf = (max: number) => ({ slots: { kind: 'concurrency' as const, max, leaseMs: 2_000 } });

const holder = fc.nat(7).map((index) => `holder${index}`);
const by = fc.oneof(fc.constantFrom(0, 0, 0, 2 * S, 10 * S, -S / 2), fc.integer({ min: -S / 2, max: 2 * S }));
const operations = fc.array(
  fc.oneof(
    {
      weight: 9,
      arbitrary: fc.record({
        kind: fc.constant('ask' as const),
        by,
        holder,
        cost: fc.integer({ min: 1, max: 4 }),
      }),
    },
    {
      weight: 5,
      arbitrary: fc.record({
        kind: fc.constantFrom('release' as const, 'renew' as const),
        by,
        pick: fc.nat(30),
      }),
    },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant('leave' as const), by, holder }) },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant('forget' as const), by }) },
    {
      weight: 1,
      arbitrary: fc.record({ kind: fc.constant('change' as const), by, max: fc.integer({ min: 4, max: 9 }) }),
    },
  ),
  { minLength: 1, maxLength: 80, size: 'max' },
);

const sum = (all: readonly { cost: number }[]) => all.reduce((total, { cost }) => total + cost, 0);

it('never has more held than there are slots, in order, with fences that grow', () => {
  const seen = { granted: 0, refused: 0, released: 0, renewed: 0, late: 0, woken: 0, forgotten: 0 };
  fc.assert(
    fc.property(operations, (operations) => {
      let max = 6;
      const world = new World(limitsOf(max));
      let [nowUs, latestUs, lastFence] = [0, 0, 0];
      const slots: HeldSlot[] = [];
      const told = new Set<string>();

      const live = () => {
        const state = world.stored({ kind: 'concurrency', bucket: 'slots' }) as ConcurrencyState | undefined;
        const { atUs, leases, waiting } = state ?? { atUs: 0, leases: [], waiting: [] };
        const clockUs = Math.max(ZERO_US + nowUs, atUs);
        const alive = ({ untilUs }: Lease | Waiting) => untilUs > clockUs;
        return { clockUs, leases: leases.filter(alive), waiting: waiting.filter(alive) };
      };

      for (const operation of operations) {
        nowUs = Math.max(0, nowUs + operation.by, latestUs - MAX_CLOCK_STEP_US + S / 10);
        latestUs = Math.max(latestUs, nowUs);
        const before = live();
        if (operation.kind === 'ask') {
          const { holder, cost } = operation;
          const others = before.leases.filter((lease) => lease.holder !== holder);
          const place = before.waiting.findIndex((waiting) => waiting.holder === holder);
          const verdict = world.acquire(nowUs, { holder, cost: { slots: cost }, queue: true });
          told.delete(holder);
          if (verdict.granted) {
            seen.granted += 1;
            expect(sum(others) + cost).toBeLessThanOrEqual(max);
            // Those who came before still find room.
            const own = others.length < before.leases.length;
            const earlier = own ? [] : before.waiting.slice(0, place < 0 ? undefined : place);
            const theirs = earlier.map((waiting) => {
              // But for one that was woken and is late.
              const isLate = waiting.wokenUs > 0 && before.clockUs >= waiting.wokenUs + WOKEN_US;
              const held = others.find((lease) => lease.holder === waiting.holder)?.cost ?? 0;
              return { cost: isLate ? 0 : Math.max(0, waiting.cost - held) };
            });
            expect(sum(others) + cost + sum(theirs)).toBeLessThanOrEqual(max);
            const slot = slotsOf(verdict.receipt)[0]!;
            expect(slot.fence).toBeGreaterThan(lastFence);
            lastFence = slot.fence;
            slots.push(slot);
          } else {
            seen.refused += 1;
            // Refused for want of room alone, and in the queue; what it held it holds still.
            expect(sum(others) + sum(before.waiting) + cost).toBeGreaterThan(max);
            expect(live().waiting.some((waiting) => waiting.holder === holder)).toBe(true);
            expect(live().leases).toEqual(before.leases);
            expect(verdict.waitUs).toBeGreaterThan(0);
          }
        } else if (operation.kind === 'release' || operation.kind === 'renew') {
          const slot = slots[slots.length - 1 - (operation.pick % Math.max(1, slots.length))];
          if (slot === undefined) continue;
          const held = before.leases.some(({ fence }) => fence === slot.fence);
          expect(world[operation.kind](nowUs, slot)).toBe(held);
          if (!held) seen.late += 1;
          else seen[operation.kind === 'release' ? 'released' : 'renewed'] += 1;
          expect(live().leases.some(({ fence }) => fence === slot.fence)).toBe(
            held && operation.kind === 'renew',
          );
        } else if (operation.kind === 'leave') {
          world.leave(nowUs, { holder: operation.holder });
          expect(live().waiting.some(({ holder }) => holder === operation.holder)).toBe(false);
        } else if (operation.kind === 'change') {
          max = operation.max;
          world.configure(nowUs, limitsOf(max));
          expect(live().leases).toEqual(before.leases);
        } else {
          seen.forgotten += world.forget(nowUs).length;
        }
        for (const holder of world.woken.splice(0)) {
          expect(told.has(holder)).toBe(false);
          told.add(holder);
          seen.woken += 1;
        }
        for (const holder of told)
          if (!live().waiting.some((place) => place.holder === holder)) told.delete(holder);
      }
    }),
    { numRuns },
  );
  for (const count of Object.values(seen)) expect(count).toBeGreaterThanOrEqual(numRuns / 6);
});
