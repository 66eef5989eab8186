import type { ConcurrencyState } from '../../src/core/buckets/concurrency/index.ts';
import { MAX_CLOCK_STEP_US, MAX_DEBT_UNITS, RECALL_US } from '../../src/core/buckets/constants.ts';
import { type Demand, stateName } from '../../src/core/buckets/kinds.ts';
import type { RateState } from '../../src/core/buckets/rate/index.ts';
import type { WindowState } from '../../src/core/buckets/window/index.ts';
import type { Receipt, Verdict } from '../../src/core/decide/verdict.ts';
import type { Limit, Limits } from '../../src/core/limits/limit.ts';
import type { RateLimit } from '../../src/core/limits/rate.ts';
import type { WindowLimit } from '../../src/core/limits/window.ts';
import { groupedBy } from './ledger.ts';
import { type Move, type Operation, WHOLE } from './operations.ts';
import { type Request, S, slotsOf, World, ZERO_US } from './world.ts';

/**
 * A grant, and what became of it, in one bucket of a rate or a window.
 *
 * It is booked at `max(start, the bucket's own time)`. The two differ only while the store's clock has stepped back by less than a
 * second: a bucket's time then stands still until the clock catches up, and whatever is granted at once in that span is granted at
 * one instant of the bucket's time, by which debt drains. To book it at the store's own, repeated, microseconds would measure the
 * broken clock: the same span of real time has two sets of them.
 */
export interface Entry<L extends RateLimit | WindowLimit = RateLimit | WindowLimit> {
  readonly atUs: number;
  /** What it was decided under. */
  readonly limit: L;
  readonly version: number;
  readonly bucket: string;
  readonly key: string;
  /** When the fixed window that counts it began. */
  readonly windowUs: number;
  /** How often the clock had been put right by more than a second before it was granted. */
  readonly stretch: number;
  readonly asked: number;
  /** The lesser of what was asked for and what it came to; 0: it was cancelled. */
  cost: number;
  /** What it came to beyond that. */
  overrun: number;
  /** It was still to start when the limits were changed. */
  promised: boolean;
  /** It was to start so long after a change of the limits that it does not start. */
  recalled: boolean;
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
  readonly entries: readonly Entry[];
}

export interface PlayedOptions {
  /** Whether the clock may be put right by more than a second. */
  readonly mayCorrect?: boolean;
  /** With the world as it was before the request that was refused, and as it is now. */
  readonly onRefusal?: (before: World, after: World, atUs: number, request: Request, waitUs: number) => void;
}

/** Plays operations in a world and keeps an account of its own of what rates and windows let through. */
export class Played {
  readonly world: World;
  readonly entries: Entry[] = [];
  readonly pauses: Pause[] = [];
  readonly changes: { readonly atUs: number; readonly entries: number }[] = [];
  readonly seen = {
    grants: 0,
    ahead: 0,
    refusals: 0,
    refunds: 0,
    keptCancels: 0,
    settled: 0,
    overruns: 0,
    recalled: 0,
    taken: 0,
  };
  nowUs = 0;
  #latestUs = 0;
  #corrections = 0;
  #roomUs = 0;
  /** Grants that may still be cancelled or settled, oldest first. */
  #open: OpenGrant[] = [];

  /** @param versions - The limits, and those that they may be changed to. */
  constructor(
    private readonly versions: readonly Limits[],
    private readonly options: PlayedOptions = {},
  ) {
    this.world = new World(versions[0]!);
  }

  play(operations: readonly Operation[]): this {
    for (const operation of operations) {
      this.#moveClock(operation.move);
      this.#play(operation);
      this.#checkStates();
    }
    return this;
  }

  /** In equal shares, one share under each version. */
  playInTurn(operations: readonly Operation[]): this {
    const share = Math.ceil(operations.length / this.versions.length);
    for (const [index, limits] of this.versions.entries()) {
      if (index > 0 && index * share < operations.length) this.change(limits);
      this.play(operations.slice(index * share, (index + 1) * share));
    }
    return this;
  }

  /** Puts other limits in force. Grants keep their starts if those come within a second; later ones are recalled. */
  change(limits: Limits): void {
    this.world.configure(this.nowUs, limits);
    this.#recall();
  }

  /** What starts, of one bucket. */
  starts(bucket: string): Entry[] {
    return this.started().filter((entry) => entry.bucket === bucket);
  }

  /** What starts. */
  started(): Entry[] {
    return this.entries.filter(({ cost, recalled }) => cost > 0 && !recalled);
  }

  /** What rates have granted, by bucket. */
  byRate(): Entry<RateLimit>[][] {
    const rates = this.started().filter((entry) => entry.limit.kind === 'rate') as Entry<RateLimit>[];
    return [...groupedBy(rates, ({ bucket }) => bucket).values()];
  }

  get isKeyed(): boolean {
    return this.world.limits.some(({ by, options }) => (by ?? options.by) === 'shop');
  }

  #play(operation: Operation): void {
    const { kind, shop, pick } = operation;
    if (kind === 'acquire') this.#acquire(operation);
    else if (kind === 'atMost') this.#atMost(operation);
    // What an operator forces is outside the guarantee and not booked; it may only make others wait.
    else if (kind === 'force') this.world.force(this.nowUs, this.#request(operation));
    else if (kind === 'pause') this.#pause(shop, pick);
    else if (kind === 'resume') this.#resume(shop, pick);
    else if (kind === 'change') this.change(this.versions[pick % this.versions.length]!);
    else if (kind === 'forget') this.#forget();
    else this.#giveBack(kind, pick, operation.costs[0]!);
  }

  #request({ costs, shop, user, maxWait, turns, ...asked }: Operation): Request {
    const { limits } = this.world;
    const cost = limits.map((limit, index) => {
      const draw = costs[index % costs.length]!;
      const most = limit.kind === 'rate' ? (limit.oversize ? 3 * limit.burst : limit.burst) : limit.max;
      // 0 leaves the limit out, unless it is the first.
      return [limit.name, draw === WHOLE ? most : Math.min(most, index === 0 ? Math.max(1, draw) : draw)];
    });
    const keys = {
      ...(this.isKeyed && { shop: `shop${shop}` }),
      ...(limits.some(({ by }) => by === 'user') && { user: [undefined, 'x', 'y'][user] }),
    };
    return {
      cost: Object.fromEntries(cost),
      keys,
      holder: `holder${asked.pick % 12}`,
      maxWaitUs: [0, 2 * this.#tokenUs(), 3_600 * S, Number.MAX_SAFE_INTEGER][maxWait]!,
      maxTurnUs: turns === 'none' ? 0 : Number.MAX_SAFE_INTEGER,
      turns: turns === 'all' ? 'all' : 'keyed',
      returning: asked.returning,
      patienceUs: asked.patient ? S : 0,
      priority: asked.priority,
      queue: maxWait === 3,
    };
  }

  #acquire(operation: Operation): void {
    const { onRefusal } = this.options;
    const request = this.#request(operation);
    const before = onRefusal && this.world.copy();
    const verdict = this.world.acquire(this.nowUs, request);
    this.#roomUs = verdict.waitUs;
    if (!verdict.granted) {
      this.seen.refusals += 1;
      onRefusal?.(before!, this.world, this.nowUs, request, verdict.waitUs);
      return;
    }
    this.seen.grants += 1;
    if (verdict.waitUs > 0) this.seen.ahead += 1;
    const { receipt } = verdict;
    const demands = receipt.charges.map(({ demand }) => demand);
    const entries = this.#book(demands, receipt.startUs, `shop${operation.shop}`);
    this.#open.push({ receipt, entries });
    this.#checkSlots(verdict);
  }

  #atMost({ shop, costs, priority }: Operation): void {
    if (this.world.limits.some(({ kind }) => kind === 'concurrency')) return;
    const request = { ...(this.isKeyed && { keys: { shop: `shop${shop}` } }), priority };
    const taken = this.world.atMost(this.nowUs, 2 * Math.max(1, costs[0]!), request);
    if (taken === 0) return;
    this.seen.taken += taken;
    const demands = this.world.demands(taken, request.keys);
    this.#book(demands, ZERO_US + this.nowUs, `shop${shop}`);
  }

  #book(demands: readonly Demand[], startUs: number, key: string): Entry[] {
    const entries = demands.flatMap((demand): Entry[] => {
      if (demand.kind !== 'rate' && demand.kind !== 'window') return [];
      const { limit, bucket, cost } = demand;
      const state = this.world.stored(demand) as RateState | WindowState;
      const entry = {
        atUs: Math.max(startUs, state.atUs) - ZERO_US,
        limit,
        version: this.world.version,
        bucket,
        key,
        windowUs: 'start' in state ? state.start : 0,
        stretch: this.#corrections,
        asked: cost,
        cost,
        overrun: 0,
        promised: false,
        recalled: false,
      };
      return [entry];
    });
    this.entries.push(...entries);
    return entries;
  }

  /** Never more slots than there are; whom it kept its slots from is checked by the leases' own properties. */
  #checkSlots({ receipt }: Verdict & { granted: true }): void {
    for (const { demand } of receipt.charges) {
      if (demand.kind !== 'concurrency') continue;
      const { leases } = this.world.stored(demand) as ConcurrencyState;
      const held = leases.reduce((sum, { cost }) => sum + cost, 0);
      if (held > demand.limit.max) throw new Error(`${held} slots of ${demand.limit.max} are held`);
    }
  }

  #giveBack(kind: 'cancel' | 'settle' | 'release', pick: number, actual: number): void {
    if (this.#open.length === 0) return;
    const index = pick % 2 === 0 ? this.#open.length - 1 : pick % this.#open.length;
    const grant = this.#open.splice(index, 1)[0]!;
    if (kind === 'cancel') this.#cancel(grant);
    else if (kind === 'settle') this.#settle(grant, actual);
    for (const slot of slotsOf(grant.receipt)) this.world.release(this.nowUs, slot);
  }

  #cancel({ receipt, entries }: OpenGrant): void {
    const grantedIn = () => entries.map(({ bucket }) => this.#bucket(bucket)?.granted);
    const before = grantedIn();
    const isWhole = this.world.cancel(this.nowUs, receipt);
    const after = grantedIn();
    const isAhead = receipt.startUs > ZERO_US + this.nowUs;
    // A rate's own total tells whether it gave back: cancel() only says whether all did. A window counts what will not start.
    const refunded = entries.map(({ limit }, index) =>
      limit.kind === 'rate' ? after[index] !== before[index] : isAhead,
    );
    for (const [index, entry] of entries.entries()) {
      if (refunded[index]) entry.cost = 0;
      this.seen[refunded[index] ? 'refunds' : 'keptCancels'] += 1;
    }
    const isRates = receipt.charges.every(({ demand }) => demand.kind === 'rate');
    if (isRates && isWhole !== refunded.every(Boolean)) throw new Error('cancel() misreports what it did');
  }

  #settle({ receipt, entries }: OpenGrant, actual: number): void {
    this.world.settle(this.nowUs, receipt, actual);
    this.seen.settled += 1;
    for (const entry of entries) {
      entry.overrun = Math.max(0, actual - entry.asked);
      if (entry.overrun > 0) this.seen.overruns += 1;
      entry.cost = Math.min(entry.cost, actual);
    }
  }

  #pause(shop: number, pick: number): void {
    const untilUs = this.nowUs + [0.1 * S, S, 2 * S, 3 * S, 5 * S, 90 * S, 10 * S][pick % 7]!;
    const key = this.#whom(shop, pick);
    this.world.pause(this.nowUs, untilUs, key === undefined ? undefined : { shop: key });
    this.pauses.push({ fromUs: this.nowUs, untilUs, key, entries: this.entries.length });
  }

  #resume(shop: number, pick: number): void {
    const key = this.#whom(shop, pick);
    const recalls = this.world.resume(this.nowUs, key === undefined ? undefined : { shop: key });
    for (const pause of this.pauses) {
      if (pause.key === key) pause.untilUs = Math.min(pause.untilUs, Math.max(pause.fromUs, this.nowUs));
    }
    if (recalls) this.#recall();
  }

  /** A key, or undefined: all. */
  #whom(shop: number, pick: number): string | undefined {
    return pick % 3 === 0 || !this.isKeyed ? undefined : `shop${shop}`;
  }

  #recall(): void {
    this.changes.push({ atUs: this.nowUs, entries: this.entries.length });
    for (const entry of this.entries) {
      if (entry.atUs <= this.nowUs || entry.cost === 0) continue;
      entry.promised = true;
      if (entry.recalled || entry.atUs <= this.nowUs + RECALL_US) continue;
      entry.recalled = true;
      this.seen.recalled += 1;
    }
  }

  #forget(): void {
    const gone = new Set(this.world.forget(this.nowUs));
    // A clock that was wrong for a while may take state away before a promised start. Such a grant is not cancelled here.
    if (this.options.mayCorrect) {
      this.#open = this.#open.filter(({ receipt }) =>
        receipt.charges.every(({ demand }) => !gone.has(stateName(demand))),
      );
    }
  }

  #bucket(name: string): RateState | undefined {
    return this.world.buckets.get(name) as RateState | undefined;
  }

  #tokenUs(): number {
    const tokens = this.world.limits.map((limit: Limit) =>
      limit.kind === 'rate' ? Math.ceil(limit.periodUs / limit.rate) : 0,
    );
    return Math.max(...tokens);
  }

  #moveClock({ by, amount }: Move): void {
    const tokenUs = this.#tokenUs();
    const { windowUs = 0, cells = 1 } = (this.world.limits.find(({ kind }) => kind === 'window') ??
      {}) as Partial<WindowLimit>;
    const cellUs = Math.max(1, windowUs / cells);
    const forwardUs = {
      stands: 0,
      ticks: amount,
      us: amount,
      tokens: Math.floor((tokenUs * amount) / 400),
      eighths: Math.floor((windowUs * (amount % 20)) / 8),
      // To the beginning of a cell, or a microsecond off it.
      cells: cellUs * (amount % 4) - ((ZERO_US + this.nowUs) % cellUs) + (amount % 3),
      // To the microsecond at which the last refused or reserved request has room, one before and one after.
      retry: Math.max(0, this.#roomUs + (amount % 3) - 1),
      idles: windowUs > 0 ? windowUs * amount : Math.min(100 * tokenUs, 30 * 86_400 * S) + amount,
      leaps: amount * 60 * S,
      back: -amount * (this.options.mayCorrect ? 60 * S : 1_000),
    }[by];
    // Reservations may lie years ahead; the clock need not follow them all the way.
    this.nowUs += Math.min(forwardUs, 400 * 86_400 * S);
    if (this.#latestUs - this.nowUs > MAX_CLOCK_STEP_US) {
      if (this.options.mayCorrect) {
        this.#corrections += 1;
        this.#latestUs = this.nowUs;
      } else this.nowUs = this.#latestUs - MAX_CLOCK_STEP_US;
    }
    this.#latestUs = Math.max(this.#latestUs, this.nowUs);
  }

  #checkStates(): void {
    for (const [name, state] of this.world.buckets) {
      if (!('debt' in state)) continue;
      const { debt, atUs, granted } = state;
      if (!Number.isSafeInteger(debt) || debt < 0 || debt > MAX_DEBT_UNITS)
        throw new Error(`${name} owes ${debt}`);
      if (!Number.isSafeInteger(atUs) || !Number.isSafeInteger(granted) || granted < 0)
        throw new Error(`${name} is at ${atUs} and has granted ${granted}`);
    }
  }
}
