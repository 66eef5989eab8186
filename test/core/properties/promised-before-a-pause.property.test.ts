import fc from 'fast-check';
import { expect, it } from 'vitest';
import { perSecond, type RateLimit } from '../../../src/core/limits/rate.ts';
import { excessOf, most, type Start } from '../../support/ledger.ts';
import { runs } from '../../support/runs.ts';
import { S, World } from '../../support/world.ts';

/*
 * What is promised after a pause must keep the bound when another one comes: of the governor or of the key, ended early or not.
 */
const numRuns = runs(400);
const MS = 1_000;
const shop = { keys: { shop: 'acme' } };

const round = fc.record({
  ofKey: fc.boolean(),
  pauseMs: fc.integer({ min: 1, max: 2_500 }),
  /** Of its length, in tenths, if it is ended early. */
  endsEarly: fc.option(fc.integer({ min: 1, max: 9 }), { freq: 4 }),
  reserveAfterMs: fc.nat(1_200),
  reserves: fc.nat(250),
  takeEveryMs: fc.constantFrom(3, 20),
  takeForMs: fc.nat(900),
});

it('keeps the bound through pauses that follow each other while promises stand', { timeout: 120_000 }, () => {
  let worst: bigint | null = null;
  const seen = { promised: 0, taken: 0 };
  fc.assert(
    fc.property(
      fc.integer({ min: 20, max: 200 }),
      fc.integer({ min: 1, max: 5 }),
      fc.array(round, { minLength: 2, maxLength: 4 }),
      (rate, burst, rounds) => {
        const world = new World({ shop: perSecond(rate, { burst, by: 'shop' }) });
        let starts: Start[] = [];
        let nowUs = 0;
        const asks = (maxWaitUs: number): boolean => {
          const { granted, waitUs } = world.acquire(nowUs, { ...shop, maxWaitUs });
          if (!granted) return false;
          starts.push({ atUs: nowUs + waitUs, cost: 1 });
          seen[waitUs > 0 ? 'promised' : 'taken'] += 1;
          return true;
        };
        for (const { ofKey, pauseMs, endsEarly, ...then } of rounds) {
          const keys = ofKey ? shop.keys : undefined;
          world.pause(nowUs, nowUs + pauseMs * MS, keys);
          nowUs += Math.ceil((pauseMs * MS * (endsEarly ?? 10)) / 10);
          // What starts more than a second after a governor's pause was ended early is recalled.
          if (endsEarly !== null && world.resume(nowUs, keys))
            starts = starts.filter(({ atUs }) => atUs <= nowUs + S);
          const untilUs = nowUs + then.takeForMs * MS;
          const reserveUs = nowUs + then.reserveAfterMs * MS;
          for (; nowUs < Math.min(untilUs, reserveUs); nowUs += then.takeEveryMs * MS) while (asks(0));
          nowUs = Math.max(nowUs, reserveUs);
          for (let n = 0; n < then.reserves && asks(60 * S); n++);
          for (; nowUs < untilUs; nowUs += then.takeEveryMs * MS) while (asks(0));
        }
        worst = most(worst, excessOf(starts, world.limits[0] as RateLimit).worst);
      },
    ),
    { numRuns },
  );
  expect(worst).toBe(0n);
  expect(seen.promised).toBeGreaterThan(10 * numRuns);
  expect(seen.taken).toBeGreaterThan(10 * numRuns);
});
