import fc from 'fast-check';
import { expect, it } from 'vitest';
import type { RateLimit } from '../../../src/core/limits/rate.ts';
import { smallLimit } from '../../support/property-limits.ts';
import { runs } from '../../support/runs.ts';
import { World } from '../../support/world.ts';

/*
 * The other half of the guarantee: nothing is refused, and nobody waits, that need not be. A second oracle decides from a log of
 * what was granted, by the definition of the bound alone; it knows no debt. Both must say the same, always.
 */
const numRuns = runs(700);

/** Microseconds are exact up to the year 2255. */
const LAST_US = 5e15;

class Log {
  readonly #grants: { startUs: bigint; cost: bigint }[] = [];

  constructor(private readonly limit: RateLimit) {}

  /** The first microsecond, from `nowUs` on and in order, at which every interval that ends there keeps the bound. */
  earliestUs(nowUs: number, cost: number): bigint {
    const [rate, periodUs, burst] = [this.limit.rate, this.limit.periodUs, this.limit.burst].map(BigInt) as [
      bigint,
      bigint,
      bigint,
    ];
    let earliest = BigInt(nowUs);
    let since = BigInt(cost);
    for (const grant of [...this.#grants].reverse()) {
      since += grant.cost;
      const missing = (since - burst) * periodUs;
      const fits = grant.startUs + (missing <= 0n ? 0n : (missing + rate - 1n) / rate);
      if (fits > earliest) earliest = fits;
    }
    return earliest;
  }

  add(startUs: bigint, cost: number): void {
    this.#grants.push({ startUs, cost: BigInt(cost) });
  }
}

const request = fc.record({
  cost: fc.nat(12),
  /** How long after the last one, in eighths of a token's time; or exactly when the last one has room, or just before. */
  after: fc.oneof(
    { weight: 3, arbitrary: fc.integer({ min: 0, max: 40 }) },
    { weight: 2, arbitrary: fc.constantFrom('room' as const, 'just before' as const) },
    { weight: 1, arbitrary: fc.constant(10_000) },
  ),
  waits: fc.boolean(),
});

it('grants at the first microsecond at which the log of past grants leaves room, and at no other', () => {
  const seen = { granted: 0, refused: 0, reserved: 0 };
  fc.assert(
    fc.property(
      smallLimit,
      fc.array(request, { minLength: 1, maxLength: 80, size: 'max' }),
      (limit, requests) => {
        const world = new World([limit]);
        const log = new Log(limit);
        const tokenUs = Math.ceil(limit.periodUs / limit.rate);
        let nowUs = 0;
        let roomUs = 0;
        for (const { cost: drawn, after, waits } of requests) {
          if (after === 'room') nowUs += roomUs;
          else if (after === 'just before') nowUs += Math.max(0, roomUs - 1);
          else nowUs += Math.floor((tokenUs * after) / 8);
          if (nowUs > LAST_US) break;
          const cost = drawn === 12 ? limit.burst : Math.max(1, Math.min(limit.burst, drawn));
          const expected = log.earliestUs(nowUs, cost);
          const verdict = world.acquire(nowUs, { cost, maxWaitUs: waits ? Number.MAX_SAFE_INTEGER : 0 });
          roomUs = verdict.waitUs;
          // Refused or reserved, the time it gives is that of the log.
          expect(BigInt(nowUs) + BigInt(verdict.waitUs)).toBe(expected);
          expect(verdict.granted).toBe(waits || expected === BigInt(nowUs));
          if (!verdict.granted) seen.refused += 1;
          else if (verdict.waitUs > 0) seen.reserved += 1;
          else seen.granted += 1;
          if (verdict.granted) log.add(expected, cost);
        }
      },
    ),
    { numRuns },
  );
  for (const count of Object.values(seen)) expect(count).toBeGreaterThan(numRuns);
});
