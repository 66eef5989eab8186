import type { AdaptiveReport } from '../../core/buckets/adaptive.ts';
import { MAX_AHEAD_US } from '../../core/buckets/constants.ts';
import type { Moment } from '../../core/buckets/moment.ts';
import type { Clock } from '../../core/clock.ts';
import { acquire } from '../../core/decide/acquire.ts';
import type { Terms } from '../../core/decide/ask.ts';
import { atMost } from '../../core/decide/at-most.ts';
import { type Cost, demandsOf, type Keys, keyedDemandsOf } from '../../core/decide/demands.ts';
import { force } from '../../core/decide/force.ts';
import {
  cancel,
  type HeldSlot,
  leave,
  release,
  renew,
  report,
  settle,
  settledUnder,
  slotUnder,
} from '../../core/decide/give-back.ts';
import { pauseUntil, resume } from '../../core/decide/pause.ts';
import { peek } from '../../core/decide/peek.ts';
import type { Receipt, Verdict } from '../../core/decide/verdict.ts';
import { GovernorClosedError } from '../../core/errors.ts';
import type { Configuration } from '../../core/limits/configuration.ts';
import type { Limits } from '../../core/limits/limit.ts';
import type { StoreMessage } from '../../core/ports/messages.ts';
import type { Request, Store, StoreConfig } from '../../core/ports/store.ts';
import { Buckets } from './buckets.ts';
import { MemoryConfig } from './memory-config.ts';
import { MemoryDeferrals } from './memory-deferrals.ts';

// Idle buckets are looked for a few at a time, so that no call pays for a long tail of keys; more than a call can add.
const SWEPT_PER_DEMAND = 4;

/**
 * The buckets of a governor in this process's memory: for one process, for tests, and as the model of the Redis store.
 * Its clock is the governor's.
 */
export class MemoryStore implements Store {
  readonly deferrals = new MemoryDeferrals(() => this.#now().nowUs);
  readonly #buckets = new Buckets();
  readonly #config: MemoryConfig;
  #closed = false;
  // Later, as a message would come: the decision that wakes is made to its end first.
  readonly #wakeUp = (holder: string): void => {
    queueMicrotask(() => this.#config.messages.emit('message', { kind: 'wake', holder }));
  };

  constructor(
    private readonly config: StoreConfig,
    private readonly clock: Pick<Clock, 'monoMs' | 'wallMs'>,
  ) {
    this.#config = new MemoryConfig(
      config,
      () => this.#nowUs(),
      () => Math.floor(clock.wallMs() * 1_000),
    );
  }

  async acquire(request: Request, terms: Terms): Promise<Verdict> {
    const { demands, at } = this.#met(request);
    return acquire(this.#buckets, demands, { ...request, ...terms }, at, this.#wakeUp);
  }

  async atMost(request: Request, most: number, priority: Terms['priority']): Promise<number> {
    const { demands, at } = this.#met(request);
    return atMost(this.#buckets, demands, most, priority, at);
  }

  async force(request: Request): Promise<Receipt | null> {
    const { demands, at } = this.#met(request);
    return force(this.#buckets, demands, request.holder, at);
  }

  async cancel(receipt: Receipt): Promise<boolean> {
    return cancel(this.#buckets, receipt, this.#now());
  }

  async settle(receipt: Receipt, actual: Cost): Promise<void> {
    const now = this.#now();
    const settled = settledUnder(this.#config.limits, receipt, actual);
    settle(this.#buckets, settled.receipt, settled.actual, now);
  }

  async release(slot: HeldSlot): Promise<boolean> {
    const now = this.#now();
    const held = slotUnder(this.#config.limits, slot);
    return held !== undefined && release(this.#buckets, held, now, this.#wakeUp);
  }

  async renew(slot: HeldSlot): Promise<number> {
    const now = this.#now();
    const held = slotUnder(this.#config.limits, slot);
    // Without the limit there is nothing to exceed, and no work to end.
    if (held === undefined) return slot.demand.limit.leaseUs;
    return renew(this.#buckets, held, now) ? held.demand.limit.leaseUs : 0;
  }

  async leave(request: Request): Promise<void> {
    const { demands, at } = this.#met(request);
    leave(this.#buckets, demands, request.holder, at, this.#wakeUp);
  }

  async peek(request: Request, priority: Terms['priority']) {
    const demands = this.#demands(request);
    const sights = peek(this.#buckets, demands, priority, this.#now());
    return demands.map((demand, index) => ({ demand, sight: sights[index]! }));
  }

  async pause(keys: Keys | undefined, forUs: number): Promise<void> {
    const at = this.#now();
    const untilUs = at.nowUs + Math.min(forUs, MAX_AHEAD_US);
    if (keys === undefined) {
      if (untilUs <= (at.pause?.untilUs ?? 0)) return;
      this.#config.pauseUntil(untilUs);
    } else pauseUntil(this.#buckets, keyedDemandsOf(this.#config.limits, keys), untilUs, at);
    this.#config.messages.emit('message', { kind: 'paused', keys, forUs });
  }

  async resume(keys: Keys | undefined): Promise<void> {
    const at = this.#now();
    if (keys !== undefined) resume(this.#buckets, keyedDemandsOf(this.#config.limits, keys), at);
    else {
      if ((at.pause?.untilUs ?? 0) <= at.nowUs) return;
      this.#config.pauseUntil(at.nowUs);
      this.#config.recall();
    }
    const { version } = this.#config.configuration;
    this.#config.messages.emit('message', { kind: 'resumed', keys, version });
  }

  async report(request: Request, calls: AdaptiveReport): Promise<void> {
    const { demands, at } = this.#met(request);
    report(this.#buckets, demands, calls, at, this.#wakeUp);
  }

  async limits(): Promise<Limits> {
    this.#assertOpen();
    return this.#config.limits;
  }

  async configure(change: { readonly limits: Limits }, who: string): Promise<Configuration> {
    this.#assertOpen();
    return this.#config.configure(change.limits, who);
  }

  async reset(who: string): Promise<Configuration> {
    this.#assertOpen();
    return this.#config.reset(who);
  }

  async configuration() {
    this.#assertOpen();
    return this.#config.configuration;
  }

  subscribe(listener: (message: StoreMessage) => void): () => void {
    return this.#closed ? () => {} : this.#config.messages.on('message', listener);
  }

  async close(): Promise<void> {
    this.#config.messages.clear();
    this.#closed = true;
    this.#buckets.clear();
    this.deferrals.clear();
  }

  /** The states as they are kept; for tests that compare stores, and of expiry. */
  get states(): Buckets {
    return this.#buckets;
  }

  #met(request: Request) {
    const demands = this.#demands(request);
    const at = this.#now();
    this.#buckets.sweep(at.nowUs, demands.length * SWEPT_PER_DEMAND);
    return { demands, at };
  }

  #demands(request: Request) {
    this.#assertOpen();
    return demandsOf(this.#config.limits, request.cost, request.keys);
  }

  #now(): Moment {
    this.#assertOpen();
    return this.#config.moment();
  }

  // Never 0, which stands for "no time" in a bucket.
  #nowUs(): number {
    return Math.floor(this.clock.monoMs() * 1_000) + 1;
  }

  #assertOpen(): void {
    if (this.#closed) throw new GovernorClosedError(this.config.name);
  }
}
