import type { Reservation } from '../answers.ts';
import { actualOf, type Cost } from '../decide/demands.ts';
import { type HeldSlot, isAdaptive } from '../decide/give-back.ts';
import type { Receipt } from '../decide/verdict.ts';
import type { Store } from '../ports/store.ts';
import type { LeaseKeeper } from './lease-keeper.ts';

/** Knows whether a grant may still be used. */
export interface Standing {
  stands(): boolean;
  /** Keeps itself informed, until the function that is returned is called. */
  watch(): () => void;
}

/** A grant in the hands of its holder, that may have been made ahead: its slots are kept until they are given back. */
export class ReservationHandle implements Reservation {
  readonly allowed = true;
  readonly startsInMs: number;
  waitedMs = 0;
  readonly #slots: readonly HeldSlot[];
  readonly #stopKeeping: (() => void)[];
  #controller: AbortController | undefined;
  /** As it was settled last. */
  #receipt: Receipt;
  #released: Promise<boolean> | undefined;
  #cancelled: Promise<boolean> | undefined;
  #settling: Promise<void> = Promise.resolve();

  /**
   * @param askedMonoMs - When it was asked for, by this process's clock.
   * @param startsAtMonoMs - When it may start, by the same.
   */
  constructor(
    private readonly store: Store,
    keeper: LeaseKeeper,
    private readonly standing: Standing,
    private readonly made: Receipt,
    waitUs: number,
    askedMonoMs: number,
    readonly startsAtMonoMs: number,
  ) {
    this.startsInMs = waitUs / 1_000;
    this.#receipt = made;
    this.#slots = slotsOf(made);
    const lost = () =>
      this.#lost.abort(new Error('the slot was lost: its lease lapsed before it was renewed'));
    this.#stopKeeping = this.#slots.map((slot) => keeper.keep(slot, askedMonoMs, lost));
  }

  get fence(): number | null {
    return this.#slots[0]?.fence ?? null;
  }

  get signal(): AbortSignal {
    return this.#lost.signal;
  }

  // Made when it is first needed: few grants are asked for it.
  get #lost(): AbortController {
    this.#controller ??= new AbortController();
    return this.#controller;
  }

  settle(actual: Cost): Promise<void> {
    // One after the other, each against what the last one left.
    this.#settling = this.#settling.catch(() => {}).then(() => this.#settle(actual));
    return this.#settling;
  }

  async #settle(actual: Cost): Promise<void> {
    const { charges } = this.#receipt;
    const demands = charges.map(({ demand }) => demand);
    const tokens = actualOf(demands, actual);
    await this.store.settle(this.#receipt, actual);
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
    const held = await Promise.all(this.#slots.map((slot) => this.store.release(slot).catch(() => false)));
    return held.every(Boolean);
  }

  /** Whether an adaptive limit learns from what becomes of it. */
  get isWatched(): boolean {
    return this.made.charges.some(({ demand }) => isAdaptive(demand));
  }

  /** The store's clock when it was granted, in microseconds. */
  get grantedUs(): number {
    return this.made.startUs - this.startsInMs * 1_000;
  }

  stands(): boolean {
    return this.standing.stands();
  }

  /** While it is waited for. */
  watch(): () => void {
    return this.standing.watch();
  }

  cancel(): Promise<boolean> {
    this.#cancelled ??= this.#cancel();
    return this.#cancelled;
  }

  async #cancel(): Promise<boolean> {
    const given = this.made.ahead ? this.store.cancel(this.made) : Promise.resolve(false);
    void this.release();
    return given;
  }
}

function slotsOf({ holder, charges }: Receipt): HeldSlot[] {
  return charges.flatMap(({ demand, fence }) =>
    demand.kind === 'concurrency' ? [{ demand, holder, fence }] : [],
  );
}
