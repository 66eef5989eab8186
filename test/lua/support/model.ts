import type { Buckets } from '../../../src/core/buckets/kinds.ts';
import type { Moment } from '../../../src/core/buckets/moment.ts';
import type { RateState } from '../../../src/core/buckets/rate/index.ts';
import { acquire } from '../../../src/core/decide/acquire.ts';
import type { Terms } from '../../../src/core/decide/ask.ts';
import { demandsOf } from '../../../src/core/decide/demands.ts';
import { force } from '../../../src/core/decide/force.ts';
import { cancel } from '../../../src/core/decide/give-back.ts';
import { opening } from '../../../src/core/decide/opening.ts';
import { type BucketReport, peek } from '../../../src/core/decide/peek.ts';
import type { Receipt, Verdict } from '../../../src/core/decide/verdict.ts';
import { changesInWords, fillingUs } from '../../../src/core/limits/configuration.ts';
import type { Limits } from '../../../src/core/limits/limit.ts';
import type { Request } from '../../../src/core/ports/store.ts';
import { momentAt } from '../../support/world.ts';

/** What src/core makes of a history: the oracle for the Lua scripts. */
export class Model {
  /** All limits of these histories are rates. */
  readonly buckets = new Map<string, RateState>() as Map<string, RateState> & Buckets;
  #limits: Limits;
  #coldAtUs: number;
  #version = 1;
  #changedUs = 0;

  constructor(limits: Limits, coldAtUs: number) {
    this.#limits = limits;
    this.#coldAtUs = coldAtUs;
  }

  acquire(request: Request, terms: Terms, nowUs: number): Verdict {
    return acquire(this.buckets, this.#demands(request), { ...request, ...terms }, this.#at(nowUs), () => {});
  }

  force(request: Request, nowUs: number): Receipt | null {
    return force(this.buckets, this.#demands(request), request.holder, this.#at(nowUs));
  }

  cancel(receipt: Receipt, nowUs: number): boolean {
    return cancel(this.buckets, receipt, this.#at(nowUs));
  }

  peek(request: Request, priority: Terms['priority'], nowUs: number): BucketReport[] {
    return peek(this.buckets, this.#demands(request), priority, this.#at(nowUs));
  }

  /** A call comes in. A time that a wrong clock wrote is put right with the clock. */
  begin(nowUs: number): void {
    const { coldAtUs, changedUs } = opening(
      { coldAtUs: this.#coldAtUs, changedUs: this.#changedUs, pausedUntilUs: 0, pausedAtUs: 0 },
      this.#version,
      nowUs,
    ).times;
    this.#coldAtUs = coldAtUs;
    this.#changedUs = changedUs;
  }

  /** A process with other limits starts. Slower limits must not find buckets empty that had filled since a cold start. */
  change(limits: Limits, nowUs: number): void {
    if (changesInWords('code', this.#limits, limits).length === 0) return;
    if (this.#coldAtUs > 0 && this.#coldAtUs + fillingUs(this.#limits) <= nowUs) this.#coldAtUs = 0;
    this.#limits = limits;
    this.#version += 1;
    this.#changedUs = nowUs;
  }

  #at(nowUs: number): Moment {
    return momentAt(nowUs, this.#coldAtUs, this.#version, this.#changedUs);
  }

  #demands(request: Request) {
    return demandsOf(this.#limits, request.cost, request.keys);
  }
}
