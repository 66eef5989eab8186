import type { Terms } from '../../../src/core/decide/ask.ts';
import type { Cost, Keys } from '../../../src/core/decide/demands.ts';
import type { LimitsOptions } from '../../../src/core/limits/limit.ts';
import type { WindowLimitOptions } from '../../../src/core/limits/window.ts';
import type { Batch, History, Step } from '../../support/histories.ts';

const NOW: Terms = {
  maxWaitUs: 0,
  maxTurnUs: 0,
  turns: 'all',
  returning: false,
  patienceUs: 0,
  priority: 1,
  queue: false,
};
const TURN_TAKEN: Terms = { ...NOW, maxTurnUs: 60_000_000 };

const request = (cost: Cost, keys: Keys = {}, holder = 'p') => ({ cost, keys, holder });
const take = (cost: Cost, keys?: Keys, terms = NOW, holder?: string): Step => ({
  do: 'acquire',
  request: request(cost, keys, holder),
  terms,
});
const force = (cost: Cost, keys?: Keys): Step => ({ do: 'force', request: request(cost, keys) });
const peek = (cost: Cost, keys?: Keys): Step => ({ do: 'peek', request: request(cost, keys), priority: 1 });
const cut = (keys?: Keys): Step => ({
  do: 'report',
  request: request(1, keys),
  calls: { startedUs: 0, calls: 20, throttled: 5, failed: 0, latencySumUs: 0 },
});
const release = (stale: boolean): Step => ({ do: 'release', back: 0, stale });

const call = (afterUs: number, steps: readonly Step[], changed: Partial<Batch> = {}): Batch => ({
  afterUs,
  limits: null,
  pauseUs: null,
  instance: 'one',
  steps,
  ...changed,
});
const history = (limits: LimitsOptions, ...batches: readonly Batch[]): History => ({
  limits,
  coldStart: 'full',
  batches,
});

const second = { rate: 1, periodMs: 1_000, burst: 1 };
const adaptive = { ...second, adaptive: { min: 1, max: 2 } };
const slots = { kind: 'concurrency', max: 1, leaseMs: 2_000 } as const;
const window = (mode: 'fixed' | 'log', windowMs: number): WindowLimitOptions => ({
  kind: 'window',
  max: 3,
  windowMs,
  mode,
});

/** Histories on which the two once differed, as small as they can be. */
export const kept: Record<string, History> = {
  'two lines of the same length, of which the one for all is named': history(
    { shop: { ...second, by: 'shop' }, all: second },
    call(0, [
      ...[{ shop: 1, all: 0 }, { shop: 1, all: 0 }, { shop: 0, all: 1 }, { shop: 0, all: 1 }, 1].map((cost) =>
        take(cost as Cost, {}, { ...TURN_TAKEN, maxTurnUs: Number.MAX_SAFE_INTEGER }),
      ),
    ]),
  ),
  'values with a bucket of their own, of a limit that becomes one of another kind': history(
    { a: { ...window('fixed', 60_000), by: 'user', maxKeys: 1 } },
    call(1, [take(1)]),
    call(1, [take(1)], { limits: { a: { ...second, by: 'user', maxKeys: 1 } } }),
  ),
  'a refusal in the call that leased the first slot': history(
    { a: slots },
    call(1, [take(1), take(1, {}, NOW, 'q')]),
  ),
  'a limit that is adaptive, then not, then again': history(
    { a: adaptive },
    call(1, [take(1)]),
    call(2_000_000, [take(1)], { limits: { a: second } }),
    call(2_000_000, [take(1)], { limits: { a: adaptive } }),
  ),
  'adaptive slots that are looked at twice in one call': history(
    { a: { ...slots, adaptive: { min: 1, max: 1 } } },
    call(1, [take(1)]),
    call(250_000, [release(true), release(false)]),
  ),
  'a share that refuses in the call that charged it': history(
    { a: { ...second, by: 'shop', fair: true } },
    call(1, [force(3, { shop: 'x' }), take(1, { shop: 'x' }, TURN_TAKEN), take(1, { shop: 'x' })]),
    call(1, [peek(1, { shop: 'x' })]),
  ),
  'a share that gives a slot and refuses in one call after its clock was put right': history(
    { a: { ...second, burst: 4, by: 'shop', fair: true } },
    call(1, [force(4, { shop: 'x' }), force(4, { shop: 'x' }), force(4, { shop: 'x' })]),
    call(-20_000_000, [
      force(4, { shop: 'y' }),
      force(4, { shop: 'y' }),
      take(4, { shop: 'x' }, TURN_TAKEN),
      take(1, { shop: 'x' }),
    ]),
    call(1, [peek(1, { shop: 'x' })]),
  ),
  'a refusal that nothing remembers, before a grant in one call': history(
    { a: { ...second, penalty: { afterMs: 1_000, forMs: 2_000 } } },
    call(1, [peek(1)], { pauseUs: 1_000 }),
    call(1, [take(1), force(1)]),
  ),
  'a report for a value whose state is at rest': history(
    { a: { ...adaptive, by: 'shop' } },
    call(1, [{ do: 'pause', keys: { shop: 'x' }, forUs: 1_000 }]),
    call(2_002_000, [cut({ shop: 'x' }), take(1, { shop: 'z' }), take(1, { shop: 'x' })], {
      limits: { a: { ...adaptive, by: 'shop', maxKeys: 1 } },
    }),
  ),
  'a report for a limit in its penalty': history(
    {
      a: {
        rate: 10,
        periodMs: 1_000,
        burst: 2,
        penalty: { afterMs: 1_000, share: 0.3, forMs: 20_000 },
        adaptive: { min: 1, max: 20 },
      },
    },
    call(1, [take(2), take(2)]),
    ...Array.from({ length: 6 }, () => call(200_000, [take(2), take(2)])),
    call(200_000, [cut()]),
    call(300_000, [take(2)]),
  ),
  'a lease that had lapsed, taken in again after a loss': {
    ...history(
      { a: { ...slots, leaseMs: 500 } },
      call(-400_000, [force(1)]),
      call(600_000, [{ do: 'renew', back: 0, stale: false }]),
      call(1, [take(1, {}, NOW, 'q')]),
    ),
    coldStart: 'empty',
  },
  'a share whose pause ends, or is ended, before the time at which a clock that steps back left it': history(
    { a: { rate: 10, periodMs: 1_000, burst: 4, by: 'shop', fair: true } },
    call(1, [take(1, { shop: 'x' }), take(1, { shop: 'y' })]),
    call(-441_000, [
      { do: 'pause', keys: { shop: 'x' }, forUs: 300_000 },
      { do: 'pause', keys: { shop: 'y' }, forUs: 300_000 },
      take(1, { shop: 'x' }),
      { do: 'resume', keys: { shop: 'x' } },
      take(1, { shop: 'x' }),
    ]),
    call(441_000, [take(1, { shop: 'x' }), take(1, { shop: 'y' })]),
  ),
  'a charge of an active value in the next second, and a clock that steps back into the one before': history(
    { a: { rate: 10, periodMs: 1_000, burst: 4, by: 'shop', fair: true } },
    call(500_000, [take(3, { shop: 'x' }), take(1, { shop: 'x' }), take(1, { shop: 'y' })]),
    call(600_000, [take(1, { shop: 'x' })]),
    call(-700_000, [peek(1, { shop: 'x' }), take(1, { shop: 'y' })]),
  ),
  'a charge to a value in the same call as its pause': history(
    { a: { rate: 10, periodMs: 1_000, burst: 4, by: 'shop', fair: true } },
    call(1, [take(1, { shop: 'x' })]),
    call(5_000_000, [{ do: 'pause', keys: { shop: 'x' }, forUs: 300_000 }, force(1, { shop: 'x' })]),
  ),
  'a window that was a log': history(
    { a: window('log', 1_000) },
    call(1, [take(1)]),
    call(2_000_000, [take(1)]),
    call(1, [take(1)], { limits: { a: window('fixed', 60_000) } }),
    call(10_000_000, [take(3)]),
  ),
  'a rate that falls while all is paused': history(
    { a: { ...adaptive, adaptive: { min: 0.1, max: 2 } } },
    call(1, [take(1, {}, { ...NOW, maxWaitUs: 90_000_000 }), cut(), take(1)], { pauseUs: 30_000_000 }),
  ),
  'a log that is looked at again and again after a clock was put right': history(
    { a: window('log', 60_000) },
    call(50_000_000, [take(2)]),
    call(-20_000_000, [peek(1)]),
    call(1, [peek(1)]),
    call(1, [take(2)]),
  ),
};
