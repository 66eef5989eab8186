import type { Moment } from '../../../src/core/buckets/moment.ts';
import type { Bucket } from '../../../src/core/buckets/rate/debt.ts';
import { acquire, force, peek } from '../../../src/core/decide/acquire.ts';
import type { Buckets } from '../../../src/core/decide/buckets.ts';
import { type Cost, demandsOf, type Keys } from '../../../src/core/decide/demands.ts';
import { cancel } from '../../../src/core/decide/give-back.ts';
import type { Receipt, Terms, Verdict } from '../../../src/core/decide/verdict.ts';
import {
  type LimitOptions,
  type Limits,
  type LimitsOptions,
  parseLimits,
} from '../../../src/core/limits/limit.ts';
import type { RateLimit } from '../../../src/core/limits/rate.ts';

/** A second, in microseconds. Times in these tests are microseconds from the desk's own zero unless their name says else. */
export const S = 1_000_000;

/** So that no time of a test is 0 on the store's clock, where 0 stands for "none". */
export const ZERO_US = 1_700_000_000_000_000;

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
  closedUs: 0,
  version,
  changedUs,
});

export const NOBODY = { holder: '' };
export const noWake = (): void => {};

export interface Asking extends Partial<Terms> {
  readonly cost?: Cost;
  readonly keys?: Keys;
}

/** The decisions of one governor on a clock given with each call, and nothing else: no store, no waiting. */
export class Desk {
  /** All limits of these tests are rates. */
  readonly buckets = new Map<string, Bucket>() as Map<string, Bucket> & Buckets;
  readonly limits: Limits;
  readonly #coldAtUs: number;

  constructor(limits: LimitsOptions, coldAtUs?: number) {
    this.limits = parseLimits(limits);
    this.#coldAtUs = coldAtUs === undefined ? 0 : ZERO_US + coldAtUs;
  }

  /** By default: now or not at all, and no slot. */
  ask(atUs: number, { cost = 1, keys, ...terms }: Asking = {}): Verdict {
    const all = {
      maxWaitUs: 0,
      maxTurnUs: 0,
      turns: 'keyed',
      returning: false,
      patienceUs: 1_000_000,
      priority: 1,
      queue: false,
    } as const;
    return acquire(
      this.buckets,
      demandsOf(this.limits, cost, keys),
      NOBODY,
      { ...all, ...terms },
      this.#at(atUs),
      noWake,
    );
  }

  /** Whether it is granted at once. */
  allows(atUs: number, asking?: Asking): boolean {
    return this.ask(atUs, asking).granted;
  }

  /** Reserves, however long the wait. @throws if it is refused. */
  reserve(atUs: number, asking: Asking = {}): { startUs: number; receipt: Receipt } {
    const verdict = this.ask(atUs, { maxWaitUs: Number.MAX_SAFE_INTEGER, ...asking });
    if (!verdict.granted) throw new Error(`refused by ${verdict.limit.name}: ${verdict.reason}`);
    return { startUs: verdict.receipt.startUs - ZERO_US, receipt: verdict.receipt };
  }

  /** Asks for a slot in the line. @returns when it is. @throws if there was none. */
  defer(atUs: number, asking: Asking = {}): number {
    const verdict = this.ask(atUs, { maxTurnUs: Number.MAX_SAFE_INTEGER, ...asking });
    if (verdict.granted || !verdict.hasTurn) throw new Error('got no slot');
    return atUs + verdict.waitUs;
  }

  cancel(atUs: number, receipt: Receipt): boolean {
    return cancel(this.buckets, receipt, this.#at(atUs));
  }

  force(atUs: number, { cost = 1, keys }: Asking = {}): boolean {
    return force(this.buckets, demandsOf(this.limits, cost, keys), '', this.#at(atUs)) !== null;
  }

  peek(atUs: number, { cost = 1, keys }: Asking = {}) {
    return peek(this.buckets, demandsOf(this.limits, cost, keys), 1, this.#at(atUs));
  }

  /** When the line of a bucket ends; undefined if there is none. */
  lineEnd(bucket: string): number | undefined {
    const lineUs = this.buckets.get(bucket)?.lineUs ?? 0;
    return lineUs === 0 ? undefined : lineUs - ZERO_US;
  }

  #at(atUs: number): Moment {
    return momentAt(ZERO_US + atUs, this.#coldAtUs);
  }
}
