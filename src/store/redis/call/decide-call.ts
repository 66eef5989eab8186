import type { AdaptiveReport } from '../../../core/buckets/adaptive.ts';
import type { HeldSlot } from '../../../core/decide/give-back.ts';
import type { Leg } from '../../../core/decide/legs.ts';
import type { Receipt, Terms } from '../../../core/decide/verdict.ts';
import type { Limit } from '../../../core/limits/limit.ts';
import type { InForce } from '../config/shared-config.ts';
import { bucketKeys, configKey, eventsChannel, registryKey, wakePrefix } from '../keys.ts';
import { limitNumbers } from './limit-numbers.ts';

// As lua/decide.lua numbers them.
const OPERATION = {
  terms: 1,
  acquire: 2,
  force: 3,
  cancel: 4,
  peek: 5,
  atMost: 6,
  settle: 7,
  release: 8,
  renew: 9,
  leave: 10,
  pause: 11,
  resume: 12,
  report: 13,
  holder: 14,
} as const;
const KINDS = { rate: 1, window: 2, concurrency: 3, share: 4 } as const;
const NO_LEG = 0;

/** The keys and the arguments of one run of lua/decide.lua, whose header describes the layout. */
export class DecideCall {
  readonly keys: string[];
  readonly #limits: number[] = [];
  readonly #buckets: number[] = [];
  readonly #operations: number[] = [];
  readonly #words: string[];
  readonly #limitNumbers = new Map<string, number>();
  readonly #bucketNumbers = new Map<string, number>();
  readonly #registries = new Map<string, number>();
  readonly #wordNumbers = new Map<string, number>();
  #terms: Terms | undefined;
  #holder = '';

  constructor(
    private readonly governor: string,
    readonly config: InForce,
    instance: string,
    countsListeners = true,
  ) {
    this.keys = [configKey(governor)];
    this.#words = [wakePrefix(governor), eventsChannel(governor), instance, countsListeners ? '1' : '0'];
  }

  acquire(legs: readonly Leg[], holder: string, terms: Terms): void {
    if (this.#terms === undefined || !sameTerms(terms, this.#terms)) this.#setTerms(terms);
    this.#setHolder(legs, holder);
    this.#operations.push(OPERATION.acquire, legs.length);
    this.#costs(legs);
  }

  force(legs: readonly Leg[], holder: string): void {
    this.#setHolder(legs, holder);
    this.#terms = undefined; // a share is looked at by its own
    this.#operations.push(OPERATION.force, legs.length);
    this.#costs(legs);
  }

  /** @param legs - Without shares, which cannot be given back. */
  cancel({ startUs, legs }: Receipt): void {
    this.#operations.push(OPERATION.cancel, startUs, legs.length);
    for (const [index, { leg, grantedAfter, pushedUnits }] of legs.entries())
      this.#operations.push(
        this.#bucket(
          legs.map(({ leg }) => leg),
          index,
        ),
        leg.cost,
        grantedAfter,
        pushedUnits,
      );
  }

  peek(legs: readonly Leg[], priority: Terms['priority']): void {
    this.#forgetAsker();
    this.#operations.push(OPERATION.peek, priority, legs.length);
    this.#costs(legs);
  }

  atMost(legs: readonly Leg[], most: number, priority: Terms['priority']): void {
    this.#forgetAsker();
    this.#operations.push(OPERATION.atMost, most, priority, legs.length, ...this.#numbers(legs));
  }

  settle({ startUs, legs }: Receipt, actual: readonly number[], givesBack: boolean): void {
    const corrected = legs.flatMap(({ leg }, index) =>
      leg.kind === 'rate' || leg.kind === 'window' ? [{ leg, actual: actual[index]! }] : [],
    );
    this.#operations.push(OPERATION.settle, startUs, givesBack ? 1 : 0, corrected.length);
    const own = corrected.map(({ leg }) => leg);
    for (const [index, { leg, actual }] of corrected.entries()) {
      this.#operations.push(this.#bucket(own, index), leg.cost, actual);
    }
  }

  release({ leg, holder, fence }: HeldSlot): void {
    this.#operations.push(OPERATION.release, this.#bucket([leg], 0), this.#word(holder), fence);
  }

  renew({ leg, holder, fence }: HeldSlot): void {
    this.#operations.push(OPERATION.renew, this.#bucket([leg], 0), this.#word(holder), fence, leg.cost);
  }

  leave(legs: readonly Leg[], holder: string): void {
    const slots = legs.filter(({ kind }) => kind === 'concurrency');
    this.#operations.push(OPERATION.leave, this.#word(holder), slots.length, ...this.#numbers(slots));
  }

  /** @param text - What other processes are told. */
  pause(legs: readonly Leg[], forUs: number, text: string): void {
    this.#operations.push(
      OPERATION.pause,
      finite(forUs),
      this.#word(text),
      legs.length,
      ...this.#numbers(legs),
    );
  }

  resume(legs: readonly Leg[], text: string): void {
    this.#operations.push(OPERATION.resume, this.#word(text), legs.length, ...this.#numbers(legs));
  }

  report(legs: readonly Leg[], calls: AdaptiveReport): void {
    const { startedUs, throttled, failed, latencySumUs } = calls;
    this.#operations.push(OPERATION.report, startedUs, calls.calls, throttled, failed, latencySumUs);
    this.#operations.push(legs.length, ...this.#numbers(legs));
  }

  arguments(): string[] {
    const { version, created } = this.config;
    const numbers = [version, created, this.#limitNumbers.size].concat(
      this.#limits,
      this.#bucketNumbers.size,
      this.#buckets,
      this.#operations,
    );
    return [`[${numbers.join(',')}]`, JSON.stringify(this.#words)];
  }

  #setTerms(terms: Terms): void {
    this.#terms = terms;
    this.#operations.push(
      OPERATION.terms,
      finite(terms.maxWaitUs),
      finite(terms.maxTurnUs),
      terms.turns === 'all' ? 1 : 0,
      terms.returning ? 1 : 0,
      finite(terms.patienceUs),
      terms.priority,
      terms.queue ? 1 : 0,
    );
  }

  // Only slots have holders: other requests are spared the word.
  #setHolder(legs: readonly Leg[], holder: string): void {
    if (holder === this.#holder || !legs.some(({ kind }) => kind === 'concurrency')) return;
    this.#holder = holder;
    this.#operations.push(OPERATION.holder, this.#word(holder));
  }

  // What looks at the buckets of nobody in particular leaves other terms behind.
  #forgetAsker(): void {
    this.#terms = undefined;
    this.#holder = '';
  }

  #costs(legs: readonly Leg[]): void {
    for (const [index, leg] of legs.entries()) this.#operations.push(this.#bucket(legs, index), leg.cost);
  }

  #numbers(legs: readonly Leg[]): number[] {
    return legs.map((_, index) => this.#bucket(legs, index));
  }

  #word(word: string): number {
    let number = this.#wordNumbers.get(word);
    if (number === undefined) {
      number = this.#words.push(word);
      this.#wordNumbers.set(word, number);
    }
    return number;
  }

  #bucket(legs: readonly Leg[], index: number): number {
    const leg = legs[index]!;
    const name = `${leg.kind} ${leg.bucket}`;
    const known = this.#bucketNumbers.get(name);
    if (known !== undefined) return known;
    const [first, second] = this.#besides(leg);
    const number = this.#bucketNumbers.size + 1;
    this.#bucketNumbers.set(name, number);
    const { by } = leg;
    // Limits by the same attribute have the same number, since a request for them may reserve.
    const attribute = by === null ? 0 : 1 + this.config.limits.findIndex((limit) => attributeIs(limit, by));
    const key = this.keys.length + 1;
    this.keys.push(...bucketKeys(this.governor, leg));
    this.#buckets.push(KINDS[leg.kind], this.#limit(leg.limit), attribute, key, first, second);
    return number;
  }

  /** What a bucket is seen beside: a share its limit's own, one of many keys the one that they may share. */
  #besides(leg: Leg): [number, number] {
    if (leg.kind === 'share') return [this.#bucket([wholeOf(leg)], 0), leg.weight];
    if (leg.kind === 'concurrency' || leg.limit.maxKeys === null || leg.bucket === leg.limit.name) {
      return [NO_LEG, 0];
    }
    return [this.#bucket([{ ...leg, bucket: leg.limit.name } as Leg], 0), this.#registry(leg.limit.name)];
  }

  #registry(limit: string): number {
    let number = this.#registries.get(limit);
    if (number === undefined) {
      number = this.keys.push(registryKey(this.governor, limit));
      this.#registries.set(limit, number);
    }
    return number;
  }

  #limit(limit: Limit): number {
    let number = this.#limitNumbers.get(limit.name);
    if (number === undefined) {
      number = this.#limitNumbers.size + 1;
      this.#limitNumbers.set(limit.name, number);
      this.#limits.push(...limitNumbers(limit));
    }
    return number;
  }
}

const attributeIs = (limit: Limit, by: string): boolean =>
  limit.by === by || (limit.kind === 'rate' && limit.fair?.by === by);

const wholeOf = ({ limit, cost }: Leg & { readonly kind: 'share' }): Leg => ({
  kind: 'rate',
  limit,
  bucket: limit.name,
  by: null,
  cost,
});

// JSON has no Infinity, and no wait is that long.
const finite = (us: number): number => Math.min(us, Number.MAX_SAFE_INTEGER);

function sameTerms(a: Terms, b: Terms): boolean {
  return (
    a.maxWaitUs === b.maxWaitUs &&
    a.maxTurnUs === b.maxTurnUs &&
    a.turns === b.turns &&
    a.returning === b.returning &&
    a.patienceUs === b.patienceUs &&
    a.priority === b.priority &&
    a.queue === b.queue
  );
}
