import { MAX_AHEAD_US } from '../../../src/core/buckets/constants.ts';
import type { Buckets, State } from '../../../src/core/buckets/kinds.ts';
import type { Moment } from '../../../src/core/buckets/moment.ts';
import { acquire } from '../../../src/core/decide/acquire.ts';
import { atMost } from '../../../src/core/decide/at-most.ts';
import { demandsOf, keyedDemandsOf } from '../../../src/core/decide/demands.ts';
import { force } from '../../../src/core/decide/force.ts';
import * as giveBack from '../../../src/core/decide/give-back.ts';
import { opening, type StoreTimes } from '../../../src/core/decide/opening.ts';
import { pauseUntil, resume } from '../../../src/core/decide/pause.ts';
import { peek } from '../../../src/core/decide/peek.ts';
import type { Receipt, Wake } from '../../../src/core/decide/verdict.ts';
import type { Limits } from '../../../src/core/limits/limit.ts';
import type { Step } from './kinds-histories.ts';

/** States by name, and from when each says nothing more. */
export class Kept implements Buckets {
  readonly states = new Map<string, State>();
  readonly restsUs = new Map<string, number>();

  get(name: string): State | undefined {
    return this.states.get(name);
  }

  set(name: string, state: State, restUs: number): void {
    this.states.set(name, state);
    this.restsUs.set(name, restUs);
  }

  /** Forgets what is at rest, as expiry does, and tells what that was. */
  expire(nowUs: number): string[] {
    const over = [...this.restsUs].filter(([, restUs]) => restUs <= nowUs).map(([name]) => name);
    for (const name of over) {
      this.states.delete(name);
      this.restsUs.delete(name);
    }
    return over;
  }

  /** To look at: a registry that is full is tidied by who looks. */
  copy(): Kept {
    const copy = new Kept();
    for (const [name, state] of this.states) {
      copy.set(name, 'until' in state ? { until: new Map(state.until) } : state, 0);
    }
    return copy;
  }
}

/** What src/core makes of a history: the oracle for the Lua scripts. */
export class Model {
  readonly buckets = new Kept();
  #times: StoreTimes;
  version = 1;

  constructor(
    public limits: Limits,
    coldAtUs: number,
  ) {
    this.#times = { coldAtUs, changedUs: 0, pausedUntilUs: 0, pausedAtUs: 0 };
  }

  moment(nowUs: number): Moment {
    return opening(this.#times, this.version, nowUs).moment;
  }

  /** A call comes in. Times that a wrong clock wrote are put right with the clock. */
  begin(nowUs: number): void {
    this.#times = opening(this.#times, this.version, nowUs).times;
  }

  change(limits: Limits, nowUs: number): void {
    this.limits = limits;
    this.version += 1;
    this.#times = { ...this.#times, changedUs: nowUs };
  }

  /** @param forUs - 0: it is resumed. */
  pauseAll(forUs: number, nowUs: number): void {
    this.begin(nowUs);
    const untilUs = forUs === 0 ? nowUs : nowUs + Math.min(forUs, MAX_AHEAD_US);
    const { pausedUntilUs } = this.#times;
    if (forUs > 0 ? untilUs <= pausedUntilUs : pausedUntilUs <= nowUs) return;
    this.#times = { ...this.#times, pausedUntilUs: untilUs, pausedAtUs: nowUs };
    if (forUs > 0) return;
    this.version += 1;
    this.#times = { ...this.#times, changedUs: nowUs };
  }

  /** @param receipt - Of the grant that the step is about. */
  play(step: Step, receipt: Receipt | undefined, instance: string, nowUs: number, wake: Wake): unknown {
    const at = this.moment(nowUs);
    const { buckets, limits } = this;
    const met = (request: {
      readonly cost: Parameters<typeof demandsOf>[1];
      readonly keys: Parameters<typeof demandsOf>[2];
    }) => demandsOf(limits, request.cost, request.keys);
    switch (step.do) {
      case 'acquire':
        return acquire(buckets, met(step.request), { ...step.request, ...step.terms, instance }, at, wake);
      case 'force':
        return force(buckets, met(step.request), step.request.holder, at);
      case 'peek':
        return peek(buckets, met(step.request), step.priority, at);
      case 'atMost':
        return atMost(buckets, met(step.request), step.most, step.priority, at);
      case 'leave':
        return giveBack.leave(buckets, met(step.request), step.request.holder, at, wake);
      case 'report':
        return giveBack.report(buckets, met(step.request), step.calls, at, wake);
      case 'pause':
        return pauseUntil(
          buckets,
          keyedDemandsOf(limits, step.keys),
          nowUs + Math.min(step.forUs, MAX_AHEAD_US),
          at,
        );
      case 'resume':
        return resume(buckets, keyedDemandsOf(limits, step.keys), at);
      case 'cancel':
        return giveBack.cancel(buckets, receipt!, at);
      case 'settle': {
        const settled = giveBack.settledUnder(limits, receipt!, step.actual);
        return giveBack.settle(buckets, settled.receipt, settled.actual, at);
      }
      default: {
        const slot = giveBack.slotUnder(limits, slotOf(receipt!, step.stale)!);
        // Without its limit there is nothing to exceed: a slot is as good as held.
        if (slot === undefined) return step.do === 'renew';
        return step.do === 'renew'
          ? giveBack.renew(buckets, slot, at)
          : giveBack.release(buckets, slot, at, wake);
      }
    }
  }
}

/** The first slot of a grant, if it has any. @param stale - With the number of an earlier lease. */
export function slotOf(receipt: Receipt, stale: boolean): giveBack.HeldSlot | undefined {
  for (const { demand, fence } of receipt.charges) {
    if (demand.kind === 'concurrency')
      return { demand, holder: receipt.holder, fence: stale ? fence - 1 : fence };
  }
  return undefined;
}
