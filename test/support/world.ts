import type { AdaptiveReport } from '../../src/core/buckets/adaptive.ts';
import { RAMP_US } from '../../src/core/buckets/constants.ts';
import type { View } from '../../src/core/buckets/kind.ts';
import { type Buckets, type State, stateName } from '../../src/core/buckets/kinds.ts';
import type { Moment } from '../../src/core/buckets/moment.ts';
import { longer } from '../../src/core/buckets/pause.ts';
import { acquire } from '../../src/core/decide/acquire.ts';
import type { Terms } from '../../src/core/decide/ask.ts';
import { atMost } from '../../src/core/decide/at-most.ts';
import {
  type Cost,
  type Demand,
  demandsOf,
  type Keys,
  keyedDemandsOf,
} from '../../src/core/decide/demands.ts';
import { force } from '../../src/core/decide/force.ts';
import * as giveBack from '../../src/core/decide/give-back.ts';
import { opening, type StoreTimes } from '../../src/core/decide/opening.ts';
import * as pauses from '../../src/core/decide/pause.ts';
import { type BucketReport, peek } from '../../src/core/decide/peek.ts';
import type { Receipt, Verdict } from '../../src/core/decide/verdict.ts';
import { viewsOf } from '../../src/core/decide/view.ts';
import { fillingUs } from '../../src/core/limits/configuration.ts';
import {
  type LimitOptions,
  type Limits,
  type LimitsOptions,
  parseLimits,
} from '../../src/core/limits/limit.ts';
import type { RateLimit } from '../../src/core/limits/rate.ts';

/** A second, in microseconds. Times in these tests are microseconds from the world's own zero unless their name says else. */
export const S = 1_000_000;

/** A day in 2023 as a Redis server tells it: times are as large as they are in life, and none is 0, which stands for "none". */
export const ZERO_US = 1_700_000_000_000_000;

export interface Request extends Partial<Terms> {
  readonly cost?: Cost;
  readonly keys?: Keys | undefined;
  readonly holder?: string;
  readonly instance?: string;
}

const NOW_OR_NOT: Terms = {
  maxWaitUs: 0,
  maxTurnUs: 0,
  turns: 'keyed',
  returning: false,
  patienceUs: S,
  priority: 1,
  queue: false,
};

/** What a call of `waitN` asks with. */
export const WAITING: Request = {
  maxWaitUs: Number.MAX_SAFE_INTEGER,
  maxTurnUs: Number.MAX_SAFE_INTEGER,
  queue: true,
};

/**
 * One governor in the pure core: its buckets, limits and pauses, on a clock given with each call. There is no store and no waiting.
 * All tests of decisions go through it; it is also what the Lua scripts are compared with.
 */
export class World {
  readonly woken: string[] = [];
  readonly buckets: States;
  limits: Limits;
  version = 1;
  #times: StoreTimes;

  /** @param coldAtUs - When the buckets without state were empty; by default they are full. */
  constructor(limits: LimitsOptions | Limits, coldAtUs?: number, buckets = new States()) {
    this.limits = parsed(limits);
    this.#times = {
      coldAtUs: coldAtUs === undefined ? 0 : ZERO_US + coldAtUs,
      changedUs: 0,
      pause: null,
      pausedAtUs: 0,
    };
    this.buckets = buckets;
  }

  /** By default: now or not at all, no turn in the line, no place in a queue for slots. */
  acquire(atUs: number, request: Request = {}): Verdict {
    const { cost = 1, keys, holder = '', instance, ...terms } = request;
    const ask = { ...NOW_OR_NOT, ...terms, holder, ...(instance !== undefined && { instance }) };
    return acquire(this.buckets, this.demands(cost, keys), ask, this.at(atUs), this.#wakeUp);
  }

  /** Whether it is granted at once. */
  allows(atUs: number, request?: Request): boolean {
    return this.acquire(atUs, request).granted;
  }

  /** Reserves, however long the wait. @throws if it is refused. */
  reserve(atUs: number, request: Request = {}): { startUs: number; receipt: Receipt } {
    const verdict = this.acquire(atUs, { maxWaitUs: Number.MAX_SAFE_INTEGER, ...request });
    if (!verdict.granted) throw new Error(`refused by ${verdict.limit.name}: ${verdict.reason}`);
    return { startUs: verdict.receipt.startUs - ZERO_US, receipt: verdict.receipt };
  }

  /** Takes a turn in the line. @returns when it is. @throws if there was none. */
  takeTurn(atUs: number, request: Request = {}): number {
    const verdict = this.acquire(atUs, { maxTurnUs: Number.MAX_SAFE_INTEGER, ...request });
    if (verdict.granted || !verdict.hasTurn) throw new Error('got no turn');
    return atUs + verdict.waitUs;
  }

  atMost(atUs: number, most: number, { cost = 1, keys, priority = 1 }: Request = {}): number {
    return atMost(this.buckets, this.demands(cost, keys), most, priority, this.at(atUs));
  }

  /** @returns null if the buckets cannot owe so much. */
  force(atUs: number, { cost = 1, keys, holder = '' }: Request = {}): Receipt | null {
    return force(this.buckets, this.demands(cost, keys), holder, this.at(atUs));
  }

  peek(atUs: number, { cost = 1, keys, priority = 1 }: Request = {}): BucketReport[] {
    return peek(this.buckets, this.demands(cost, keys), priority, this.at(atUs));
  }

  cancel(atUs: number, receipt: Receipt): boolean {
    return giveBack.cancel(this.buckets, receipt, this.at(atUs));
  }

  settle(atUs: number, receipt: Receipt, actual: Cost): void {
    const settled = giveBack.settledUnder(this.limits, receipt, actual);
    giveBack.settle(this.buckets, settled.receipt, settled.actual, this.at(atUs));
  }

  release(atUs: number, slot: giveBack.HeldSlot): boolean {
    const held = giveBack.slotUnder(this.limits, slot);
    return held !== undefined && giveBack.release(this.buckets, held, this.at(atUs), this.#wakeUp);
  }

  /** Without its limit there is nothing to exceed: a slot is as good as held. */
  renew(atUs: number, slot: giveBack.HeldSlot): boolean {
    const held = giveBack.slotUnder(this.limits, slot);
    return held === undefined || giveBack.renew(this.buckets, held, this.at(atUs));
  }

  leave(atUs: number, { cost = 1, keys, holder = '' }: Request): void {
    giveBack.leave(this.buckets, this.demands(cost, keys), holder, this.at(atUs), this.#wakeUp);
  }

  report(atUs: number, calls: AdaptiveReport, { cost = 1, keys }: Request = {}): void {
    giveBack.report(this.buckets, this.demands(cost, keys), calls, this.at(atUs), this.#wakeUp);
  }

  /** @param keys - Of these; without them, the whole governor. */
  pause(atUs: number, untilUs: number, keys?: Keys): void {
    if (keys !== undefined) {
      const demands = keyedDemandsOf(this.limits, keys);
      pauses.pauseUntil(this.buckets, demands, ZERO_US + untilUs, this.at(atUs));
      return;
    }
    const at = this.#look(atUs);
    if (ZERO_US + untilUs > (at.pause?.untilUs ?? 0)) {
      const pause = longer(at.pause, at.nowUs, ZERO_US + untilUs);
      this.#times = { ...this.#times, pause, pausedAtUs: at.nowUs };
    }
  }

  /** @returns whether there was a pause of the whole governor to end; then what is promised further ahead is recalled. */
  resume(atUs: number, keys?: Keys): boolean {
    if (keys !== undefined) pauses.resume(this.buckets, keyedDemandsOf(this.limits, keys), this.at(atUs));
    const at = this.#look(atUs);
    if (keys !== undefined || at.pause === null || at.pause.untilUs <= at.nowUs) return false;
    const pause = { ...at.pause, untilUs: at.nowUs };
    this.#times = { ...this.#times, pause, pausedAtUs: at.nowUs };
    this.#newVersion(at.nowUs);
    return true;
  }

  /** Slower limits must not find buckets empty again that had filled since a cold start or a pause. */
  configure(atUs: number, limits: LimitsOptions | Limits): void {
    const { coldAtUs, pause } = this.#times;
    const nowUs = ZERO_US + atUs;
    const filledUs = nowUs - fillingUs(this.limits);
    this.#times = {
      ...this.#times,
      coldAtUs: coldAtUs <= filledUs ? 0 : coldAtUs,
      pause: pause !== null && pause.untilUs + RAMP_US <= filledUs ? null : pause,
    };
    this.limits = parsed(limits);
    this.#newVersion(nowUs);
  }

  demands(cost: Cost = 1, keys?: Keys): Demand[] {
    return demandsOf(this.limits, cost, keys);
  }

  /** The moment of a decision. Times that a wrong clock wrote are put right with the clock, and kept so, as the scripts do it. */
  at(atUs: number): Moment {
    const { moment, times } = opening(this.#times, this.version, ZERO_US + atUs);
    this.#times = times;
    return moment;
  }

  // What only looks keeps nothing.
  #look(atUs: number): Moment {
    return opening(this.#times, this.version, ZERO_US + atUs).moment;
  }

  /** The buckets of a request, as they look to it. */
  views(atUs: number, { cost = 1, keys, holder = '', priority = 1 }: Request = {}) {
    const views = viewsOf(this.buckets, this.demands(cost, keys), { holder, priority }, this.at(atUs));
    return views as View<Demand>[];
  }

  /** What is stored under a demand's name. */
  stored(demand: Pick<Demand, 'kind' | 'bucket'>): State | undefined {
    return this.buckets.get(stateName(demand));
  }

  /** When the line of a bucket ends; undefined if there is none. */
  lineEnd(bucket: string): number | undefined {
    const { lineUs = 0 } = (this.buckets.get(bucket) ?? {}) as { lineUs?: number };
    return lineUs === 0 ? undefined : lineUs - ZERO_US;
  }

  /** Forgets the states that say nothing more than none, as a store does. @returns their names. */
  forget(atUs: number): string[] {
    return this.buckets.forget(ZERO_US + atUs);
  }

  /** One that goes its own way from here. */
  copy(buckets = this.buckets.copy()): World {
    const copy = new World(this.limits, undefined, buckets);
    copy.version = this.version;
    copy.#times = this.#times;
    return copy;
  }

  #newVersion(nowUs: number): void {
    this.version += 1;
    this.#times = { ...this.#times, changedUs: nowUs };
  }

  readonly #wakeUp = (holder: string): void => {
    this.woken.push(holder);
  };
}

/** States by name, and from when each says nothing more than none. */
export class States extends Map<string, State> implements Buckets {
  readonly restsUs = new Map<string, number>();

  override set(name: string, state: State, restUs = 0): this {
    this.restsUs.set(name, restUs);
    return super.set(name, state);
  }

  forget(nowUs: number): string[] {
    const names = [...this.restsUs].filter(([, restUs]) => restUs < nowUs).map(([name]) => name);
    for (const name of names) {
      this.delete(name);
      this.restsUs.delete(name);
    }
    return names;
  }

  // A state is replaced when it changes, but for the registry of keys.
  copy(): States {
    const copy = new States();
    for (const [name, state] of this) {
      const own = 'until' in state ? { until: new Map(state.until) } : state;
      copy.set(name, own, this.restsUs.get(name));
    }
    return copy;
  }
}

/** The slots of a grant, as their holder gives them back. */
export const slotsOf = ({ holder, charges }: Receipt): giveBack.HeldSlot[] =>
  charges.flatMap(({ demand, fence }) => (demand.kind === 'concurrency' ? [{ demand, holder, fence }] : []));

const parsed = (limits: LimitsOptions | Limits): Limits =>
  Array.isArray(limits) ? (limits as Limits) : parseLimits(limits as LimitsOptions);

/** A rate limit by the name `calls`. */
export const limitOf = (options: LimitOptions): RateLimit => rateLimits({ calls: options })[0]!;

export function rateLimits(options: LimitsOptions): readonly RateLimit[] {
  return parseLimits(options).map((limit) => {
    if (limit.kind !== 'rate') throw new Error(`${limit.name} is no rate limit`);
    return limit;
  });
}

/** A moment at which nothing is known but the time. */
export const momentAt = (nowUs: number, coldAtUs = 0, version = 1, changedUs = 0): Moment => ({
  nowUs,
  coldAtUs,
  pause: null,
  version,
  changedUs,
});
