import fc from 'fast-check';
import type { ConcurrencyState } from '../../../src/core/buckets/concurrency/index.ts';
import { MAX_CLOCK_STEP_US, RECALL_US } from '../../../src/core/buckets/constants.ts';
import type { Charge, Receipt, Verdict } from '../../../src/core/decide/verdict.ts';
import { type Limits, parseLimits } from '../../../src/core/limits/limit.ts';
import type { RateLimit } from '../../../src/core/limits/rate.ts';
import { type Request, S, slotsOf, World, ZERO_US } from '../../support/world.ts';

/** Random histories of requests that meet limits of all kinds at once, and an account of what their rates let through. */

export interface MixtureOperation {
  readonly kind:
    | 'acquire'
    | 'settle'
    | 'cancel'
    | 'release'
    | 'atMost'
    | 'pause'
    | 'resume'
    | 'change'
    | 'forget';
  /** Microseconds, or when the last refused request has room. */
  readonly by: number | 'retry';
  readonly key: number;
  readonly cost: number;
  readonly pick: number;
  readonly waits: boolean;
  readonly turns: 'none' | 'keyed' | 'all';
  readonly returning: boolean;
  readonly priority: 0 | 1 | 2;
}

type Weights = Partial<Record<MixtureOperation['kind'], number>>;

const moves = (backUs: number) =>
  fc.oneof(
    { weight: 3, arbitrary: fc.constantFrom<number | 'retry'>(0, 0, 'retry', 'retry', 10_000, S) },
    { weight: 3, arbitrary: fc.integer({ min: 0, max: 300_000 }) },
    { weight: 1, arbitrary: fc.integer({ min: -backUs, max: 4 * S }) },
  );

/** @param backUs - By how much the clock may step back at once. */
export function mixtureOperations(weights: Weights, backUs = 400_000): fc.Arbitrary<MixtureOperation[]> {
  const by = moves(backUs);
  const kinds = Object.entries(weights).map(([kind, weight]) => ({
    weight,
    arbitrary: fc.constant(kind as MixtureOperation['kind']),
  }));
  return fc.array(
    fc.record({
      kind: fc.oneof(...kinds),
      by,
      key: fc.nat(3),
      cost: fc.integer({ min: 1, max: 8 }),
      pick: fc.nat(1_000),
      waits: fc.boolean(),
      turns: fc.constantFrom('none' as const, 'none' as const, 'keyed' as const, 'all' as const),
      returning: fc.boolean(),
      priority: fc.constantFrom(0 as const, 1 as const, 2 as const),
    }),
    { minLength: 1, maxLength: 80, size: 'max' },
  );
}

export interface MixtureEntry {
  readonly limit: RateLimit;
  readonly bucket: string;
  /** By the bucket's own clock. */
  readonly atUs: number;
  readonly decidedUs: number;
  readonly version: number;
  readonly key: string;
  readonly asked: number;
  /** The lesser of what was asked for and what it came to; 0: it was cancelled or recalled. */
  cost: number;
  /** What it came to beyond that, and when that was told. */
  overrun: number;
}

export interface Pause {
  readonly fromUs: number;
  untilUs: number;
  readonly key: string | undefined;
  /** How many entries there were when it began. */
  readonly entries: number;
}

interface OpenGrant {
  readonly receipt: Receipt;
  readonly entries: readonly MixtureEntry[];
}

export class Mixture {
  readonly world: World;
  readonly entries: MixtureEntry[] = [];
  /** From when to when it was paused, and whom: undefined is all. */
  readonly pauses: Pause[] = [];
  readonly changes: { readonly atUs: number; readonly entries: number }[] = [];
  readonly seen = {
    grants: 0,
    ahead: 0,
    refusals: 0,
    cancelled: 0,
    settled: 0,
    overruns: 0,
    recalled: 0,
    taken: 0,
  };
  nowUs = 0;
  #latestUs = 0;
  #roomUs = 0;
  #open: OpenGrant[] = [];

  /** @param onRefusal - With the governor as it was before, and the request that was refused. */
  constructor(
    private readonly versions: readonly Limits[],
    private readonly onRefusal: (
      before: World,
      after: World,
      atUs: number,
      request: Request,
    ) => void = () => {},
  ) {
    this.world = new World(versions[0]!);
  }

  play(operation: MixtureOperation): void {
    this.nowUs += operation.by === 'retry' ? this.#roomUs : operation.by;
    this.#latestUs = Math.max(this.#latestUs, this.nowUs);
    this.nowUs = Math.max(0, this.nowUs, this.#latestUs - MAX_CLOCK_STEP_US);
    this.#roomUs = 0;
    const { kind, pick } = operation;
    if (kind === 'acquire') this.#acquire(operation);
    else if (kind === 'atMost') this.#atMost(operation);
    else if (kind === 'pause') this.#pause(operation);
    else if (kind === 'resume') this.#resume(operation);
    else if (kind === 'forget') this.world.forget(this.nowUs);
    else if (kind === 'change') {
      this.world.configure(this.nowUs, this.versions[pick % this.versions.length]!);
      this.#recall();
    } else this.#giveBack(kind, pick, operation.cost);
  }

  #giveBack(kind: MixtureOperation['kind'], pick: number, actual: number): void {
    // What has not started is cancelled; any grant may be settled or released.
    const open = this.#open.filter(
      ({ receipt }) => kind !== 'cancel' || receipt.startUs > ZERO_US + this.nowUs,
    );
    const grant = open.at(pick % 2 === 0 ? -1 : pick % Math.max(1, open.length));
    if (grant === undefined) return;
    this.#open = this.#open.filter((other) => other !== grant);
    if (kind === 'cancel') this.#cancel(grant);
    else if (kind === 'settle') this.#settle(grant, actual);
    for (const slot of slotsOf(grant.receipt)) this.world.release(this.nowUs, slot);
  }

  #request({ cost, key, waits, turns, returning, priority, pick }: MixtureOperation): Request {
    const costs: Record<string, number> = {};
    for (const limit of this.world.limits) {
      const most = limit.kind === 'rate' ? (limit.oversize ? 3 * limit.burst : limit.burst) : limit.max;
      costs[limit.name] = cost === 8 ? most : Math.min(cost, most);
    }
    return {
      cost: costs,
      ...(this.isKeyed && { keys: { shop: `shop${key}` } }),
      holder: `holder${pick % 12}`,
      maxWaitUs: waits ? Number.MAX_SAFE_INTEGER : 0,
      maxTurnUs: turns === 'none' ? 0 : Number.MAX_SAFE_INTEGER,
      turns: turns === 'all' ? 'all' : 'keyed',
      returning,
      priority,
      queue: waits,
    };
  }

  get isKeyed(): boolean {
    return this.world.limits.some(
      (limit) => limit.by !== null || (limit.kind === 'rate' && limit.fair !== null),
    );
  }

  #acquire(operation: MixtureOperation): void {
    const request = this.#request(operation);
    const before = this.world.copy();
    const verdict = this.world.acquire(this.nowUs, request);
    if (!verdict.granted) {
      this.#roomUs = verdict.waitUs;
      this.seen.refusals += 1;
      this.onRefusal(before, this.world, this.nowUs, request);
      return;
    }
    this.seen.grants += 1;
    if (verdict.waitUs > 0) this.seen.ahead += 1;
    const entries = this.#book(verdict.receipt, `shop${operation.key}`);
    this.#open.push({ receipt: verdict.receipt, entries });
    this.#checkSlots(verdict);
  }

  #book({ startUs, charges, version }: Receipt, key: string): MixtureEntry[] {
    const entries = charges.flatMap(({ demand }: Charge): MixtureEntry[] => {
      if (demand.kind !== 'rate') return [];
      const { limit, bucket, cost } = demand;
      const ownUs = (this.world.stored(demand) as { atUs: number }).atUs;
      const atUs = Math.max(startUs, ownUs) - ZERO_US;
      return [{ limit, bucket, atUs, decidedUs: this.nowUs, version, key, asked: cost, cost, overrun: 0 }];
    });
    this.entries.push(...entries);
    return entries;
  }

  /** Never more slots than there are; whom it kept its slots from is checked by the leases' own properties. */
  #checkSlots(verdict: Verdict): void {
    if (!verdict.granted) return;
    for (const { demand } of verdict.receipt.charges) {
      if (demand.kind !== 'concurrency') continue;
      const { leases } = this.world.stored(demand) as ConcurrencyState;
      const held = leases.reduce((sum, { cost }) => sum + cost, 0);
      if (held > demand.limit.max) throw new Error(`${held} slots of ${demand.limit.max} are held`);
    }
  }

  #atMost({ key, cost, priority }: MixtureOperation): void {
    if (this.world.limits.some(({ kind }) => kind === 'concurrency')) return;
    const request = { ...(this.isKeyed && { keys: { shop: `shop${key}` } }), priority };
    const taken = this.world.atMost(this.nowUs, cost * 2, request);
    if (taken === 0) return;
    this.seen.taken += taken;
    for (const { demand, state } of this.world.views(this.nowUs, request)) {
      if (demand.kind !== 'rate') continue;
      const atUs = Math.max(this.nowUs, state.atUs - ZERO_US);
      const { limit, bucket } = demand;
      const { version } = this.world;
      const decidedUs = this.nowUs;
      this.entries.push({
        limit,
        bucket,
        atUs,
        decidedUs,
        version,
        key: `shop${key}`,
        asked: taken,
        cost: taken,
        overrun: 0,
      });
    }
  }

  #cancel({ receipt, entries }: OpenGrant): void {
    this.world.cancel(this.nowUs, receipt);
    for (const entry of entries) entry.cost = 0; // it will not start, whether its tokens come back or not
    this.seen.cancelled += 1;
  }

  #settle({ receipt, entries }: OpenGrant, actual: number): void {
    this.world.settle(this.nowUs, receipt, actual - 1);
    this.seen.settled += 1;
    for (const entry of entries) {
      entry.overrun = Math.max(0, actual - 1 - entry.asked);
      if (entry.overrun > 0) this.seen.overruns += 1;
      entry.cost = Math.min(entry.cost, actual - 1);
    }
  }

  #pause({ key, pick }: MixtureOperation): void {
    const forUs = [100_000, S, 2 * S, 3 * S, 5 * S, 90 * S][pick % 7] ?? 10 * S;
    const shop = pick % 3 === 0 || !this.isKeyed ? undefined : `shop${key}`;
    this.world.pause(this.nowUs, this.nowUs + forUs, shop === undefined ? undefined : { shop });
    this.pauses.push({
      fromUs: this.nowUs,
      untilUs: this.nowUs + forUs,
      key: shop,
      entries: this.entries.length,
    });
  }

  #resume({ key, pick }: MixtureOperation): void {
    const shop = pick % 3 === 0 || !this.isKeyed ? undefined : `shop${key}`;
    const recalls = this.world.resume(this.nowUs, shop === undefined ? undefined : { shop });
    for (const pause of this.pauses) {
      if (pause.key === shop) pause.untilUs = Math.min(pause.untilUs, Math.max(pause.fromUs, this.nowUs));
    }
    if (recalls) this.#recall();
  }

  #recall(): void {
    this.changes.push({ atUs: this.nowUs, entries: this.entries.length });
    for (const entry of this.entries) {
      if (entry.atUs <= this.nowUs + RECALL_US || entry.cost === 0) continue;
      entry.cost = 0;
      this.seen.recalled += 1;
    }
  }
}

const rate = fc.record({ rate: fc.integer({ min: 1, max: 40 }), burst: fc.integer({ min: 1, max: 10 }) });
const others = fc.record(
  {
    daily: fc.record({
      kind: fc.constant('window' as const),
      max: fc.integer({ min: 1, max: 12 }),
      windowMs: fc.constantFrom(100, 1_000, 10_000),
      mode: fc.constantFrom('fixed' as const, 'sliding' as const, 'log' as const),
    }),
    slots: fc.record({
      kind: fc.constant('concurrency' as const),
      max: fc.integer({ min: 1, max: 5 }),
      leaseMs: fc.constantFrom(100, 2_000),
    }),
    shop: rate.map(({ rate, burst }) => ({ rate, burst, periodMs: 1_000, by: 'shop' })),
  },
  { requiredKeys: [] },
);

export interface RateKind {
  readonly fair?: boolean;
  readonly oversize?: 'debt';
  readonly reserve?: { readonly high: number; readonly normal: number };
  readonly penalty?: { readonly afterMs: number; readonly forMs: number; readonly share: number };
  readonly strict?: boolean;
}

/** A rate by the name `calls` of any of these kinds, and others beside it: of all kinds, or rates alone. */
export const mixtures = (kinds: readonly RateKind[], alone = false): fc.Arbitrary<Limits> =>
  fc.tuple(rate, fc.constantFrom(...kinds), others).map(([{ rate, burst }, kind, { daily, slots, shop }]) => {
    const beside = {
      ...(shop && { shop }),
      ...(!alone && daily && { daily }),
      ...(!alone && slots && { slots }),
    };
    const calls = {
      rate: kind.strict ? rate + burst : rate,
      burst,
      periodMs: 1_000,
      ...kind,
      ...(kind.fair && { by: 'shop', weights: { shop0: 3, shop1: 2 } }),
    };
    return parseLimits({ ...beside, calls });
  });
