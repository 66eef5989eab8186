import fc from 'fast-check';
import { expect, it } from 'vitest';
import { RECALL_US } from '../../../src/core/buckets/constants.ts';
import type { RateLimit } from '../../../src/core/limits/rate.ts';
import { excess, excessOf, groupedBy, most } from '../../support/ledger.ts';
import { operations, withinSeconds } from '../../support/operations.ts';
import { type Entry, type Pause, Played } from '../../support/played.ts';
import { mixtures } from '../../support/property-limits.ts';
import { runs } from '../../support/runs.ts';

/*
 * Pauses of a governor and of its keys, ended early or not, and limits that are changed meanwhile. Grants that were promised to start
 * more than a second after a change, or after the end of a governor's pause before its time, are recalled and do not start.
 */
const numRuns = runs(800);
const timeout = 3_600_000;
const seconds = withinSeconds(0);
const doing = { acquire: 20, cancel: 2, settle: 2, pause: 3, resume: 2, forget: 1 };

function check(entries: readonly Entry<RateLimit>[]): bigint {
  const found = excessOf(entries, entries[0]!.limit).worst!;
  if (found > 0n) throw new Error(`${entries[0]!.bucket} is ${found} units over its bound`);
  return found;
}

/** What was decided since it began, and does not still stand from before a resume, starts after its end. */
function checkQuiet(mixture: Played, { fromUs, untilUs, key, entries }: Pause): void {
  for (const [index, { key: own, cost, recalled, atUs }] of mixture.entries.entries()) {
    if (index < entries || cost === 0 || recalled || (key !== undefined && own !== key)) continue;
    const stands = mixture.changes.some(
      (change) => change.entries > index && atUs <= change.atUs + RECALL_US,
    );
    if (atUs < untilUs && !stands)
      throw new Error(`started at ${atUs}, in a pause from ${fromUs} to ${untilUs}`);
  }
}

it('starts nothing in a pause, and keeps the bound of each rate through all of them', { timeout }, () => {
  let worst: bigint | null = null;
  const seen = { grants: 0, pauses: 0, ahead: 0 };
  fc.assert(
    fc.property(mixtures([{}, { fair: true }], true), operations(doing, seconds), (limits, operations) => {
      const mixture = new Played([limits]).play(operations);
      for (const entries of mixture.byRate()) worst = most(worst, check(entries));
      for (const pause of mixture.pauses) checkQuiet(mixture, pause);
      seen.pauses += mixture.pauses.length;
      for (const name of ['grants', 'ahead'] as const) seen[name] += mixture.seen[name];
    }),
    { numRuns },
  );
  expect(worst).toBe(0n);
  for (const count of Object.values(seen)) expect(count).toBeGreaterThan(numRuns / 20);
});

// What is given back after a pause counts as of before it, and is there at once.
const alone = { ...doing, cancel: 0, settle: 0 };

it('resumes from empty: after a pause no burst, to the unit', { timeout }, () => {
  let worst: bigint | null = null;
  let after = 0;
  fc.assert(
    fc.property(mixtures([{}, { fair: true }], true), operations(alone, seconds), (limits, operations) => {
      const mixture = new Played([limits]).play(operations);
      for (const { fromUs, untilUs, key, entries: before } of mixture.pauses) {
        const since = new Set(mixture.entries.slice(before));
        if (untilUs <= fromUs) continue;
        for (const entries of mixture.byRate()) {
          const { limit, bucket } = entries[0]!;
          // A pause of one key closes the buckets that the key has of its own.
          if (key !== undefined && bucket !== `${limit.name}:${key}`) continue;
          const starts = entries.filter((entry) => entry.atUs >= untilUs && since.has(entry));
          after += starts.length;
          const end = { atUs: untilUs, cost: 0 };
          const { rate, periodUs } = limit;
          // As if a grant of the whole burst had started at its end.
          const found = excess(
            [{ ...end, cost: limit.burst }, ...starts],
            BigInt(rate),
            BigInt(periodUs),
            BigInt(limit.burst),
          ).worst!;
          worst = most(worst, starts.length > 0 ? found : null);
          if (found > 0n)
            throw new Error(`${bucket} is ${found} units over what a pause until ${untilUs} leaves`);
        }
      }
    }),
    { numRuns },
  );
  expect(worst).toBe(0n);
  expect(after).toBeGreaterThan(numRuns);
});

it('keeps the bound of each version of a limit, and of the largest for all that nothing promised', {
  timeout,
}, () => {
  const seen = { changes: 0, recalled: 0, promised: 0 };
  const versions = fc.array(mixtures([{}], true), { minLength: 2, maxLength: 3 });
  fc.assert(
    fc.property(
      versions,
      operations({ ...doing, pause: 1, resume: 1, change: 2 }, seconds),
      (versions, operations) => {
        const mixture = new Played(versions).play(operations);
        const calls = mixture.starts('calls') as Entry<RateLimit>[];
        for (const entries of groupedBy(calls, ({ version }) => version).values()) check(entries);
        const limits = versions.map((all) => all.find(({ name }) => name === 'calls') as RateLimit);
        const fastest = limits.reduce((a, b) =>
          BigInt(b.rate) * BigInt(a.periodUs) > BigInt(a.rate) * BigInt(b.periodUs) ? b : a,
        );
        const burst = Math.max(...limits.map((limit) => limit.burst));
        const kept = calls.filter(({ promised }) => !promised);
        const found = excess(kept, BigInt(fastest.rate), BigInt(fastest.periodUs), BigInt(burst)).worst;
        expect(found === null || found <= 0n).toBe(true);
        seen.changes += mixture.changes.length;
        seen.recalled += mixture.seen.recalled;
        seen.promised += calls.length - kept.length;
      },
    ),
    { numRuns },
  );
  for (const count of Object.values(seen)) expect(count).toBeGreaterThan(numRuns / 250);
});
