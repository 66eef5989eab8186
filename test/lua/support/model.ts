import {
  acquire,
  cancel,
  force,
  peek,
  type Receipt,
  type Sight,
  type Terms,
  underLimits,
  type Verdict,
} from '../../../src/core/decide.ts';
import { type Bucket, MAX_COLD_AHEAD_US } from '../../../src/core/gcra.ts';
import type { Limits } from '../../../src/core/limit.ts';
import { legsOf } from '../../../src/core/request.ts';
import type { Request } from '../../../src/core/store.ts';

/** What src/core makes of a history: the oracle for the Lua scripts. */
export class Model {
  readonly buckets = new Map<string, Bucket>();
  #limits: Limits;
  #coldAtUs: number;

  constructor(limits: Limits, coldAtUs: number) {
    this.#limits = limits;
    this.#coldAtUs = coldAtUs;
  }

  acquire(request: Request, terms: Terms, nowUs: number): Verdict {
    return acquire(this.buckets, this.#legs(request), terms, nowUs, this.#coldAtUs);
  }

  force(request: Request, nowUs: number): boolean {
    return force(this.buckets, this.#legs(request), nowUs, this.#coldAtUs);
  }

  cancel(receipt: Receipt, nowUs: number): boolean {
    const current = underLimits(receipt, this.#limits);
    return cancel(this.buckets, current, nowUs) && current.legs.length === receipt.legs.length;
  }

  peek(request: Request, nowUs: number): Sight[] {
    return peek(this.buckets, this.#legs(request), nowUs, this.#coldAtUs);
  }

  /** A call comes in. A time that a wrong clock wrote is put right with the clock. */
  begin(nowUs: number): void {
    if (this.#coldAtUs - nowUs > MAX_COLD_AHEAD_US) this.#coldAtUs = nowUs;
  }

  /** A process with other limits starts. Slower limits must not find buckets empty that had filled since a cold start. */
  change(limits: Limits, nowUs: number): void {
    const filledAt = (limit: Limits[number]) =>
      this.#coldAtUs + Math.ceil((limit.burst * limit.periodUs) / limit.rate);
    if (this.#coldAtUs > 0 && this.#limits.every((limit) => filledAt(limit) <= nowUs)) this.#coldAtUs = 0;
    this.#limits = limits;
  }

  #legs(request: Request) {
    return legsOf(this.#limits, request.cost, request.keys);
  }
}
