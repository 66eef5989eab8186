import type { Moment } from '../../../src/core/buckets/moment.ts';
import { acquire, atMost, force } from '../../../src/core/decide/acquire.ts';
import { type Buckets, type State, stateName } from '../../../src/core/decide/buckets.ts';
import {
  actualOf,
  type Cost,
  type Demand,
  demandsOf,
  type Keys,
  keyedDemandsOf,
} from '../../../src/core/decide/demands.ts';
import { cancel, type HeldSlot, leave, release, renew, settle } from '../../../src/core/decide/give-back.ts';
import { pauseUntil, resume } from '../../../src/core/decide/pause.ts';
import type { Receipt, Terms, Verdict } from '../../../src/core/decide/verdict.ts';
import { type Asker, viewsOf } from '../../../src/core/decide/views.ts';
import type { ConcurrencyLimit } from '../../../src/core/limits/concurrency.ts';
import { type Limit, type Limits, type LimitsOptions, parseLimits } from '../../../src/core/limits/limit.ts';
import { ZERO_US } from './desk.ts';

export interface Request extends Partial<Terms> {
  readonly cost?: Cost;
  readonly keys?: Keys;
  readonly holder?: string;
}

const NOW_OR_NOT = {
  maxWaitUs: 0,
  maxTurnUs: 0,
  turns: 'keyed',
  returning: false,
  patienceUs: 1_000_000,
  priority: 1,
  queue: false,
} as const;

/** What a call of `waitN` asks with. */
export const WAITING: Request = {
  maxWaitUs: Number.MAX_SAFE_INTEGER,
  maxTurnUs: Number.MAX_SAFE_INTEGER,
  queue: true,
};

/**
 * The decisions of one governor with limits of all kinds, on a clock given with each call: pauses, changes of the limits, and
 * states that are forgotten as a store forgets them. (A {@link Desk} knows rates alone.)
 */
export class Office {
  readonly woken: string[] = [];
  limits: Limits;
  version = 1;
  changedUs = 0;
  closedUs = 0;
  readonly #shelf: Shelf;

  constructor(limits: LimitsOptions | Limits, shelf = new Shelf()) {
    this.limits = Array.isArray(limits) ? (limits as Limits) : parseLimits(limits);
    this.#shelf = shelf;
  }

  /** By default: now or not at all, no slot, no place in a queue. */
  ask(atUs: number, { cost = 1, keys, holder = '', ...terms }: Request = {}): Verdict {
    const demands = this.demands(cost, keys);
    return acquire(
      this.#shelf,
      demands,
      { holder },
      { ...NOW_OR_NOT, ...terms },
      this.at(atUs),
      this.#wakeUp,
    );
  }

  allows(atUs: number, request?: Request): boolean {
    return this.ask(atUs, request).granted;
  }

  atMost(atUs: number, most: number, { keys, priority = 1 }: Request = {}): number {
    return atMost(this.#shelf, this.demands(1, keys), most, priority, this.at(atUs));
  }

  force(atUs: number, { cost = 1, keys, holder = '' }: Request = {}): Receipt | null {
    return force(this.#shelf, this.demands(cost, keys), holder, this.at(atUs));
  }

  cancel(atUs: number, receipt: Receipt): boolean {
    return cancel(this.#shelf, this.#inForce(receipt), this.at(atUs));
  }

  settle(atUs: number, receipt: Receipt, actual: Cost): void {
    const known = this.#inForce(receipt);
    const demands = known.demands.map(({ demand }) => demand);
    settle(this.#shelf, known, actualOf(demands, actual), this.at(atUs));
  }

  release(atUs: number, slot: HeldSlot): boolean {
    return release(this.#shelf, this.#slotInForce(slot), this.at(atUs), this.#wakeUp);
  }

  renew(atUs: number, slot: HeldSlot): boolean {
    return renew(this.#shelf, this.#slotInForce(slot), this.at(atUs));
  }

  leave(atUs: number, { cost = 1, keys, holder = '' }: Request): void {
    leave(this.#shelf, this.demands(cost, keys), holder, this.at(atUs), this.#wakeUp);
  }

  pause(atUs: number, untilUs: number, keys?: Keys): void {
    if (keys === undefined) this.closedUs = Math.max(this.closedUs, ZERO_US + untilUs);
    else pauseUntil(this.#shelf, keyedDemandsOf(this.limits, keys), ZERO_US + untilUs, this.at(atUs));
  }

  /** @returns whether there was a pause of the whole governor to end; then what is promised further ahead is recalled. */
  resume(atUs: number, keys?: Keys): boolean {
    if (keys !== undefined) resume(this.#shelf, keyedDemandsOf(this.limits, keys), this.at(atUs));
    else if (this.closedUs > ZERO_US + atUs) {
      this.closedUs = ZERO_US + atUs;
      this.version += 1;
      this.changedUs = ZERO_US + atUs;
      return true;
    }
    return false;
  }

  change(limits: LimitsOptions | Limits, atUs: number): void {
    this.limits = Array.isArray(limits) ? (limits as Limits) : parseLimits(limits);
    this.version += 1;
    this.changedUs = ZERO_US + atUs;
  }

  demands(cost: Cost, keys?: Keys): Demand[] {
    return demandsOf(this.limits, cost, keys);
  }

  at(atUs: number): Moment {
    const { closedUs, version, changedUs } = this;
    return { nowUs: ZERO_US + atUs, coldAtUs: 0, closedUs, version, changedUs };
  }

  /** The buckets of a request, as they look to it. */
  views(atUs: number, { cost = 1, keys, holder = '', priority = 1 }: Request = {}) {
    const asker: Asker = { holder, priority };
    return viewsOf(this.#shelf, this.demands(cost, keys), asker, this.at(atUs));
  }

  /** What is stored under a demand's name. */
  stored(demand: Pick<Demand, 'kind' | 'bucket'>): State | undefined {
    return this.#shelf.get(stateName(demand));
  }

  get names(): string[] {
    return [...this.#shelf.kept.keys()];
  }

  /** Forgets the states that say nothing more than none. */
  forget(atUs: number): void {
    for (const [name, { restUs }] of this.#shelf.kept) {
      if (restUs < ZERO_US + atUs) this.#shelf.kept.delete(name);
    }
  }

  /** One that goes its own way from here. */
  copy(): Office {
    const copy = new Office(this.limits, this.#shelf.copy());
    copy.version = this.version;
    copy.changedUs = this.changedUs;
    copy.closedUs = this.closedUs;
    return copy;
  }

  // The limits may have been changed since: a bucket is only ever seen in the terms of those in force.
  #inForce(receipt: Receipt): Receipt {
    const demands = receipt.demands.flatMap((charged) => {
      const limit = this.#limitOf(charged.demand);
      return limit === undefined ? [] : [{ ...charged, demand: { ...charged.demand, limit } as Demand }];
    });
    return { ...receipt, demands };
  }

  #slotInForce(slot: HeldSlot): HeldSlot {
    const limit = (this.#limitOf(slot.demand) ?? slot.demand.limit) as ConcurrencyLimit;
    return { ...slot, demand: { ...slot.demand, limit } };
  }

  #limitOf({ limit: { name, kind } }: Demand): Limit | undefined {
    return this.limits.find((limit) => limit.name === name && limit.kind === kind);
  }

  readonly #wakeUp = (holder: string): void => {
    this.woken.push(holder);
  };
}

class Shelf implements Buckets {
  constructor(readonly kept = new Map<string, { readonly state: State; readonly restUs: number }>()) {}

  get(name: string): State | undefined {
    return this.kept.get(name)?.state;
  }

  set(name: string, state: State, restUs: number): void {
    this.kept.set(name, { state, restUs });
  }

  // A state is replaced when it changes, but for the registry of keys.
  copy(): Shelf {
    const own = [...this.kept].map(([name, { state, restUs }]) => {
      const kept = 'until' in state ? { until: new Map(state.until) } : state;
      return [name, { state: kept, restUs }] as const;
    });
    return new Shelf(new Map(own));
  }
}

/** Its slots, as their holder gives them back. */
export const slotsOf = ({ holder, demands }: Receipt): HeldSlot[] =>
  demands.flatMap(({ demand, fence }) => (demand.kind === 'concurrency' ? [{ demand, holder, fence }] : []));
