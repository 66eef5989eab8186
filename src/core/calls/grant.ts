import type { Grant, Reservation } from '../answers.ts';
import { actualOf, type Cost } from '../decide/demands.ts';
import { type HeldSlot, isAdaptive } from '../decide/give-back.ts';
import type { Receipt } from '../decide/verdict.ts';
import type { Store } from '../ports/store.ts';
import type { LeaseKeeper } from './lease-keeper.ts';

/** A grant in the hands of its holder: its slots are kept until they are given back. */
class GrantHandle implements Grant {
  readonly #store: Store;
  readonly #slots: readonly HeldSlot[];
  readonly #stopKeeping: (() => void)[];
  #lost: AbortController | undefined;
  #isLost = false;
  #receipt: Receipt;
  #released: Promise<boolean> | undefined;
  #settling: Promise<void> = Promise.resolve();
  waitedMs = 0;

  /** @param askedMonoMs - When it was asked for, by this process's clock. */
  constructor(store: Store, keeper: LeaseKeeper, receipt: Receipt, askedMonoMs: number) {
    this.#store = store;
    this.#receipt = receipt;
    this.#slots = slotsOf(receipt);
    this.#stopKeeping = this.#slots.map((slot) => keeper.keep(slot, askedMonoMs, () => this.#lose()));
  }

  get fence(): number | null {
    return this.#slots[0]?.fence ?? null;
  }

  get signal(): AbortSignal {
    if (this.#lost === undefined) {
      this.#lost = new AbortController();
      if (this.#isLost) this.#abort();
    }
    return this.#lost.signal;
  }

  settle(actual: Cost): Promise<void> {
    // One after the other, each against what the last one left.
    const settling = this.#settling.catch(() => {}).then(() => this.#settle(actual));
    this.#settling = settling;
    return settling;
  }

  async #settle(actual: Cost): Promise<void> {
    const { charges } = this.#receipt;
    const tokens = actualOf(
      charges.map(({ demand }) => demand),
      actual,
    );
    await this.#store.settle(this.#receipt, actual);
    const settled = charges.map((charged, index) => ({
      ...charged,
      demand: { ...charged.demand, cost: tokens[index]! },
    }));
    this.#receipt = { ...this.#receipt, charges: settled };
  }

  release(): Promise<boolean> {
    this.#released ??= this.#release();
    return this.#released;
  }

  async #release(): Promise<boolean> {
    for (const stop of this.#stopKeeping) stop();
    // A slot that cannot be given back lapses: that must not fail work that is done.
    const held = await Promise.all(this.#slots.map((slot) => this.#store.release(slot).catch(() => false)));
    return held.every(Boolean);
  }

  #lose(): void {
    this.#isLost = true;
    if (this.#lost !== undefined) this.#abort();
  }

  #abort(): void {
    this.#lost!.abort(new Error('the slot was lost: its lease lapsed before it was renewed'));
  }
}

/** Knows whether a grant that was made under a version of the limits may still be used. */
export interface Standing {
  stands(version: number): boolean;
  /** Keeps itself informed, until the function that is returned is called. */
  watch(): () => void;
}

/** A grant that may have been made ahead. */
export class ReservationHandle extends GrantHandle implements Reservation {
  readonly allowed = true;
  readonly startsInMs: number;
  readonly startsAtMonoMs: number;
  readonly #reserving: Store;
  readonly #standing: Standing;
  readonly #made: Receipt;
  #cancelled: Promise<boolean> | undefined;

  /** @param startsAtMonoMs - By this process's clock. */
  constructor(
    store: Store,
    keeper: LeaseKeeper,
    standing: Standing,
    receipt: Receipt,
    waitUs: number,
    askedMonoMs: number,
    startsAtMonoMs: number,
  ) {
    super(store, keeper, receipt, askedMonoMs);
    this.#reserving = store;
    this.#standing = standing;
    this.#made = receipt;
    this.startsInMs = waitUs / 1_000;
    this.startsAtMonoMs = startsAtMonoMs;
  }

  /** Whether anybody learns from what becomes of it. */
  get isWatched(): boolean {
    return this.#made.charges.some(({ demand }) => isAdaptive(demand));
  }

  /** The store's clock when it was granted, in microseconds. */
  get grantedUs(): number {
    return this.#made.startUs - this.startsInMs * 1_000;
  }

  stands(): boolean {
    return this.#standing.stands(this.#made.version);
  }

  /** While it is waited for. */
  watch(): () => void {
    return this.#standing.watch();
  }

  cancel(): Promise<boolean> {
    this.#cancelled ??= this.#cancel();
    return this.#cancelled;
  }

  async #cancel(): Promise<boolean> {
    const given = this.#made.ahead ? this.#reserving.cancel(this.#made) : Promise.resolve(false);
    void this.release();
    return given;
  }
}

function slotsOf({ holder, charges }: Receipt): HeldSlot[] {
  return charges.flatMap(({ demand, fence }) =>
    demand.kind === 'concurrency' ? [{ demand, holder, fence }] : [],
  );
}
