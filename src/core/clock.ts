/**
 * Time as the core sees it: one process's own, for waiting only. Decisions use the store's clock, never this one.
 */
export interface Clock {
  /** Milliseconds on a clock that never steps (monotonic); the origin means nothing. Fractions are welcome. */
  monoMs(): number;
  /** Milliseconds since the epoch by this machine's wall clock; only for others' APIs that want one (BullMQ). */
  wallMs(): number;
  /**
   * Calls `callback` once, not before `delayMs` have passed on `monoMs()`.
   * @returns a function that cancels the call; harmless after it.
   */
  timer(delayMs: number, callback: () => void): () => void;
}
