// Long enough for one quick reply to be among those seen, short enough for clocks not to drift apart meanwhile.
const WINDOW_MS = 5_000;

/**
 * When something happened on the store's clock, as this process's own clock has it.
 *
 * A reply that is handled late (the process was busy) would otherwise shift its start by as much, and what was granted
 * after it would start before it. The offset of the two clocks is the least that a reply has shown of late: each shows
 * the true one and the time the reply took. So a time is never taken for earlier than it was, and for later only by as
 * long as the quickest reply of the last seconds took.
 */
export class StoreClock {
  #leastMs = Number.POSITIVE_INFINITY;
  #leastBeforeMs = Number.POSITIVE_INFINITY;
  #sinceMs = Number.NEGATIVE_INFINITY;

  /**
   * @param storeUs - The store's clock when it decided, in microseconds.
   * @param askedMs - This process's monotonic clock when it asked, in milliseconds.
   * @param repliedMs - The same when it had the reply.
   * @returns the moment of the decision on this process's monotonic clock, in milliseconds.
   */
  localMs(storeUs: number, askedMs: number, repliedMs: number): number {
    const storeMs = storeUs / 1_000;
    const offsetMs = repliedMs - storeMs;
    // Less cannot be: the store decided after it was asked. If less was seen before, its clock has been set back.
    const atLeastMs = askedMs - storeMs;
    if (repliedMs - this.#sinceMs > WINDOW_MS) {
      this.#leastBeforeMs = repliedMs - this.#sinceMs > 2 * WINDOW_MS ? offsetMs : this.#leastMs;
      this.#leastMs = offsetMs;
      this.#sinceMs = repliedMs;
    }
    if (Math.min(this.#leastMs, this.#leastBeforeMs) < atLeastMs) {
      this.#leastMs = offsetMs;
      this.#leastBeforeMs = offsetMs;
    }
    this.#leastMs = Math.min(this.#leastMs, offsetMs);
    return storeMs + Math.min(this.#leastMs, this.#leastBeforeMs);
  }
}
