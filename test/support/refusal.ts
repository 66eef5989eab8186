import { MAX_DEBT_UNITS, RECALL_US } from '../../src/core/buckets/constants.ts';
import type { RateState } from '../../src/core/buckets/rate/index.ts';
import type { World } from './world.ts';

/**
 * A refusal charges nothing and gives nothing back: what is owed now is what was owed before, less what drained since; under each
 * limit at its rate. At a change of the limits it may be as much less as was recalled: never less than what can start within a
 * second of it leaves.
 */
export function expectNothingCharged(before: World, after: World, atUs: number): void {
  const { changedUs } = after.at(atUs);
  for (const [name, bucket] of after.buckets as unknown as Map<string, RateState>)
    expectUncharged(name, (before.buckets as unknown as Map<string, RateState>).get(name), bucket, changedUs);
}

function expectUncharged(
  name: string,
  before: RateState | undefined,
  after: RateState,
  changedUs: number,
): void {
  const { debt, atUs, terms, granted } = before ?? { ...after, debt: 0, granted: 0 };
  const { rate, periodUs, burst, version } = terms;
  const isChanged = version !== after.terms.version;
  const untilUs = isChanged ? Math.max(atUs, Math.min(changedUs, after.atUs)) : after.atUs;
  const owed = less(BigInt(debt), untilUs - atUs, rate);
  const standing = BigInt(burst) * BigInt(periodUs) + BigInt(rate) * BigInt(RECALL_US);
  const leastOwed = isChanged && standing < owed ? standing : owed;
  // Units are those of the limit at the last write. Into a changed limit's units debt is rounded, upwards by at most two,
  // and cut where it would leave the exact range.
  const mostOver = periodUs === after.terms.periodUs ? 0n : 2n;
  if (mostOver > 0n && after.debt === MAX_DEBT_UNITS) return;
  const [own, theirs] = [BigInt(periodUs), BigInt(after.terms.periodUs)];
  const least = less((leastOwed * theirs) / own, after.atUs - untilUs, after.terms.rate);
  const most = less((owed * theirs) / own + mostOver, after.atUs - untilUs, after.terms.rate);
  const owes = BigInt(after.debt);
  if (owes < least || owes > most || after.granted !== granted) throw new Error(`a refusal changed ${name}`);
}

function less(owed: bigint, elapsedUs: number, rate: number): bigint {
  const left = owed - BigInt(Math.max(0, elapsedUs)) * BigInt(rate);
  return left > 0n ? left : 0n;
}
