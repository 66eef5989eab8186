import type { AdaptiveReport } from '../../../core/buckets/adaptive.ts';
import type { Terms } from '../../../core/decide/ask.ts';
import type { Demand } from '../../../core/decide/demands.ts';
import type { HeldSlot } from '../../../core/decide/give-back.ts';
import type { Receipt } from '../../../core/decide/verdict.ts';
import type { Limit } from '../../../core/limits/limit.ts';
import type { InForce } from '../config/shared-config.ts';
import { bucketKeys, configKey, eventsChannel, registryKey, wakePrefix } from '../keys.ts';
import { limitNumbers } from './limit-numbers.ts';
import { KIND, OPERATION } from './protocol.ts';

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

  acquire(demands: readonly Demand[], holder: string, terms: Terms): void {
    if (this.#terms === undefined || !sameTerms(terms, this.#terms)) this.#setTerms(terms);
    this.#setHolder(demands, holder);
    this.#operations.push(OPERATION.acquire, demands.length);
    this.#costs(demands);
  }

  force(demands: readonly Demand[], holder: string): void {
    this.#setHolder(demands, holder);
    this.#terms = undefined; // a share is looked at by its own
    this.#operations.push(OPERATION.force, demands.length);
    this.#costs(demands);
  }

  /** Of a receipt without shares, which cannot be given back. */
  cancel({ startUs, charges }: Receipt): void {
    this.#operations.push(OPERATION.cancel, startUs, charges.length);
    for (const [index, { demand, grantedAfter, pushedUnits }] of charges.entries())
      this.#operations.push(
        this.#bucket(
          charges.map(({ demand }) => demand),
          index,
        ),
        demand.cost,
        grantedAfter,
        pushedUnits,
      );
  }

  peek(demands: readonly Demand[], priority: Terms['priority']): void {
    this.#forgetAsker();
    this.#operations.push(OPERATION.peek, priority, demands.length);
    this.#costs(demands);
  }

  atMost(demands: readonly Demand[], most: number, priority: Terms['priority']): void {
    this.#forgetAsker();
    this.#operations.push(OPERATION.atMost, most, priority, demands.length, ...this.#numbers(demands));
  }

  settle({ startUs, charges }: Receipt, actual: readonly number[], givesBack: boolean): void {
    const corrected = charges.flatMap(({ demand }, index) =>
      demand.kind === 'rate' || demand.kind === 'window' ? [{ demand, actual: actual[index]! }] : [],
    );
    this.#operations.push(OPERATION.settle, startUs, givesBack ? 1 : 0, corrected.length);
    const own = corrected.map(({ demand }) => demand);
    for (const [index, { demand, actual }] of corrected.entries()) {
      this.#operations.push(this.#bucket(own, index), demand.cost, actual);
    }
  }

  release({ demand, holder, fence }: HeldSlot): void {
    this.#operations.push(OPERATION.release, this.#bucket([demand], 0), this.#word(holder), fence);
  }

  renew({ demand, holder, fence }: HeldSlot): void {
    this.#operations.push(OPERATION.renew, this.#bucket([demand], 0), this.#word(holder), fence, demand.cost);
  }

  leave(demands: readonly Demand[], holder: string): void {
    const slots = demands.filter(({ kind }) => kind === 'concurrency');
    this.#operations.push(OPERATION.leave, this.#word(holder), slots.length, ...this.#numbers(slots));
  }

  /** @param text - What other processes are told. */
  pause(demands: readonly Demand[], forUs: number, text: string): void {
    this.#operations.push(
      OPERATION.pause,
      finite(forUs),
      this.#word(text),
      demands.length,
      ...this.#numbers(demands),
    );
  }

  resume(demands: readonly Demand[], text: string): void {
    this.#operations.push(OPERATION.resume, this.#word(text), demands.length, ...this.#numbers(demands));
  }

  report(demands: readonly Demand[], calls: AdaptiveReport): void {
    const { startedUs, throttled, failed, latencySumUs } = calls;
    this.#operations.push(OPERATION.report, startedUs, calls.calls, throttled, failed, latencySumUs);
    this.#operations.push(demands.length, ...this.#numbers(demands));
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
      OPERATION.setTerms,
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
  #setHolder(demands: readonly Demand[], holder: string): void {
    if (holder === this.#holder || !demands.some(({ kind }) => kind === 'concurrency')) return;
    this.#holder = holder;
    this.#operations.push(OPERATION.setHolder, this.#word(holder));
  }

  // What looks at the buckets of nobody in particular leaves other terms behind.
  #forgetAsker(): void {
    this.#terms = undefined;
    this.#holder = '';
  }

  #costs(demands: readonly Demand[]): void {
    for (const [index, demand] of demands.entries())
      this.#operations.push(this.#bucket(demands, index), demand.cost);
  }

  #numbers(demands: readonly Demand[]): number[] {
    return demands.map((_, index) => this.#bucket(demands, index));
  }

  #word(word: string): number {
    let number = this.#wordNumbers.get(word);
    if (number === undefined) {
      number = this.#words.push(word);
      this.#wordNumbers.set(word, number);
    }
    return number;
  }

  #bucket(demands: readonly Demand[], index: number): number {
    const demand = demands[index]!;
    const name = `${demand.kind} ${demand.bucket}`;
    const known = this.#bucketNumbers.get(name);
    if (known !== undefined) return known;
    const [first, second] = this.#besides(demand);
    const number = this.#bucketNumbers.size + 1;
    this.#bucketNumbers.set(name, number);
    const { by } = demand;
    // Limits by the same attribute have the same number, since a request for them may reserve.
    const attribute = by === null ? 0 : 1 + this.config.limits.findIndex((limit) => attributeIs(limit, by));
    const key = this.keys.length + 1;
    this.keys.push(...bucketKeys(this.governor, demand));
    this.#buckets.push(KIND[demand.kind], this.#limit(demand.limit), attribute, key, first, second);
    return number;
  }

  /** What a bucket is seen beside: a share its limit's own, one of many keys the one that they may share. */
  #besides(demand: Demand): [number, number] {
    if (demand.kind === 'share') return [this.#bucket([wholeOf(demand)], 0), demand.weight];
    if (
      demand.kind === 'concurrency' ||
      demand.limit.maxKeys === null ||
      demand.bucket === demand.limit.name
    ) {
      return [NO_LEG, 0];
    }
    return [
      this.#bucket([{ ...demand, bucket: demand.limit.name } as Demand], 0),
      this.#registry(demand.limit.name),
    ];
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

const wholeOf = ({ limit, cost }: Demand & { readonly kind: 'share' }): Demand => ({
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
