import type { AdaptiveReport } from '../../../core/buckets/adaptive.ts';
import type { Terms } from '../../../core/decide/ask.ts';
import type { Demand } from '../../../core/decide/demands.ts';
import type { HeldSlot } from '../../../core/decide/give-back.ts';
import type { Receipt } from '../../../core/decide/verdict.ts';
import type { Limit } from '../../../core/limits/limit.ts';
import type { InForce } from '../config/shared-config.ts';
import { bucketKeys, configKey, eventsChannel, registryKey, wakePrefix } from '../keys.ts';
import { isCorrectable, isForSlots, limitNumbers } from './kinds.ts';
import { KIND, OPERATION } from './protocol.ts';

/** Where a bucket is seen beside no other. */
const NO_BUCKET = 0;

/** The keys and the arguments of one run of lua/decide.lua, whose header describes what each operation takes. */
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
    this.#operations.push(OPERATION.acquire, demands.length, ...this.#costs(demands));
  }

  force(demands: readonly Demand[], holder: string): void {
    this.#setHolder(demands, holder);
    this.#terms = undefined; // a share is looked at by its own
    this.#operations.push(OPERATION.force, demands.length, ...this.#costs(demands));
  }

  /** @param receipt - Without shares, which cannot be given back. */
  cancel({ startUs, charges }: Receipt): void {
    const charged = charges.flatMap(({ demand, grantedAfter, pushedUnits }) => [
      ...this.#costs([demand]),
      grantedAfter,
      pushedUnits,
    ]);
    this.#operations.push(OPERATION.cancel, startUs, charges.length, ...charged);
  }

  peek(demands: readonly Demand[], priority: Terms['priority']): void {
    this.#forgetAsker();
    this.#operations.push(OPERATION.peek, priority, demands.length, ...this.#costs(demands));
  }

  atMost(demands: readonly Demand[], most: number, priority: Terms['priority']): void {
    this.#forgetAsker();
    this.#operations.push(OPERATION.atMost, most, priority, ...this.#counted(demands));
  }

  settle({ startUs, charges }: Receipt, actual: readonly number[], givesBack: boolean): void {
    const corrected = charges.flatMap(({ demand }, index) =>
      isCorrectable(demand) ? [[...this.#costs([demand]), actual[index]!]] : [],
    );
    this.#operations.push(
      OPERATION.settle,
      startUs,
      givesBack ? 1 : 0,
      corrected.length,
      ...corrected.flat(),
    );
  }

  release({ demand, holder, fence }: HeldSlot): void {
    this.#operations.push(OPERATION.release, this.#bucket(demand), this.#word(holder), fence);
  }

  renew({ demand, holder, fence }: HeldSlot): void {
    this.#operations.push(OPERATION.renew, this.#bucket(demand), this.#word(holder), fence, demand.cost);
  }

  leave(demands: readonly Demand[], holder: string): void {
    const slots = demands.filter(isForSlots);
    this.#operations.push(OPERATION.leave, this.#word(holder), ...this.#counted(slots));
  }

  /** @param text - What other processes are told. */
  pause(demands: readonly Demand[], forUs: number, text: string): void {
    this.#operations.push(OPERATION.pause, finite(forUs), this.#word(text), ...this.#counted(demands));
  }

  resume(demands: readonly Demand[], text: string): void {
    this.#operations.push(OPERATION.resume, this.#word(text), ...this.#counted(demands));
  }

  report(
    demands: readonly Demand[],
    { startedUs, calls, throttled, failed, latencySumUs }: AdaptiveReport,
  ): void {
    const told = [startedUs, calls, throttled, failed, latencySumUs];
    this.#operations.push(OPERATION.report, ...told, ...this.#counted(demands));
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
    if (holder === this.#holder || !demands.some(isForSlots)) return;
    this.#holder = holder;
    this.#operations.push(OPERATION.setHolder, this.#word(holder));
  }

  // An operation that nobody in particular asks for leaves other terms behind.
  #forgetAsker(): void {
    this.#terms = undefined;
    this.#holder = '';
  }

  #costs(demands: readonly Demand[]): number[] {
    const numbers: number[] = [];
    for (const demand of demands) numbers.push(this.#bucket(demand), demand.cost);
    return numbers;
  }

  #counted(demands: readonly Demand[]): number[] {
    return [demands.length, ...demands.map((demand) => this.#bucket(demand))];
  }

  #word(word: string): number {
    let number = this.#wordNumbers.get(word);
    if (number === undefined) {
      number = this.#words.push(word);
      this.#wordNumbers.set(word, number);
    }
    return number;
  }

  #bucket(demand: Demand): number {
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
    const { limit, bucket } = demand;
    if (demand.kind === 'share') return [this.#bucket(demand.parent), demand.weight];
    if (!('maxKeys' in limit) || limit.maxKeys === null || bucket === limit.name) return [NO_BUCKET, 0];
    return [this.#bucket({ ...demand, bucket: limit.name } as Demand), this.#registry(limit.name)];
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

// JSON has no Infinity, and no wait is that long.
const finite = (us: number): number => Math.min(us, Number.MAX_SAFE_INTEGER);

const sameTerms = (a: Terms, b: Terms): boolean =>
  a === b || (Object.keys(a) as (keyof Terms)[]).every((term) => a[term] === b[term]);
