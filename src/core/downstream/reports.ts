import type { AdaptiveReport } from '../buckets/adaptive.ts';
import type { Clock } from '../clock.ts';
import type { Keys } from '../decide/demands.ts';
import type { Store } from '../ports/store.ts';

/** What became of one call. */
export interface Outcome {
  /** The store's clock when it was granted, in microseconds. */
  readonly grantedUs: number;
  readonly latencyMs: number;
  readonly failed: boolean;
  /** The downstream answered "too many requests". */
  readonly throttled: boolean;
}

type Told = { -readonly [Name in keyof AdaptiveReport]: number } & { readonly keys: Keys | undefined };

// Often enough for a limit to follow within seconds, seldom enough to cost nothing.
const REPORT_MS = 250;

/** Gathers what calls came to, and tells adaptive limits of it a few times a second; of throttled ones at once. */
export class Reports {
  readonly #told = new Map<string, Told>();
  #cancelTimer: (() => void) | undefined;
  #closed = false;

  constructor(
    private readonly store: Pick<Store, 'report'>,
    private readonly clock: Clock,
  ) {}

  add(keys: Keys | undefined, outcome: Outcome): void {
    if (this.#closed) return;
    const name = JSON.stringify(keys ?? null);
    const told = this.#told.get(name) ?? {
      keys,
      startedUs: 0,
      calls: 0,
      throttled: 0,
      failed: 0,
      latencySumUs: 0,
    };
    this.#told.set(name, told);
    // Of throttled calls the one granted last tells whether the limit was cut since; of others the first.
    const isFirst = outcome.throttled ? told.throttled === 0 : told.calls === 0;
    if (isFirst) told.startedUs = outcome.grantedUs;
    else if (outcome.throttled) told.startedUs = Math.max(told.startedUs, outcome.grantedUs);
    else if (told.throttled === 0) told.startedUs = Math.min(told.startedUs, outcome.grantedUs);
    told.calls += 1;
    told.throttled += outcome.throttled ? 1 : 0;
    told.failed += outcome.failed ? 1 : 0;
    told.latencySumUs += Math.round(outcome.latencyMs * 1_000);
    this.#arm(outcome.throttled ? 0 : REPORT_MS);
  }

  /** Forgets what was not told yet: it was advice. */
  close(): void {
    this.#closed = true;
    this.#cancelTimer?.();
    this.#told.clear();
  }

  #arm(delayMs: number): void {
    if (this.#cancelTimer !== undefined && delayMs > 0) return;
    this.#cancelTimer?.();
    this.#cancelTimer = this.clock.timer(delayMs, () => {
      this.#cancelTimer = undefined;
      for (const { keys, ...calls } of this.#told.values()) {
        // A report that is lost costs the limit a moment; the calls it was about are done.
        void this.store
          .report({ cost: 1, keys, holder: '' }, { ...calls, startedUs: Math.round(calls.startedUs) })
          .catch(() => {});
      }
      this.#told.clear();
    });
  }
}
