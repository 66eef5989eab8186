// Enough to have a call of each kind under way to Redis, and few enough to be held together once the others are found.
const MOST_LOOKED_AT = 16;

/**
 * The feed: how many jobs a worker fetches, so that hardly any is refused. A job that is refused after it was fetched
 * is expensive; one that was not fetched stays in the queue, in order, with its priority, for nothing.
 *
 * A fetched job is held (it asks, or waits for its reservation), nearby (it waits in process for a turn of its key), or
 * running. What is controlled is `target`, the number of held jobs to aim at; running jobs are counted out, since they
 * have passed the limit, which makes it hold for jobs of a millisecond and of half a minute alike.
 *
 *   open    target ≥ 1. The worker fetches up to running + nearby + target jobs, at most what the user set.
 *           Tokens lie ready and all slots are in use → target grows by half. Held for less than a quarter of
 *           `maxHoldMs` → a little more; for more than half → less in proportion; a refusal → half, and shut. Deferred
 *           until a turn of its key → one more, up to a few: what stands behind it is to be looked at.
 *   shut    target < 1: even one held job waits for too long. The worker fetches nothing. It opens when the wait has
 *           fallen under half of `maxHoldMs` (`reopened`).
 *
 * Pure: no timers, no clock, no BullMQ. gate.ts carries out what it says.
 */
export class Feed {
  /** The number of held jobs aimed at; below 1 the gate is shut. */
  target = 1;
  held = 0;
  nearby = 0;
  running = 0;
  #refused = false;
  readonly #maxHoldMs: number;

  /**
   * @param max - The most jobs at a time: the user's `concurrency`. Without a bound until a worker is attached.
   * @param maxHoldMs - The longest a job may be held.
   */
  constructor(
    public max: number,
    maxHoldMs: number,
  ) {
    this.#maxHoldMs = Math.max(1, maxHoldMs);
  }

  get open(): boolean {
    return this.target >= 1 && !this.#refused;
  }

  /** All jobs of this worker. */
  get inside(): number {
    return this.held + this.nearby + this.running;
  }

  /** How many jobs the worker may have at a time now: 1 to the user's maximum. */
  get concurrency(): number {
    const wanted = this.running + this.nearby + Math.max(1, Math.floor(this.target));
    return Math.max(1, Math.min(this.max, wanted));
  }

  setMax(max: number): void {
    this.max = max;
    this.target = Math.min(this.target, max);
  }

  /** A job was fetched. */
  arrived(): void {
    this.held += 1;
  }

  /**
   * A held job was granted its tokens.
   *
   * @param waitMs - Until it may start.
   * @param nextWaitMs - Until a job like it could start after it, as far as is known.
   */
  granted(waitMs: number, nextWaitMs: number): void {
    const saturated = this.inside >= this.concurrency;
    if (waitMs === 0) {
      if (saturated) this.#grow(Math.max(1, this.target / 2));
      else this.#relax();
      return;
    }
    const part = nextWaitMs / this.#maxHoldMs;
    if (part > 0.5) this.target = Math.max(0, this.target - part);
    else if (part < 0.25 && saturated) this.#grow(0.5);
  }

  /** A held job was refused by a limit that all jobs meet. Several refusals before the gate opens again count once. */
  refused(): void {
    if (!this.#refused) this.target = Math.max(1, this.target / 2);
    this.#refused = true;
  }

  /** A held job was deferred until its turn. */
  deferred(): void {
    if (this.target < MOST_LOOKED_AT) this.#grow(1);
  }

  /** The wait has fallen under half of `maxHoldMs`. */
  reopened(): void {
    this.#refused = false;
    this.target = Math.max(1, this.target);
  }

  /** A held job waits in process for its key's turn: it is not what the governor-wide limit feeds. */
  stepsNearby(): void {
    this.held -= 1;
    this.nearby += 1;
  }

  /** A job that waited for its key's turn asks again. */
  stepsBack(): void {
    this.nearby -= 1;
    this.held += 1;
  }

  /** A held job starts. */
  started(): void {
    this.held -= 1;
    this.running += 1;
  }

  /** A job that ran has ended. */
  ended(): void {
    this.running -= 1;
  }

  /** A held job goes back to its queue, or ends without having run. */
  left(): void {
    this.held -= 1;
  }

  #grow(by: number): void {
    this.target = Math.min(this.max, this.target + by);
  }

  // With slots to spare there is no backlog to size the target by. It falls to a few, so that the backlog after an idle
  // time is not fetched whole; not to one, since a loop with no free slot does not see the next job come.
  #relax(): void {
    const few = Math.min(4, this.max);
    this.target = this.target > few ? Math.max(few, this.target * 0.9) : Math.min(few, this.target + 0.5);
  }
}
