import type { Receipt, Terms } from '../../core/decide.ts';
import type { Leg } from '../../core/request.ts';
import { bucketKey, configKey } from './keys.ts';
import type { InForce } from './shared-config.ts';

// As lua/decide.lua numbers them.
const TERMS = 1;
const ACQUIRE = 2;
const FORCE = 3;
const CANCEL = 4;
const PEEK = 5;

/** The keys and the argument of one run of lua/decide.lua, whose header describes the layout. */
export class DecideCall {
  readonly keys: string[];
  readonly #limits: number[] = [];
  readonly #operations: number[] = [];
  readonly #buckets = new Map<string, number>();
  #terms: Terms | undefined;

  constructor(
    private readonly governor: string,
    readonly config: InForce,
  ) {
    this.keys = [configKey(governor)];
  }

  acquire(legs: readonly Leg[], terms: Terms): void {
    if (this.#terms === undefined || !sameTerms(terms, this.#terms)) this.#setTerms(terms);
    this.#operations.push(ACQUIRE, legs.length);
    this.#legs(legs);
  }

  force(legs: readonly Leg[]): void {
    this.#operations.push(FORCE, legs.length);
    this.#legs(legs);
  }

  cancel({ startUs, legs }: Receipt): void {
    this.#operations.push(CANCEL, startUs, legs.length);
    for (const { leg, grantedAfter, pushedUnits } of legs)
      this.#operations.push(this.#bucket(leg), leg.cost, grantedAfter, pushedUnits);
  }

  peek(legs: readonly Leg[]): void {
    this.#operations.push(PEEK, legs.length);
    this.#legs(legs);
  }

  argument(): string {
    const { version, created } = this.config;
    const head = [version, created, this.#buckets.size];
    return `[${head.concat(this.#limits, this.#operations).join(',')}]`;
  }

  #setTerms(terms: Terms): void {
    this.#terms = terms;
    this.#operations.push(
      TERMS,
      finite(terms.maxWaitUs),
      finite(terms.maxSlotUs),
      terms.slots === 'all' ? 1 : 0,
      terms.returning ? 1 : 0,
      finite(terms.patienceUs),
    );
  }

  #legs(legs: readonly Leg[]): void {
    for (const leg of legs) this.#operations.push(this.#bucket(leg), leg.cost);
  }

  #bucket({ limit, bucket }: Leg): number {
    const known = this.#buckets.get(bucket);
    if (known !== undefined) return known;
    const number = this.#buckets.size + 1;
    this.#buckets.set(bucket, number);
    this.keys.push(bucketKey(this.governor, bucket));
    // Limits by the same attribute have the same number, since a request for them may reserve.
    const { by } = limit;
    const attribute = by === null ? 0 : 1 + this.config.limits.findIndex((other) => other.by === by);
    this.#limits.push(limit.rate, limit.periodUs, limit.burst, attribute);
    return number;
  }
}

// JSON has no Infinity, and no wait is that long.
const finite = (us: number): number => Math.min(us, Number.MAX_SAFE_INTEGER);

function sameTerms(a: Terms, b: Terms): boolean {
  return (
    a.maxWaitUs === b.maxWaitUs &&
    a.maxSlotUs === b.maxSlotUs &&
    a.slots === b.slots &&
    a.returning === b.returning &&
    a.patienceUs === b.patienceUs
  );
}
