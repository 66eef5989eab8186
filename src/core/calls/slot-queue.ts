/** A call that waits for a slot: it may be woken while it sleeps, or while it asks. */
export type Place = ReturnType<SlotQueue['enter']>;

/** The calls of this process that wait for slots, by holder. */
export class SlotQueue {
  readonly #places = new Map<string, Set<() => void>>();

  /** Told that there is room for this holder. Those that are not here have gone, or are another process's. */
  wake(holder: string): void {
    for (const wake of this.#places.get(holder) ?? []) wake();
  }

  /** Messages may have been lost: all of them look. */
  wakeAll(): void {
    for (const holder of [...this.#places.keys()]) this.wake(holder);
  }

  enter(holder: string) {
    let isWoken = false;
    let end: (() => void) | undefined;
    const wake = () => {
      isWoken = true;
      end?.();
    };
    const places = this.#places.get(holder) ?? new Set();
    this.#places.set(holder, places.add(wake));
    return {
      holder,
      /** Whether the store keeps a place for it, which is to be given up if it leaves. */
      isTaken: false,
      /** It asks from now on: a wake meanwhile makes it ask once more. */
      asks: () => {
        isWoken = false;
        end = undefined;
      },
      /** Whether it was woken since it last asked. */
      woken: () => isWoken,
      /** Takes what ends its sleep when it is woken. */
      onWake: (ending: () => void) => {
        end = ending;
      },
      leave: () => {
        places.delete(wake);
        if (places.size === 0) this.#places.delete(holder);
      },
    };
  }
}
