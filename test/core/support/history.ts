import fc from 'fast-check';
import {
  LINE_GRACE_US,
  MAX_CLOCK_STEP_US,
  MAX_DEBT_UNITS,
  RECALL_US,
} from '../../../src/core/buckets/constants.ts';
import type { RateDemand } from '../../../src/core/buckets/kinds.ts';
import { fullAtUs } from '../../../src/core/buckets/rate/debt.ts';
import type { RateState } from '../../../src/core/buckets/rate/index.ts';
import type { Terms } from '../../../src/core/decide/ask.ts';
import type { Keys } from '../../../src/core/decide/demands.ts';
import type { Receipt, Verdict } from '../../../src/core/decide/verdict.ts';
import type { RateLimit } from '../../../src/core/limits/rate.ts';
import { MAX_CAPACITY_UNITS } from '../../../src/core/limits/rate-units.ts';
import { rateLimits, World, ZERO_US } from '../../support/world.ts';

/** Random histories of a governor: what is drawn, and what it means. Shared by the properties in this folder. */

const FOR_EVER_US = Number.MAX_SAFE_INTEGER;

/** How the clock moves before an operation. */
export interface Move {
  readonly by: 'stands' | 'ticks' | 'tokens' | 'retry' | 'idles' | 'leaps' | 'back';
  readonly amount: number;
}

export type Operation =
  | {
      readonly kind: 'acquire';
      readonly move: Move;
      readonly shop: number;
      readonly user: number;
      readonly costs: readonly number[];
      readonly maxWait: 0 | 1 | 2 | 3;
      readonly turns: 'none' | 'keyed' | 'all';
      readonly returning: boolean;
      readonly patient: boolean;
    }
  | { readonly kind: 'cancel'; readonly move: Move; readonly newest: boolean; readonly pick: number }
  | {
      readonly kind: 'force';
      readonly move: Move;
      readonly shop: number;
      readonly user: number;
      readonly cost: number;
    }
  | { readonly kind: 'expire'; readonly move: Move };

const periodMs = fc.oneof(
  fc.constantFrom(1_000, 3_000, 60_000, 3_600_000, 86_400_000),
  fc.integer({ min: 1, max: 86_400_000 }),
);
const rate = fc.oneof(
  fc.constantFrom(1, 2, 3, 7, 10, 100, 1_000_000),
  fc.constantFrom(0.1, 0.3, 33.333, 0.001),
  fc.integer({ min: 1, max: 1_000_000 }),
);
const burst = fc.oneof(
  { weight: 6, arbitrary: fc.integer({ min: 1, max: 12 }) },
  { weight: 1, arbitrary: fc.integer({ min: 13, max: 1_000_000 }) },
);

/** One limit within what validation lets through: from a thousandth per day to a thousand million per second. */
const limitOptions = fc
  .record({ rate, periodMs, burst, by: fc.constantFrom(undefined, undefined, 'shop', 'user') })
  .map(({ burst, by, ...speed }) => {
    // The largest bucket that is exact at this speed, as validation has it; bursts above it are cut to it.
    const { periodUs } = rateLimits({ probe: { ...speed, burst: 1 } })[0]!;
    const size = Math.min(burst, Math.floor(MAX_CAPACITY_UNITS / periodUs));
    return by === undefined ? { ...speed, burst: size } : { ...speed, burst: size, by };
  });

export const limits: fc.Arbitrary<readonly RateLimit[]> = fc
  .array(limitOptions, { minLength: 1, maxLength: 3 })
  .map((several) => rateLimits(Object.fromEntries(several.map((limit, index) => [`limit${index}`, limit]))));

/**
 * A limit by the name `calls` of which a hundred grants stay within what a bucket can owe: 100 × 12 tokens of at most 10^12
 * units are below 2^52.
 */
export const smallLimit: fc.Arbitrary<RateLimit> = limitOptions
  .map(({ rate, periodMs, burst }) => ({ calls: { rate, periodMs, burst: Math.min(12, burst) } }))
  .map((options) => rateLimits(options)[0]!)
  .filter(({ periodUs }) => periodUs <= 1e12);

const move = (moves: readonly Move['by'][]): fc.Arbitrary<Move> =>
  fc.record({ by: fc.constantFrom(...moves), amount: fc.nat(1_000) });

/** Forwards, by nothing up to weeks. */
export const FORWARD: readonly Move['by'][] = [
  'stands',
  'stands',
  'ticks',
  'tokens',
  'tokens',
  'retry',
  'idles',
];
/** The same, and steps of the clock: hours forwards, or back by up to a second in all. */
export const STEPPING: readonly Move['by'][] = [...FORWARD, 'leaps', 'back'];

export function operations(moves: readonly Move['by'][]): fc.Arbitrary<Operation[]> {
  const acquires = fc.record({
    kind: fc.constant('acquire' as const),
    move: move(moves),
    shop: fc.nat(2),
    user: fc.nat(2),
    costs: fc.tuple(fc.nat(7), fc.nat(7), fc.nat(7)),
    maxWait: fc.constantFrom(0 as const, 1 as const, 2 as const, 3 as const),
    turns: fc.constantFrom('none' as const, 'keyed' as const, 'all' as const),
    returning: fc.boolean(),
    patient: fc.boolean(),
  });
  const cancels = fc.record({
    kind: fc.constant('cancel' as const),
    move: move(['stands', 'ticks', 'tokens', ...moves]),
    newest: fc.boolean(),
    pick: fc.nat(1_000),
  });
  const forces = fc.record({
    kind: fc.constant('force' as const),
    move: move(moves),
    shop: fc.nat(2),
    user: fc.nat(2),
    cost: fc.nat(7),
  });
  const expires = fc.record({ kind: fc.constant('expire' as const), move: move(moves) });
  return fc.array(
    fc.oneof(
      { weight: 20, arbitrary: acquires },
      { weight: 6, arbitrary: cancels },
      { weight: 1, arbitrary: forces },
      { weight: 1, arbitrary: expires },
    ),
    { minLength: 1, maxLength: 100, size: 'max' },
  );
}

/** A grant and what became of it in one bucket. */
export interface Entry {
  readonly limit: RateLimit;
  /** When the work may start on the bucket's own clock; see {@link History}. */
  readonly atUs: number;
  readonly cost: number;
  /** How often the clock had been put right by more than a second before it was granted. */
  readonly stretch: number;
  refunded: boolean;
  /** It was still to start when the limits were changed. */
  promised: boolean;
  /** It was to start so long after a change of the limits that it counts no longer. */
  recalled: boolean;
}

interface OpenGrant {
  readonly receipt: Receipt;
  readonly entries: readonly Entry[];
}

/**
 * Plays operations through the decisions and keeps an account of its own.
 *
 * A start is booked at `max(receipt.startUs, bucket.atUs)`. The two differ only while the store's clock has stepped back
 * by less than a second: a bucket's time then stands still at `atUs` until the clock catches up. Whatever is granted at once in
 * that span is granted at one instant of the bucket's time, and that is the time which drains debt. Booking it at the
 * store's own, repeated, microseconds instead would measure the broken clock: the same span of real time has two sets of them.
 */
export class History {
  readonly world: World;
  readonly entries = new Map<string, Entry[]>();
  nowUs = ZERO_US;
  grants = 0;
  refusals = 0;
  refunds = 0;
  keptCancels = 0;
  #latestUs = ZERO_US;
  #corrections = 0;
  #lastWaitUs = 0;
  /** Grants that may still be cancelled, oldest first. */
  #open: OpenGrant[] = [];

  constructor(
    private limits: readonly RateLimit[],
    private readonly mayCorrect = false,
  ) {
    this.world = new World(limits);
  }

  play(operation: Operation): void {
    this.#moveClock(operation.move);
    switch (operation.kind) {
      case 'acquire':
        this.#acquire(operation);
        break;
      case 'cancel':
        this.#cancel(operation.newest, operation.pick);
        break;
      case 'force':
        this.#force(operation);
        break;
      case 'expire':
        this.#expire();
    }
  }

  /** Those that count: all but the ones that were given back. */
  starts(bucket: string): Entry[] {
    return (this.entries.get(bucket) ?? []).filter((entry) => !entry.refunded);
  }

  /** Puts other limits in force, as from now. Grants of before keep their starts or are recalled, and are not cancelled. */
  change(limits: readonly RateLimit[]): void {
    this.limits = limits;
    this.world.configure(this.#atUs, limits);
    this.#open = [];
    for (const entry of [...this.entries.values()].flat()) {
      entry.promised ||= entry.atUs > this.nowUs;
      entry.recalled ||= entry.atUs > this.nowUs + RECALL_US;
    }
  }

  #acquire(operation: Operation & { kind: 'acquire' }): void {
    const request = this.#request(operation.shop, operation.user, operation.costs);
    const before = new Map([...this.buckets].map(([name, bucket]) => [name, { ...bucket }]));
    const verdict = this.world.acquire(this.#atUs, { ...request, ...this.#terms(operation) });
    this.#lastWaitUs = verdict.waitUs;
    this.#checkStates();
    if (verdict.granted) this.#book(verdict);
    else {
      this.refusals += 1;
      for (const [name, bucket] of this.buckets)
        assertNothingCharged(name, before.get(name), bucket, this.world.at(this.#atUs).changedUs);
    }
  }

  #book(verdict: Verdict & { granted: true }): void {
    this.grants += 1;
    const entries = verdict.receipt.charges.map(({ demand }) => {
      const { limit, bucket, cost } = demand as RateDemand;
      const { atUs } = this.buckets.get(bucket)!;
      const entry: Entry = {
        limit,
        atUs: Math.max(verdict.receipt.startUs, atUs),
        cost,
        stretch: this.#corrections,
        refunded: false,
        promised: false,
        recalled: false,
      };
      const list = this.entries.get(bucket);
      if (list === undefined) this.entries.set(bucket, [entry]);
      else list.push(entry);
      return entry;
    });
    this.#open.push({ receipt: verdict.receipt, entries });
  }

  #cancel(newest: boolean, pick: number): void {
    if (this.#open.length === 0) return;
    const index = newest ? this.#open.length - 1 : pick % this.#open.length;
    const { receipt, entries } = this.#open.splice(index, 1)[0]!;
    const granted = receipt.charges.map(({ demand }) => this.buckets.get(demand.bucket)?.granted);
    const whole = this.world.cancel(this.#atUs, receipt);
    this.#checkStates();
    for (const [
      demand,
      {
        demand: { bucket },
      },
    ] of receipt.charges.entries()) {
      // The bucket's own total tells whether this demand was given back: cancel() only says whether all were.
      const refunded = this.buckets.get(bucket)?.granted !== granted[demand];
      entries[demand]!.refunded = refunded;
      if (refunded) this.refunds += 1;
      else this.keptCancels += 1;
    }
    if (whole !== entries.every((entry) => entry.refunded))
      throw new Error('cancel() misreports what it did');
  }

  // What an operator forces is outside the guarantee and not booked; it may only make others wait.
  #force({ shop, user, cost }: Operation & { kind: 'force' }): void {
    this.world.force(this.#atUs, this.#request(shop, user, [cost, cost, cost]));
    this.#checkStates();
  }

  // As a store does it: not before a bucket has been full for as long as a clock may step back.
  #expire(): void {
    for (const [name, bucket] of this.buckets) {
      if (this.nowUs - fullAtUs(bucket, this.limits[0]!, { endUs: 0, rampEndUs: 0 }) > LINE_GRACE_US)
        this.#forget(name);
    }
  }

  #forget(bucket: string): void {
    this.buckets.delete(bucket);
    // A clock that was wrong for a while may take state away before a promised start. Such a grant is not cancelled here.
    if (this.mayCorrect) {
      this.#open = this.#open.filter(({ receipt }) =>
        receipt.charges.every(({ demand }) => demand.bucket !== bucket),
      );
    }
  }

  #request(shop: number, user: number, draws: readonly number[]) {
    const cost: Record<string, number> = {};
    for (const [index, { name, burst }] of this.limits.entries()) {
      const draw = draws[index % draws.length]!;
      // 7 asks for the whole bucket; 0 leaves the limit out, unless it is the first.
      cost[name] = draw === 7 ? burst : Math.min(burst, draw === 0 && index === 0 ? 1 : draw);
    }
    const values = [undefined, 'x', 'y'];
    const keys: Record<string, string | undefined> = {};
    if (this.limits.some(({ by }) => by === 'shop')) keys.shop = values[shop];
    if (this.limits.some(({ by }) => by === 'user')) keys.user = values[user];
    return { cost, keys: keys as Keys };
  }

  #terms({ maxWait, turns, returning, patient }: Operation & { kind: 'acquire' }): Terms {
    return {
      maxWaitUs: [0, 2 * this.#tokenUs(), 3_600_000_000, FOR_EVER_US][maxWait]!,
      maxTurnUs: turns === 'none' ? 0 : FOR_EVER_US,
      turns: turns === 'all' ? 'all' : 'keyed',
      returning,
      patienceUs: patient ? 1_000_000 : 0,
      priority: 1,
      queue: false,
    };
  }

  get #atUs(): number {
    return this.nowUs - ZERO_US;
  }

  /** All limits of these histories are rates. */
  get buckets(): Map<string, RateState> {
    return this.world.buckets as unknown as Map<string, RateState>;
  }

  #tokenUs(): number {
    return Math.max(...this.limits.map(({ rate, periodUs }) => Math.ceil(periodUs / rate)));
  }

  #moveClock({ by, amount }: Move): void {
    const tokenUs = this.#tokenUs();
    const forwardUs = {
      stands: 0,
      ticks: amount,
      tokens: Math.floor((tokenUs * amount) / 400),
      // To the microsecond at which the last refused or reserved request has room, one before and one after.
      retry: Math.max(0, this.#lastWaitUs + (amount % 3) - 1),
      idles: Math.min(100 * tokenUs, 30 * 86_400_000_000) + amount,
      leaps: amount * 60_000_000,
      back: -amount * (this.mayCorrect ? 60_000_000 : 1_000),
    }[by];
    // Reservations may lie years ahead; the clock need not follow them all the way.
    this.nowUs += Math.min(forwardUs, 400 * 86_400_000_000);
    if (this.#latestUs - this.nowUs <= MAX_CLOCK_STEP_US)
      this.#latestUs = Math.max(this.#latestUs, this.nowUs);
    else if (this.mayCorrect) {
      this.#corrections += 1;
      this.#latestUs = this.nowUs;
    } else this.nowUs = this.#latestUs - MAX_CLOCK_STEP_US;
  }

  #checkStates(): void {
    for (const [name, { debt, atUs, granted }] of this.buckets) {
      if (!Number.isSafeInteger(debt) || debt < 0 || debt > MAX_DEBT_UNITS) {
        throw new Error(`${name} owes ${debt}`);
      }
      if (!Number.isSafeInteger(atUs) || !Number.isSafeInteger(granted) || granted < 0) {
        throw new Error(`${name} is at ${atUs} and has granted ${granted}`);
      }
    }
  }
}

/**
 * A refusal charges nothing and gives nothing back: what is owed now is what was owed before, less what drained since; under each
 * limit at its rate. At a change of the limits it may be as much less as was recalled: never less than what can start within a
 * second of it leaves.
 */
function assertNothingCharged(
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
