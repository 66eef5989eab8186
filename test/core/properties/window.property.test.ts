import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Limits } from '../../../src/core/limits/limit.ts';
import type { WindowLimit } from '../../../src/core/limits/window.ts';
import { groupedBy, mostWithin, sumsBy } from '../../support/ledger.ts';
import { operations, WINDOWED } from '../../support/operations.ts';
import { type Entry, Played } from '../../support/played.ts';
import { windowOptions, windowVersions } from '../../support/property-limits.ts';
import { runs } from '../../support/runs.ts';
import { type Request, type World, ZERO_US } from '../../support/world.ts';

/*
 * What windows let through. Beside a rate that makes reservations, with cancelled and corrected grants and a clock that steps
 * back by up to a second; what comes to more than it was estimated is over the bound by so much. Each refusal is also asked
 * whether the time that it tells is exact: then the request passes, and a microsecond sooner it does not.
 */
const numRuns = runs(1_000);
const timeout = 3_600_000;
const doing = { acquire: 20, cancel: 3, settle: 3, forget: 1 };
const plain = { turns: 'none', returning: false } as const;

/** A refusal tells the first microsecond at which the request passes. */
function expectExactWait(_: World, world: World, nowUs: number, { cost }: Request, waitUs: number): void {
  const atUs = nowUs + waitUs;
  const asked = cost === undefined ? {} : { cost };
  if (world.copy().allows(atUs - 1, asked)) throw new Error('granted sooner than a refusal told');
  if (!world.copy().allows(atUs, asked)) throw new Error('refused when a refusal told it would pass');
}

const playing = (versions: readonly Limits[]) => new Played(versions, { onRefusal: expectExactWait });
const windowsOf = (played: Played) =>
  played.started().filter(({ limit }) => limit.kind === 'window') as Entry<WindowLimit>[];

/** How full the intervals are that each mode bounds, as shares of the maximum; 1 meets the bound. */
function fullest(starts: readonly Entry[], { mode, max, windowUs, cells, aligned }: WindowLimit) {
  const whole = mostWithin(starts, windowUs, 'half-open') / max;
  if (mode === 'log') return { log: whole };
  const window = aligned
    ? ({ atUs }: Entry) => Math.floor((ZERO_US + atUs) / windowUs)
    : ({ windowUs }: Entry) => windowUs;
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
    const seen = { grants: 0, ahead: 0, refusals: 0, refunds: 0, settled: 0 };
    fc.assert(
      fc.property(
        windowVersions(windowOptions, 1),
        operations(doing, WINDOWED, plain),
        ([limits], operations) => {
          const played = playing([limits!]).play(operations);
          check(fullest(windowsOf(played), limits![0] as WindowLimit), worst);
          for (const name of Object.keys(seen) as (keyof typeof seen)[]) seen[name] += played.seen[name];
        },
      ),
      { numRuns },
    );
    expect(worst).toEqual({ log: 1, fixed: 1, fixedAround: 1, sliding: 1, slidingAround: 1 });
    for (const count of Object.values(seen)) expect(count).toBeGreaterThanOrEqual(numRuns / 2);
  });

  it('that is changed keeps the bound of each of its versions among the grants decided under it', {
    timeout,
  }, () => {
    const worst: Record<string, number> = {};
    let changes = 0;
    fc.assert(
      fc.property(
        windowVersions(windowOptions, 3),
        operations({ ...doing, change: 2 }, WINDOWED, plain),
        (versions, operations) => {
          const played = playing(versions).play(operations);
          for (const entries of groupedBy(windowsOf(played), ({ version }) => version).values())
            check(fullest(entries, entries[0]!.limit), worst);
          changes += played.changes.length;
        },
      ),
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
    const shorter = windowVersions(windowOptions, 3).map((several) => {
      const lengthOf = (limits: (typeof several)[0]) => (limits[0] as WindowLimit).windowUs;
      return [...several].sort((a, b) => lengthOf(b) - lengthOf(a));
    });
    fc.assert(
      fc.property(shorter, operations(doing, WINDOWED, plain), (versions, operations) => {
        const kept = windowsOf(playing(versions).playInTurn(operations)).filter(({ promised }) => !promised);
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
