import { RECALL_US } from '../buckets/constants.ts';
import type { Clock } from '../clock.ts';
import type { Keys } from '../decide/demands.ts';
import type { Store } from '../ports/store.ts';

const RECALL_MS = RECALL_US / 1_000;
// Two answers may be late before a reservation has to be given up.
const CONFIRM_MS = 300;

/**
 * Knows whether grants that were made ahead still stand. A change of the limits recalls those that start more than a second
 * after it: the store counts them no longer. So a holder may start only if it knows of no change, and if the limits were
 * still the same within the last second before its start. A message tells of a change at once; while somebody holds a
 * reservation for longer than that second, the store is asked too, since a message may be lost.
 */
export class Recall {
  #confirmed: { readonly version: number; readonly askedMs: number } | undefined;
  #holders = 0;
  #asking = false;
  #cancelTimer: (() => void) | undefined;

  /** @param recalled - Called when a version is seen that is another than the one before. */
  constructor(
    private readonly store: Pick<Store, 'confirm'>,
    private readonly clock: Clock,
    private readonly recalled: () => void,
  ) {}

  /** The store has answered a call that was made under this version. */
  confirm(version: number, askedMs: number): void {
    const before = this.#confirmed;
    if (before === undefined || version >= before.version) this.#confirmed = { version, askedMs };
    if (before !== undefined && version > before.version) this.recalled();
  }

  /** Whether a grant that was made under `version`, `waitMs` before its start, still stands at that. */
  stands(version: number, waitMs: number, startsAtMs: number): boolean {
    if (this.#confirmed !== undefined && this.#confirmed.version > version) return waitMs <= RECALL_MS;
    if (waitMs <= RECALL_MS || this.store.confirm === undefined) return true;
    return this.#confirmed !== undefined && startsAtMs - this.#confirmed.askedMs <= RECALL_MS;
  }

  /** Asks the store now and then, until the function that is returned is called. */
  watch(waitMs: number): () => void {
    if (waitMs <= RECALL_MS || this.store.confirm === undefined) return () => {};
    this.#holders += 1;
    this.#arm();
    let ended = false;
    return () => {
      if (ended) return;
      ended = true;
      this.#holders -= 1;
      if (this.#holders === 0) this.close();
    };
  }

  close(): void {
    this.#cancelTimer?.();
    this.#cancelTimer = undefined;
  }

  #arm(): void {
    if (this.#asking) return;
    this.#cancelTimer ??= this.clock.timer(CONFIRM_MS, () => void this.#ask());
  }

  async #ask(): Promise<void> {
    const askedMs = this.clock.monoMs();
    this.#asking = true;
    await this.store.confirm?.().then(
      (version) => this.confirm(version, askedMs),
      () => {}, // no answer confirms nothing; the holders find out
    );
    this.#asking = false;
    this.#cancelTimer = undefined;
    if (this.#holders > 0) this.#arm();
  }
}

interface Pause {
  /** When it was heard of, on this process's clock. */
  readonly heardMs: number;
  readonly untilMs: number;
}

/**
 * The pauses this process has heard of: a grant that was made ahead is not used while one lasts. Only what was asked for before
 * counts: later grants were decided by a store that knew of the pause, and of its end, of which this process may not hear.
 */
export class Pauses {
  #ofAll: Pause | undefined;
  readonly #ofKey = new Map<string, Pause>();

  constructor(private readonly clock: Pick<Clock, 'monoMs'>) {}

  begun(keys: Keys | undefined, forMs: number): void {
    const heardMs = this.clock.monoMs();
    const longest = (before: Pause | undefined): Pause => ({
      heardMs,
      untilMs: Math.max(heardMs + forMs, before?.untilMs ?? 0),
    });
    if (keys === undefined) this.#ofAll = longest(this.#ofAll);
    for (const [name, { untilMs }] of this.#ofKey) if (untilMs <= heardMs) this.#ofKey.delete(name);
    for (const name of namesOf(keys)) this.#ofKey.set(name, longest(this.#ofKey.get(name)));
  }

  ended(keys: Keys | undefined): void {
    if (keys === undefined) this.#ofAll = undefined;
    for (const name of namesOf(keys)) this.#ofKey.delete(name);
  }

  /** @param askedMs - When the grant was asked for that would be used now. */
  isPaused(keys: Keys | undefined, askedMs: number): boolean {
    const nowMs = this.clock.monoMs();
    const holds = (pause: Pause | undefined): boolean =>
      pause !== undefined && askedMs <= pause.heardMs && nowMs < pause.untilMs;
    return holds(this.#ofAll) || namesOf(keys).some((name) => holds(this.#ofKey.get(name)));
  }
}

const namesOf = (keys: Keys | undefined): string[] =>
  Object.entries(keys ?? {}).map(([attribute, value]) => `${attribute}:${value ?? ''}`);
