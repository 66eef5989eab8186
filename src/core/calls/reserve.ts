import type { Refusal } from '../answers.ts';
import { wholeNumber } from '../checks.ts';
import type { Clock } from '../clock.ts';
import type { Cost } from '../decide/demands.ts';
import { InvalidOptionError } from '../errors.ts';
import { Emitter, type GovernorEvents } from '../ports/events.ts';
import type { StoreMessage } from '../ports/messages.ts';
import type { Store } from '../ports/store.ts';
import { ReservationHandle, type Standing } from './grant.ts';
import { LeaseKeeper } from './lease-keeper.ts';
import { type AskOptions, checkedRequest, holderOf, type RequestOptions, termsOf } from './options.ts';
import { SlotQueue } from './slot-queue.ts';
import { Pauses, Recall } from './standing.ts';
import { StoreClock } from './store-clock.ts';

/** What reserving needs of the governor that it is for. */
export interface ReservingParts {
  readonly store: Store;
  readonly clock: Clock;
  readonly graceMs: number;
  /** Who this process is: unique among those that share the store. */
  readonly instance: string;
  /** Throws once the governor is closed. */
  readonly assertOpen: () => void;
}

/**
 * Asks the store for grants, and knows whether those that were made ahead still stand: it hears of changes, pauses and slots that
 * came free, whichever process made them.
 */
export class Reserving {
  readonly events = new Emitter<GovernorEvents>();
  /** Told when reservations were recalled. */
  readonly recalls = new Emitter<{ recalled: undefined }>();
  readonly slotQueue = new SlotQueue();
  readonly #storeClock: StoreClock;
  readonly #pauses: Pauses;
  readonly #keeper: LeaseKeeper;
  readonly #recall: Recall;
  #holders = 0;
  #unsubscribe: (() => void) | undefined;

  constructor(readonly parts: ReservingParts) {
    const { store, clock, graceMs } = parts;
    this.#storeClock = new StoreClock(graceMs);
    this.#pauses = new Pauses(clock);
    this.#keeper = new LeaseKeeper(store, clock);
    this.#recall = new Recall(store, clock, () => this.recalls.emit('recalled', undefined));
  }

  async reserve(cost: Cost, options: AskOptions): Promise<ReservationHandle | Refusal> {
    const { keys } = options;
    const holder = holderOf(options.holder) ?? this.nextHolder();
    const terms = termsOf(options);
    const { store, clock } = this.parts;
    const askedMs = clock.monoMs();
    this.parts.assertOpen();
    const verdict = await store.acquire({ cost, keys, holder }, terms);
    if (!verdict.granted) {
      const { limit, by, reason, waitUs, hasTurn } = verdict;
      // From now on it matters what others do.
      if (terms.queue || reason === 'paused') this.listen();
      const retryAfterMs = Math.ceil(waitUs / 1_000);
      return { allowed: false, limit: limit.name, keyed: by !== null, reason, retryAfterMs, hasTurn };
    }
    const { waitUs, receipt } = verdict;
    const repliedMs = clock.monoMs();
    const decidedMs = this.#storeClock.localMs(receipt.startUs - waitUs, askedMs, repliedMs);
    this.#recall.confirm(receipt.version, askedMs);
    const waitMs = waitUs / 1_000;
    const startsAtMs = (decidedMs ?? repliedMs) + waitMs;
    const standing: Standing = {
      stands: () =>
        this.#recall.stands(receipt.version, waitMs, startsAtMs) &&
        (waitMs === 0 || !this.#pauses.isPaused(keys, askedMs)),
      watch: () => this.#recall.watch(waitMs),
    };
    const handle = new ReservationHandle(store, this.#keeper, standing, receipt, waitUs, askedMs, startsAtMs);
    if (waitUs > 0) this.listen();
    if (decidedMs === undefined && options.maxWaitMs !== 0) {
      // Granted, but nobody knows how long ago: as good as missed. The next reply is vouched for by this one.
      await handle.cancel();
      return this.reserve(cost, options);
    }
    return handle;
  }

  /** As many whole tokens as there are, up to `most`. */
  async atMost(most: number, options: RequestOptions): Promise<number> {
    this.parts.assertOpen();
    const { keys, priority } = checkedRequest(options);
    wholeNumber('most', most, 1, Number.MAX_SAFE_INTEGER);
    const limits = await this.parts.store.limits();
    if (limits.some(({ kind }) => kind === 'concurrency')) {
      const names = limits.map(({ name }) => name);
      throw new InvalidOptionError('limits', 'no concurrency limit, for allowAtMost', names);
    }
    return this.parts.store.atMost({ cost: 1, keys, holder: '' }, most, priority);
  }

  /** Charges whatever the limits hold. */
  async force(cost: Cost, options: RequestOptions): Promise<ReservationHandle> {
    this.parts.assertOpen();
    const { keys, holder = this.nextHolder() } = checkedRequest(options);
    const askedMs = this.parts.clock.monoMs();
    const receipt = await this.parts.store.force({ cost, keys, holder });
    if (receipt === null) {
      throw new InvalidOptionError('cost', 'no more than what the limits can owe and still be exact', cost);
    }
    const standing: Standing = { stands: () => true, watch: () => () => {} };
    return new ReservationHandle(this.parts.store, this.#keeper, standing, receipt, 0, askedMs, askedMs);
  }

  /** Hears from the store what others do; from the first time on that it matters. */
  listen(): void {
    this.#unsubscribe ??= this.parts.store.subscribe((message) => this.#heard(message));
  }

  #heard(message: StoreMessage): void {
    if (message.kind === 'wake') this.slotQueue.wake(message.holder);
    else if (message.kind === 'missed') this.slotQueue.wakeAll();
    else if (message.kind === 'configured') {
      const { version, who, limits } = message;
      this.#recall.confirm(version, this.parts.clock.monoMs());
      this.events.emit('configured', { version, who, limits });
    } else if (message.kind === 'paused') {
      const { keys, forUs } = message;
      this.#pauses.begun(keys, forUs / 1_000);
      this.events.emit('paused', { keys, untilMs: this.parts.clock.wallMs() + forUs / 1_000 });
    } else {
      if (message.version !== undefined) this.#recall.confirm(message.version, this.parts.clock.monoMs());
      this.#pauses.ended(message.keys);
      // What was promised to others stands; calls that wait for the end of this pause look.
      if (message.keys === undefined) this.recalls.emit('recalled', undefined);
      this.slotQueue.wakeAll();
      this.events.emit('resumed', { keys: message.keys });
    }
  }

  nextHolder(): string {
    return `${this.parts.instance}/${++this.#holders}`;
  }

  close(): void {
    this.#unsubscribe?.();
    this.events.clear();
    this.#keeper.close();
    this.#recall.close();
  }
}
