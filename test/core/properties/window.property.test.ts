import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { WindowLimit } from '../../../src/core/limits/window.ts';
import { mostWithin, sumsBy } from '../../support/ledger.ts';
import { ZERO_US } from '../../support/world.ts';
import {
  type Entry,
  versions,
  WindowHistory,
  windowOperations,
  windowOptions,
} from '../support/window-history.ts';

/*
 * What windows let through. Beside a rate that makes reservations, with cancelled and corrected grants and a clock that steps
 * back by up to a second; what comes to more than it was estimated is over the bound by so much. Each refusal is also asked
 * whether the time that it tells is exact: then the request passes, and a microsecond sooner it does not.
 *
 * For a longer run by hand: FLYBALL_PROPERTY_RUNS=100000 npx vitest run --project unit window
 */
const numRuns = Number(process.env.FLYBALL_PROPERTY_RUNS ?? 3_000);
const timeout = 3_600_000;

/** How full the intervals are that each mode bounds, as shares of the maximum; 1 meets the bound. */
function fullest(entries: readonly Entry[], { mode, max, windowUs, cells, aligned }: WindowLimit) {
  const starts = entries.filter(({ cost }) => cost > 0);
  const whole = mostWithin(starts, windowUs, 'half-open') / max;
  if (mode === 'log') return { log: whole };
  const window = aligned
    ? ({ atUs }: Entry) => Math.floor((ZERO_US + atUs) / windowUs)
    : ({ startUs }: Entry) => startUs;
  if (mode === 'fixed')
    return { fixed: Math.max(0, ...sumsBy(starts, window)) / max, fixedAround: whole / 2 };
  return {
    sliding: mostWithin(starts, windowUs - windowUs / cells, 'closed') / max,
    slidingAround: (whole * max) / (2 * max - 1),
  };
}

type Shares = Partial<Record<'log' | 'fixed' | 'fixedAround' | 'sliding' | 'slidingAround', number>>;

function check(found: Shares, worst: Record<string, number>): void {
  for (const [bound, share] of Object.entries(found)) {
    if (share > 1) throw new Error(`${bound}: ${share} times what may pass`);
    worst[bound] = Math.max(worst[bound] ?? 0, share);
  }
}

describe('a window', () => {
  it('lets no more through than its mode promises, and as much', { timeout }, () => {
    const worst: Record<string, number> = {};
    const seen = { grants: 0, ahead: 0, refusals: 0, givenBack: 0 };
    fc.assert(
      fc.property(versions(windowOptions, 1), windowOperations(false), ([limits], operations) => {
        const history = new WindowHistory([limits!]);
        for (const operation of operations) history.play(operation);
        check(fullest(history.entries, history.limit), worst);
        for (const name of Object.keys(seen) as (keyof typeof seen)[]) seen[name] += history.seen[name];
      }),
      { numRuns },
    );
    expect(worst).toEqual({ log: 1, fixed: 1, fixedAround: 1, sliding: 1, slidingAround: 1 });
    for (const count of Object.values(seen)) expect(count).toBeGreaterThanOrEqual(numRuns);
  });

  it('that is changed keeps the bound of each of its versions among the grants decided under it', {
    timeout,
  }, () => {
    const worst: Record<string, number> = {};
    let changes = 0;
    fc.assert(
      fc.property(versions(windowOptions, 3), windowOperations(true), (versions, operations) => {
        const history = new WindowHistory(versions);
        for (const operation of operations) history.play(operation);
        for (let version = 1; version <= history.seen.changes + 1; version++) {
          const entries = history.entries.filter((entry) => entry.version === version);
          if (entries.length > 0) check(fullest(entries, entries[0]!.limit), worst);
        }
        changes += history.seen.changes;
      }),
      { numRuns },
    );
    expect(worst).toEqual({ log: 1, fixed: 1, fixedAround: 1, sliding: 1, slidingAround: 1 });
    expect(changes).toBeGreaterThan(numRuns);
  });

  // Raising the length forgets what had left the shorter window; any other change forgets nothing.
  it('that only gets another maximum or mode, or a shorter length, keeps what it let through', {
    timeout,
  }, () => {
    let across = 0;
    const shorter = versions(windowOptions, 3).map((several) => {
      const lengthOf = (limits: (typeof several)[0]) => (limits[0] as WindowLimit).windowUs;
      return [...several].sort((a, b) => lengthOf(b) - lengthOf(a));
    });
    fc.assert(
      fc.property(shorter, windowOperations(false), (versions, operations) => {
        const history = new WindowHistory(versions);
        const share = Math.ceil(operations.length / versions.length);
        for (const [index, operation] of operations.entries()) {
          if (index > 0 && index % share === 0) {
            history.play({ kind: 'change', to: index / share, move: { by: 'stands', amount: 0 } });
          }
          history.play(operation);
        }
        const kept = history.entries.filter(({ cost, promised }) => cost > 0 && !promised);
        // Twice the largest maximum is what any mode lets through in the shortest window.
        const limits = versions.map((limits) => limits[0] as WindowLimit);
        const max = Math.max(...limits.map((limit) => limit.max));
        const { windowUs } = limits.at(-1)!;
        expect(mostWithin(kept, windowUs, 'half-open')).toBeLessThanOrEqual(2 * max);
        if (limits.every(({ mode }) => mode === 'log')) {
          across += 1;
          expect(mostWithin(kept, windowUs, 'half-open')).toBeLessThanOrEqual(max);
        }
      }),
      { numRuns },
    );
    expect(across).toBeGreaterThan(0);
  });
});
