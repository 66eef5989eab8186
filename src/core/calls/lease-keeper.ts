import type { Clock } from '../clock.ts';
import type { HeldSlot } from '../decide/give-back.ts';
import type { Store } from '../ports/store.ts';

// Renewed so often that two renewals may fail before a lease lapses.
const RENEWALS_PER_LEASE = 3;
/** A renewal that failed is tried again after this share of the lease. */
const RETRIES_PER_LEASE = 10;

/**
 * Keeps the slots of running work: renews each lease while it is held, and tells its holder when it was lost.
 *
 * How long a lease is surely held is counted from when its renewal was sent, not from when the answer came: the store may
 * have set it that early. A process that was frozen past that asks once more; only the store knows.
 */
export class LeaseKeeper {
  readonly #stops = new Set<() => void>();
  #closed = false;

  constructor(
    private readonly store: Pick<Store, 'renew'>,
    private readonly clock: Clock,
  ) {}

  /** How many slots are kept. */
  get count(): number {
    return this.#stops.size;
  }

  /**
   * @param askedMonoMs - When the grant was asked for.
   * @param lost - Called once, when the slot is no longer held.
   * @returns a function that ends the keeping; the slot then lapses unless it is released.
   */
  keep(slot: HeldSlot, askedMonoMs: number, lost: () => void): () => void {
    if (this.#closed) return () => {};
    let leaseMs = slot.demand.limit.leaseUs / 1_000;
    let heldUntilMs = askedMonoMs + leaseMs;
    let cancelTimer: () => void = () => {};
    const stop = () => {
      cancelTimer();
      this.#stops.delete(stop);
    };
    const arm = (delayMs: number) => {
      if (this.#stops.has(stop)) cancelTimer = this.clock.timer(delayMs, () => void renew());
    };
    const renew = async () => {
      const sentMs = this.clock.monoMs();
      const heldUs = await this.store
        .renew(slot)
        .catch(() => (this.clock.monoMs() < heldUntilMs ? undefined : 0));
      if (!this.#stops.has(stop)) return;
      if (heldUs === 0) {
        stop();
        lost();
      } else if (heldUs !== undefined) {
        // The limit may have been given another length: the next renewal must come within it.
        leaseMs = heldUs / 1_000;
        heldUntilMs = sentMs + leaseMs;
        arm(leaseMs / RENEWALS_PER_LEASE);
      } else arm(leaseMs / RETRIES_PER_LEASE);
    };
    this.#stops.add(stop);
    arm(Math.max(0, askedMonoMs + leaseMs / RENEWALS_PER_LEASE - this.clock.monoMs()));
    return stop;
  }

  /** Ends all keeping, also of what is granted later. */
  close(): void {
    this.#closed = true;
    for (const stop of [...this.#stops]) stop();
  }
}
