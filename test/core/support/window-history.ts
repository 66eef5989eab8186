import fc from 'fast-check';
import { MAX_CLOCK_STEP_US, RECALL_US } from '../../../src/core/buckets/constants.ts';
import type { WindowState } from '../../../src/core/buckets/window/index.ts';
import type { Receipt } from '../../../src/core/decide/verdict.ts';
import { type Limits, parseLimits } from '../../../src/core/limits/limit.ts';
import type { WindowLimit, WindowLimitOptions } from '../../../src/core/limits/window.ts';
import { World, ZERO_US } from '../../support/world.ts';

/** Random histories of a window limit, alone or beside a rate whose reservations start in the future. */

type By = 'stands' | 'ticks' | 'eighths' | 'retry' | 'cells' | 'idles' | 'back';

interface Move {
  readonly by: By;
  readonly amount: number;
}

export type WindowOperation = { readonly move: Move } & (
  | { readonly kind: 'acquire'; readonly cost: number; readonly waits: boolean }
  | { readonly kind: 'cancel' | 'settle'; readonly pick: number; readonly share: number }
  | { readonly kind: 'change'; readonly to: number }
  | { readonly kind: 'forget' }
);

/** A grant as it is booked: at the window's own time, which stands still while the clock is behind it. */
export interface Entry {
  readonly atUs: number;
  /** What it was decided under. */
  readonly limit: WindowLimit;
  readonly version: number;
  /** When the fixed window that counts it began. */
  readonly startUs: number;
  /** The lesser of what was asked for and what it came to. */
  cost: number;
  /** It was still to start when the limits were changed. */
  promised: boolean;
}

const mode = fc.oneof(
  fc.constantFrom<Partial<WindowLimitOptions>>(
    { mode: 'fixed' },
    { mode: 'fixed', aligned: true },
    { mode: 'log' },
  ),
  fc.integer({ min: 2, max: 10 }).map((cells): Partial<WindowLimitOptions> => ({ mode: 'sliding', cells })),
);

export const windowOptions = fc
  .record({ max: fc.integer({ min: 1, max: 12 }), length: fc.constantFrom(1, 3, 10, 100), mode })
  .map(({ max, length, mode }): WindowLimitOptions => {
    const cells = mode.cells ?? 1;
    return { kind: 'window', max, windowMs: length * cells, ...mode };
  });

const rateBeside = fc.option(
  fc.record({ rate: fc.integer({ min: 1, max: 2_000 }), burst: fc.integer({ min: 1, max: 12 }) }),
);

/** What the limits are, one after the other. */
export const versions = (windows: fc.Arbitrary<WindowLimitOptions>, most: number): fc.Arbitrary<Limits[]> =>
  fc.tuple(fc.array(windows, { minLength: most, maxLength: most }), rateBeside).map(([several, beside]) =>
    several.map((window) =>
      parseLimits({
        window,
        ...(beside && { beside: { rate: beside.rate, periodMs: 1_000, burst: beside.burst } }),
      }),
    ),
  );

const move: fc.Arbitrary<Move> = fc.record({
  by: fc.constantFrom<By>(
    'stands',
    'stands',
    'ticks',
    'eighths',
    'eighths',
    'retry',
    'retry',
    'cells',
    'idles',
    'back',
  ),
  amount: fc.nat(1_000),
});

export function windowOperations(mayChange: boolean): fc.Arbitrary<WindowOperation[]> {
  const picked = { move, pick: fc.nat(1_000), share: fc.nat(15) };
  return fc.array(
    fc.oneof(
      {
        weight: 20,
        arbitrary: fc.record({
          kind: fc.constant('acquire' as const),
          move,
          cost: fc.nat(12),
          waits: fc.boolean(),
        }),
      },
      { weight: 3, arbitrary: fc.record({ kind: fc.constant('cancel' as const), ...picked }) },
      { weight: 3, arbitrary: fc.record({ kind: fc.constant('settle' as const), ...picked }) },
      {
        weight: mayChange ? 2 : 0,
        arbitrary: fc.record({ kind: fc.constant('change' as const), move, to: fc.nat(9) }),
      },
      { weight: 1, arbitrary: fc.record({ kind: fc.constant('forget' as const), move }) },
    ),
    { minLength: 1, maxLength: 100, size: 'max' },
  );
}

export class WindowHistory {
  readonly entries: Entry[] = [];
  readonly seen = { grants: 0, ahead: 0, refusals: 0, givenBack: 0, changes: 0 };
  #nowUs = 0;
  #latestUs = 0;
  #lastWaitUs = 0;
  #open: { receipt: Receipt; entry: Entry }[] = [];
  readonly #world: World;

  constructor(private readonly versions: readonly Limits[]) {
    this.#world = new World(versions[0]!);
  }

  play(operation: WindowOperation): void {
    this.#moveClock(operation.move);
    if (operation.kind === 'acquire') this.#acquire(operation.cost, operation.waits);
    else if (operation.kind === 'change') this.#change(operation.to);
    else if (operation.kind === 'forget') this.#world.forget(this.#nowUs);
    else this.#giveBack(operation.kind, operation.pick, operation.share);
  }

  #acquire(draw: number, waits: boolean): void {
    const { limit } = this;
    const most = Math.min(...this.#world.limits.map((one) => (one.kind === 'rate' ? one.burst : limit.max)));
    const cost = draw === 12 ? most : Math.max(1, Math.min(draw, most));
    const request = { cost, maxWaitUs: waits ? Number.MAX_SAFE_INTEGER : 0 };
    const verdict = this.#world.acquire(this.#nowUs, request);
    this.#lastWaitUs = verdict.waitUs;
    if (!verdict.granted) {
      this.seen.refusals += 1;
      this.#checkWait(verdict.waitUs, cost);
      return;
    }
    this.seen.grants += 1;
    if (verdict.waitUs > 0) this.seen.ahead += 1;
    const state = this.#world.stored({ kind: 'window', bucket: 'window' }) as WindowState;
    const atUs = Math.max(verdict.receipt.startUs, state.atUs) - ZERO_US;
    const { version } = this.#world;
    const entry: Entry = { atUs, limit, version, startUs: state.start, cost, promised: false };
    this.entries.push(entry);
    this.#open.push({ receipt: verdict.receipt, entry });
  }

  /** A refusal tells the first microsecond at which the request passes. */
  #checkWait(waitUs: number, cost: number): void {
    const atUs = this.#nowUs + waitUs;
    if (this.#world.copy().allows(atUs - 1, { cost })) throw new Error('granted sooner than a refusal told');
    if (!this.#world.copy().allows(atUs, { cost }))
      throw new Error('refused when a refusal told it would pass');
  }

  #giveBack(kind: 'cancel' | 'settle', pick: number, share: number): void {
    if (this.#open.length === 0) return;
    const { receipt, entry } = this.#open.splice(pick % this.#open.length, 1)[0]!;
    if (kind === 'cancel') {
      if (receipt.startUs <= ZERO_US + this.#nowUs || !receipt.ahead) return;
      this.#world.cancel(this.#nowUs, receipt);
      entry.cost = 0; // it will not start, whether its tokens come back or not
    } else {
      const actual = Math.floor((entry.cost * share) / 10); // up to half more than the estimate
      this.#world.settle(this.#nowUs, receipt, actual);
      entry.cost = Math.min(entry.cost, actual);
    }
    this.seen.givenBack += 1;
  }

  #change(to: number): void {
    this.#world.configure(this.#nowUs, this.versions[to % this.versions.length]!);
    this.seen.changes += 1;
    const nowUs = this.#nowUs;
    for (const entry of this.entries) {
      if (entry.atUs <= nowUs) continue;
      entry.promised = true;
      if (entry.atUs <= nowUs + RECALL_US) continue;
      entry.cost = 0;
    }
  }

  get limit(): WindowLimit {
    return this.#world.limits.find((limit) => limit.kind === 'window')!;
  }

  #moveClock({ by, amount }: Move): void {
    const { windowUs, cells } = this.limit;
    const cellUs = windowUs / cells;
    this.#nowUs += {
      stands: 0,
      ticks: amount,
      eighths: Math.floor((windowUs * (amount % 20)) / 8),
      // To the microsecond at which the last refused request has room, one before and one after.
      retry: Math.max(0, this.#lastWaitUs + (amount % 3) - 1),
      // To the beginning of a cell, or a microsecond off it.
      cells: cellUs * (amount % 4) - ((ZERO_US + this.#nowUs) % cellUs) + (amount % 3),
      idles: windowUs * amount,
      back: -amount * 1_000,
    }[by];
    this.#latestUs = Math.max(this.#latestUs, this.#nowUs);
    this.#nowUs = Math.max(this.#nowUs, this.#latestUs - MAX_CLOCK_STEP_US, 0);
  }
}
