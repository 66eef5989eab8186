// Long enough for one quick reply to be among those seen, short enough for clocks not to drift apart meanwhile.
const WINDOW_MS = 5_000;
// Milliseconds since the epoch have some thousandths of rounding as doubles; the store's stamps are whole microseconds.
const ROUNDING_MS = 1e-3;

/**
 * When something happened on the store's clock, as this process's own clock has it.
 *
 * A reply that is handled late (the process was busy) would otherwise shift its start by as much, and what was granted
 * after it would start before it. The offset of the two clocks is the least that a recent reply has shown: each shows
 * the true one and the time the reply took. So a time is never taken for earlier than it was, and for later only by as
 * long as the quickest reply of the last seconds took.
 */
export class StoreClock {
  #leastMs = Number.POSITIVE_INFINITY;
  #leastBeforeMs = Number.POSITIVE_INFINITY;
  #sinceMs = Number.NEGATIVE_INFINITY;
  /** When the first of the replies was read that the offset rests on. */
  #firstMs = Number.POSITIVE_INFINITY;

  /** @param trustMs - The longest a reply may have taken to be believed without another that vouches for it. */
  constructor(private readonly trustMs: number) {}

  /**
   * @param storeUs - The store's clock when it decided, in microseconds.
   * @param askedMs - This process's monotonic clock when it asked, in milliseconds.
   * @param repliedMs - The same when it had the reply.
   * @returns the moment of the decision on this process's monotonic clock, in milliseconds; undefined if it can't be told:
   *   the reply took long, and none that was read before it was asked for says when the store decided.
   */
  localMs(storeUs: number, askedMs: number, repliedMs: number): number | undefined {
    const storeMs = storeUs / 1_000;
    const offsetMs = repliedMs - storeMs;
    const agedMs = repliedMs - this.#sinceMs;
    if (agedMs > WINDOW_MS) {
      this.#leastBeforeMs = this.#leastMs;
      this.#leastMs = offsetMs;
      this.#sinceMs = repliedMs;
    }
    // Less cannot be: the store decided after it was asked. If less was seen before, its clock has been set back.
    const isSetBack = Math.min(this.#leastMs, this.#leastBeforeMs) < askedMs - storeMs - ROUNDING_MS;
    if (isSetBack || agedMs > 2 * WINDOW_MS) {
      this.#leastMs = offsetMs;
      this.#leastBeforeMs = offsetMs;
      this.#sinceMs = repliedMs;
      this.#firstMs = repliedMs;
    }
    this.#leastMs = Math.min(this.#leastMs, offsetMs);
    if (repliedMs - askedMs > this.trustMs && askedMs < this.#firstMs) return undefined;
    return storeMs + Math.min(this.#leastMs, this.#leastBeforeMs);
  }
}
