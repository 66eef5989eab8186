import type { Clock } from '../../core/clock.ts';
import {
  acquire,
  type Buckets,
  cancel,
  force,
  peek,
  type Receipt,
  type Terms,
  type Verdict,
} from '../../core/decide.ts';
import { GovernorClosedError } from '../../core/errors.ts';
import { type Bucket, fullAtUs } from '../../core/gcra.ts';
import type { GovernorConfig } from '../../core/governor-options.ts';
import type { Limits } from '../../core/limit.ts';
import { LINE_GRACE_US } from '../../core/line.ts';
import { legsOf } from '../../core/request.ts';
import type { Request, Store } from '../../core/store.ts';

// Idle buckets are looked for a few at a time, so that no call pays for a long tail of keys; more than a call can add.
const SWEPT_PER_LEG = 4;

/**
 * The buckets of a governor in this process's memory: for one process, for tests, and as the model of the Redis store.
 * Its clock is the governor's.
 */
export class MemoryStore implements Store {
  readonly #buckets = new Map<string, Bucket>();
  readonly #view: Buckets = this.#buckets;
  readonly #coldAtUs: number;
  #sweep = this.#buckets.entries();
  #closed = false;

  constructor(
    private readonly config: Pick<GovernorConfig, 'name' | 'limits' | 'coldStart'>,
    private readonly clock: Pick<Clock, 'monoMs'>,
  ) {
    this.#coldAtUs = config.coldStart === 'empty' ? this.#nowUs() : 0;
  }

  async acquire(request: Request, terms: Terms): Promise<Verdict> {
    const legs = this.#legs(request);
    const nowUs = this.#nowUs();
    this.#sweepIdle(nowUs, legs.length * SWEPT_PER_LEG);
    return acquire(this.#view, legs, terms, nowUs, this.#coldAtUs);
  }

  async force(request: Request): Promise<boolean> {
    const legs = this.#legs(request);
    const nowUs = this.#nowUs();
    this.#sweepIdle(nowUs, legs.length * SWEPT_PER_LEG);
    return force(this.#view, legs, nowUs, this.#coldAtUs);
  }

  async cancel(receipt: Receipt): Promise<boolean> {
    this.#assertOpen();
    return cancel(this.#view, receipt, this.#nowUs());
  }

  async peek(request: Request) {
    const legs = this.#legs(request);
    const sights = peek(this.#view, legs, this.#nowUs(), this.#coldAtUs);
    return legs.map((leg, index) => ({ leg, sight: sights[index]! }));
  }

  async limits(): Promise<Limits> {
    this.#assertOpen();
    return this.config.limits;
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#buckets.clear();
  }

  /** The state of a bucket, as a copy; for tests that compare stores. */
  bucket(name: string): Bucket | undefined {
    const bucket = this.#buckets.get(name);
    return bucket === undefined ? undefined : { ...bucket };
  }

  /** How many buckets have state; for tests of expiry. */
  get size(): number {
    return this.#buckets.size;
  }

  #legs(request: Request) {
    this.#assertOpen();
    return legsOf(this.config.limits, request.cost, request.keys);
  }

  // Never 0, which stands for "no time" in a bucket.
  #nowUs(): number {
    return Math.floor(this.clock.monoMs() * 1_000) + 1;
  }

  #sweepIdle(nowUs: number, count: number): void {
    for (let swept = 0; swept < count; swept++) {
      const { value, done } = this.#sweep.next();
      if (done) {
        this.#sweep = this.#buckets.entries();
        return;
      }
      const [name, bucket] = value;
      if (nowUs - fullAtUs(bucket) > LINE_GRACE_US) this.#buckets.delete(name);
    }
  }

  #assertOpen(): void {
    if (this.#closed) throw new GovernorClosedError(this.config.name);
  }
}
