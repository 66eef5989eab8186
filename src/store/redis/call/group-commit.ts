/**
 * The most calls on the wire. Two, so that the store has the next one at hand while the answers to the last one travel
 * back; more would only cut the same operations into smaller groups.
 */
const MAX_CALLS = 2;

/** The most operations a call carries: some milliseconds of the server's time, which others have to wait for. */
const MAX_OPERATIONS = 1_000;

/** What became of a call: its operations are settled, or they have to be sent again. */
export type Outcome = 'settled' | 'again';

/**
 * Group commit: operations that come up while calls are under way travel together in the next, in order.
 *
 * The first operation of a tick goes out in a microtask, so that all of its tick share a call and none waits for a
 * timer. When a call has to be sent again, so has the one behind it, which was made on the same grounds: no new call
 * leaves until both are back, and then their operations go first, in their old order.
 */
export class GroupCommit<Operation> {
  #queue: Operation[] = [];
  #again: { number: number; operations: readonly Operation[] }[] = [];
  #calls = 0;
  #onWire = 0;
  #scheduled = false;
  readonly #idlers: (() => void)[] = [];

  /** @param send - Makes one call and settles each of its operations, unless it returns `'again'`. Never rejects. */
  constructor(private readonly send: (operations: readonly Operation[]) => Promise<Outcome>) {}

  add(operation: Operation): void {
    this.#queue.push(operation);
    if (this.#scheduled) return;
    this.#scheduled = true;
    queueMicrotask(() => {
      this.#scheduled = false;
      this.#flush();
    });
  }

  /** Resolves when all operations so far are settled. */
  async idle(): Promise<void> {
    if (this.#queue.length === 0 && this.#onWire === 0) return;
    await new Promise<void>((resolve) => this.#idlers.push(resolve));
  }

  #flush(): void {
    while (this.#again.length === 0 && this.#onWire < MAX_CALLS && this.#queue.length > 0) {
      void this.#call(this.#queue.splice(0, MAX_OPERATIONS));
    }
    if (this.#queue.length === 0 && this.#onWire === 0) {
      for (const resolve of this.#idlers.splice(0)) resolve();
    }
  }

  async #call(operations: readonly Operation[]): Promise<void> {
    const number = this.#calls++;
    this.#onWire++;
    const outcome = await this.send(operations);
    this.#onWire--;
    if (outcome === 'again') this.#again.push({ number, operations });
    if (this.#onWire === 0 && this.#again.length > 0) {
      const first = this.#again.sort((a, b) => a.number - b.number).flatMap((call) => call.operations);
      this.#queue = [...first, ...this.#queue];
      this.#again = [];
    }
    this.#flush();
  }
}
