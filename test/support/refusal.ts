import { RECALL_US } from '../../src/core/buckets/moment.ts';
import type { Bucket } from '../../src/core/buckets/rate/debt.ts';
import { MAX_DEBT_UNITS } from '../../src/core/limits/rate.ts';
import type { World } from './world.ts';

/**
 * A refusal charges nothing and gives nothing back: what is owed now is what was owed before, less what drained since; under each
 * limit at its rate. At a change of the limits it may be as much less as was recalled: never less than what can start within a
 * second of it leaves.
 */
export function expectNothingCharged(before: World, after: World, atUs: number): void {
  const { changedUs } = after.at(atUs);
  for (const [name, bucket] of after.buckets as unknown as Map<string, Bucket>)
    expectUncharged(name, (before.buckets as unknown as Map<string, Bucket>).get(name), bucket, changedUs);
}

function expectUncharged(name: string, before: Bucket | undefined, after: Bucket, changedUs: number): void {
  const { debt, atUs, rate, periodUs, burst, version, granted } = before ?? { ...after, debt: 0, granted: 0 };
  const isChanged = version !== after.version;
  const untilUs = isChanged ? Math.max(atUs, Math.min(changedUs, after.atUs)) : after.atUs;
  const owed = less(BigInt(debt), untilUs - atUs, rate);
  const standing = BigInt(burst) * BigInt(periodUs) + BigInt(rate) * BigInt(RECALL_US);
  const leastOwed = isChanged && standing < owed ? standing : owed;
  // Units are those of the limit at the last write. Into a changed limit's units debt is rounded, upwards by at most two,
  // and cut where it would leave the exact range.
  const mostOver = periodUs === after.periodUs ? 0n : 2n;
  if (mostOver > 0n && after.debt === MAX_DEBT_UNITS) return;
  const [own, theirs] = [BigInt(periodUs), BigInt(after.periodUs)];
  const least = less((leastOwed * theirs) / own, after.atUs - untilUs, after.rate);
  const most = less((owed * theirs) / own + mostOver, after.atUs - untilUs, after.rate);
  const owes = BigInt(after.debt);
  if (owes < least || owes > most || after.granted !== granted) throw new Error(`a refusal changed ${name}`);
}

function less(owed: bigint, elapsedUs: number, rate: number): bigint {
  const left = owed - BigInt(Math.max(0, elapsedUs)) * BigInt(rate);
  return left > 0n ? left : 0n;
}
