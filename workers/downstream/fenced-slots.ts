/** What happened to one held call; times are on the caller's clock. */
export interface Slot {
  readonly fence: number;
  /** When newer fences had taken all slots while this call was still held; null: never. */
  exposedUs: number | null;
}

/**
 * The slots of a protected resource, which it can judge by fencing numbers alone.
 *
 * Fencing numbers grow with each grant, and no more than `cap` grants are good at once. So while more than `cap` calls
 * are held, the `cap` newest fences have the slots, and the others outlived theirs: they are exposed. The resource needs
 * neither a clock nor the governor.
 */
export class FencedSlots {
  readonly #cap: number;
  readonly #held = new Set<Slot>();

  constructor(cap: number) {
    this.#cap = cap;
  }

  get held(): number {
    return this.#held.size;
  }

  begin(fence: number, atUs: number): Slot {
    const slot: Slot = { fence, exposedUs: null };
    this.#held.add(slot);
    if (this.#held.size > this.#cap) {
      const oldestFirst = [...this.#held].sort((a, b) => a.fence - b.fence);
      for (const outlived of oldestFirst.slice(0, -this.#cap)) outlived.exposedUs ??= atUs;
    }
    return slot;
  }

  end(slot: Slot): void {
    this.#held.delete(slot);
  }
}
