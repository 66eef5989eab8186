import fc from 'fast-check';
import { expect, it } from 'vitest';
import type { Receipt } from '../../../src/core/decide/verdict.ts';
import type { LimitOptions } from '../../../src/core/limits/limit.ts';
import type { RateLimit } from '../../../src/core/limits/rate.ts';
import type { WindowLimit } from '../../../src/core/limits/window.ts';
import { excessOf, mostWithin } from '../../support/ledger.ts';
import { runs } from '../../support/runs.ts';
import { S, World, ZERO_US } from '../../support/world.ts';

/*
 * Values beyond `maxKeys` share a bucket. Whichever bucket a value is charged to, its own bound holds over all of its grants; that of the
 * shared bucket holds over all that came from there; and there are never more buckets than that.
 */
const numRuns = runs(2_000);

const limit: fc.Arbitrary<LimitOptions> = fc.oneof(
  fc
    .record({
      rate: fc.integer({ min: 1, max: 20 }),
      burst: fc.integer({ min: 1, max: 6 }),
      maxKeys: fc.integer({ min: 1, max: 3 }),
    })
    .map((options) => ({ ...options, periodMs: 1_000, by: 'shop' })),
  fc
    .record({
      max: fc.integer({ min: 1, max: 6 }),
      windowMs: fc.constantFrom(500, 2_000, 5_000),
      mode: fc.constantFrom('fixed' as const, 'log' as const),
      maxKeys: fc.integer({ min: 1, max: 3 }),
    })
    .map((options) => ({ kind: 'window' as const, ...options, by: 'shop' })),
);

const operations = fc.array(
  fc.record({
    kind: fc.constantFrom('ask', 'ask', 'ask', 'ask', 'settle', 'cancel', 'forget'),
    afterUs: fc.oneof(fc.constantFrom(0, 0, S, 3 * S), fc.integer({ min: 0, max: 500_000 })),
    shop: fc.nat(5),
    cost: fc.integer({ min: 1, max: 6 }),
    pick: fc.nat(100),
    waits: fc.boolean(),
  }),
  { minLength: 1, maxLength: 80, size: 'max' },
);

interface Entry {
  readonly atUs: number;
  readonly shop: number;
  readonly bucket: string;
  readonly receipt: Receipt;
  cost: number;
}

function check(limit: RateLimit | WindowLimit, entries: readonly Entry[]): void {
  const starts = entries.filter(({ cost }) => cost > 0);
  if (limit.kind === 'rate') expect(excessOf(starts, limit).worst ?? 0n).toBeLessThanOrEqual(0n);
  else
    expect(mostWithin(starts, limit.windowUs, 'half-open')).toBeLessThanOrEqual(
      limit.mode === 'log' ? limit.max : 2 * limit.max,
    );
}

it('keeps the bound of each value and of the bucket that the others share', () => {
  const seen = { own: 0, shared: 0, both: 0, settled: 0 };
  fc.assert(
    fc.property(limit, operations, (options, operations) => {
      const world = new World({ calls: options });
      const limit = world.limits[0] as RateLimit | WindowLimit;
      const entries: Entry[] = [];
      let nowUs = 0;
      for (const { kind, afterUs, shop, cost, pick, waits } of operations) {
        nowUs += afterUs;
        const entry = entries[pick % Math.max(1, entries.length)];
        if (kind === 'ask') {
          const asked = Math.min(cost, limit.kind === 'rate' ? limit.burst : limit.max);
          const maxWaitUs = waits ? 20 * S : 0;
          const verdict = world.acquire(nowUs, { keys: { shop }, cost: asked, maxWaitUs });
          if (!verdict.granted) continue;
          const { receipt } = verdict;
          const { bucket } = receipt.charges[0]!.demand;
          entries.push({ atUs: receipt.startUs - ZERO_US, shop, bucket, receipt, cost: asked });
          seen[bucket === 'calls' ? 'shared' : 'own'] += 1;
        } else if (kind === 'forget')
          world.forget(nowUs + 1); // what is at rest now
        else if (entry === undefined || entry.cost === 0) continue;
        else if (kind === 'cancel' && entry.atUs > nowUs) {
          world.cancel(nowUs, entry.receipt);
          entry.cost = 0;
        } else if (kind === 'settle' && entry.atUs <= nowUs) {
          world.settle(nowUs, entry.receipt, 0);
          entry.cost = 0;
          seen.settled += 1;
        }
        const own = [...world.buckets.keys()].filter((name) => name.includes('calls:'));
        if (kind === 'forget') expect(own.length).toBeLessThanOrEqual(limit.maxKeys!);
      }
      for (let shop = 0; shop <= 5; shop++) {
        const theirs = entries.filter((entry) => entry.shop === shop);
        check(limit, theirs);
        if (new Set(theirs.map(({ bucket }) => bucket)).size > 1) seen.both += 1;
      }
      check(
        limit,
        entries.filter(({ bucket }) => bucket === 'calls'),
      );
    }),
    { numRuns },
  );
  for (const count of Object.values(seen)) expect(count).toBeGreaterThan(numRuns / 10);
});

// The value's own window is over, and it would be charged to the shared one now; what it had from its own is none of that one's.
it('gives nothing of one bucket back to another', () => {
  const world = new World({ calls: { kind: 'window', max: 2, windowMs: 10_000, by: 'shop', maxKeys: 1 } });
  const ask = (atS: number, shop: string) => world.acquire(atS * S, { keys: { shop } });
  expect(ask(0, 'a').granted).toBe(true);
  expect(ask(5, 'b').granted).toBe(true);
  const own = ask(7, 'a');
  expect(ask(7, 'c').granted).toBe(true);
  world.settle(12 * S, (own as { receipt: Receipt }).receipt, 0);
  expect(ask(12, 'd').granted).toBe(false);
});
