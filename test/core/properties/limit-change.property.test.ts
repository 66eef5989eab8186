import fc from 'fast-check';
import { expect, it } from 'vitest';
import { RECALL_US } from '../../../src/core/buckets/constants.ts';
import { perSecond, type RateLimit } from '../../../src/core/limits/rate.ts';
import { excess, excessOf, groupedBy } from '../../support/ledger.ts';
import { FORWARD, type Operation, operations } from '../../support/operations.ts';
import { type Entry, Played } from '../../support/played.ts';
import { smallLimit } from '../../support/property-limits.ts';
import { expectNothingCharged } from '../../support/refusal.ts';
import { runs } from '../../support/runs.ts';
import { S, World } from '../../support/world.ts';

/*
 * What of the guarantee can be proven when a limit is changed while its buckets live. Debt is kept in tokens, so what was used
 * stays used. Grants that were promised ahead keep their starts if those come within a second of the change; later ones are
 * recalled, and count no longer.
 *
 *  1. The grants decided under one limit keep that limit's bound among themselves, whatever was granted before.
 *  2. All that stand together keep the bound of the largest burst and the fastest rate, but for those that were promised
 *     ahead of a change to a faster limit.
 *  3. If the limit only ever became slower, all that stand do.
 *
 * All within what a bucket can owe, which is more than a century of work: debt beyond it is cut when units change.
 */
const numRuns = runs(1_000);
const doing = { acquire: 20, cancel: 6, force: 1, forget: 1 };

const versions = fc.array(
  smallLimit.map((limit): readonly RateLimit[] => [limit]),
  { minLength: 2, maxLength: 4 },
);

const faster = (a: RateLimit, b: RateLimit): boolean =>
  BigInt(a.rate) * BigInt(b.periodUs) > BigInt(b.rate) * BigInt(a.periodUs);

/** The bound of the largest burst and the fastest rate of all. */
function excessOverLargest(starts: readonly Entry[], limits: readonly RateLimit[]): bigint {
  const fastest = limits.reduce((found, limit) => (faster(limit, found) ? limit : found));
  const burst = Math.max(...limits.map((limit) => limit.burst));
  return excess(starts, BigInt(fastest.rate), BigInt(fastest.periodUs), BigInt(burst)).worst ?? 0n;
}

/** All that was granted and not given back, also if it was recalled. */
const play = (versions: readonly (readonly RateLimit[])[], operations: readonly Operation[]) =>
  new Played(versions, { onRefusal: expectNothingCharged })
    .playInTurn(operations)
    .entries.filter(({ cost }) => cost > 0) as Entry<RateLimit>[];

it('keeps the bound of each version of a limit among the grants decided under it', () => {
  let changes = 0;
  fc.assert(
    fc.property(versions, operations(doing, FORWARD), (versions, operations) => {
      const byVersion = groupedBy(play(versions, operations), ({ limit }) => limit);
      changes += Math.max(0, byVersion.size - 1);
      for (const [limit, starts] of byVersion) expect(excessOf(starts, limit).worst! <= 0n).toBe(true);
    }),
    { numRuns },
  );
  expect(changes).toBeGreaterThan(numRuns / 2);
});

it('keeps the bound of the largest version for all but what was promised ahead of a change', () => {
  let standing = 0;
  let recalled = 0;
  fc.assert(
    fc.property(versions, operations(doing, FORWARD), (versions, operations) => {
      const starts = play(versions, operations);
      standing += starts.filter((start) => start.promised && !start.recalled).length;
      recalled += starts.filter((start) => start.recalled).length;
      const limits = versions.map(([limit]) => limit!);
      const kept = starts.filter((start) => !start.promised);
      expect(excessOverLargest(kept, limits) <= 0n).toBe(true);
    }),
    { numRuns },
  );
  expect(standing).toBeGreaterThan(numRuns / 10);
  expect(recalled).toBeGreaterThan(numRuns / 10);
});

it('keeps the bound of the first version for all that stand if the limit is only ever lowered', () => {
  fc.assert(
    fc.property(versions, operations(doing, FORWARD), (versions, operations) => {
      const falling = [...versions].sort(([a], [b]) => (faster(a!, b!) ? -1 : faster(b!, a!) ? 1 : 0));
      const starts = play(falling, operations).filter((start) => !start.recalled);
      expect(
        excessOverLargest(
          starts,
          falling.map(([limit]) => limit!),
        ) <= 0n,
      ).toBe(true);
    }),
    { numRuns },
  );
});

// https://github.com/resilience4j/resilience4j/issues/1073: there, a new limit counted from the next period on.
it('adds what was promised for the next second to the bound when a rate is raised, and no more', () => {
  const world = new World({ calls: perSecond(1, { burst: 1 }) });
  const reserve = () => world.reserve(S).startUs / S;
  // One now, ten at 2 s, 3 s, … 11 s, of which those from 3 s on are recalled; then 90 more, one each 100 ms from when the two
  // that stand are paid at the new rate.
  const promised = Array.from({ length: 11 }, reserve).slice(1);
  world.configure(S, { calls: perSecond(10, { burst: 1 }) });
  const added = Array.from({ length: 90 }, reserve);
  expect(promised).toEqual([2, 3, 4, 5, 6, 7, 8, 9, 10, 11]);
  expect([added.at(0), added.at(-1)]).toEqual([1.2, 10.1]);
  const seconds = 8.9;
  expect(added.length).toBe(1 + 10 * seconds);
  expect(promised.filter((at) => at * S <= S + RECALL_US).length).toBe(1);
});
