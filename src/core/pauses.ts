import type { Clock } from './clock.ts';
import type { Keys } from './decide/demands.ts';

/** A pause may be ended early, and the message that says so be lost: whoever waits for its end looks again after this long. */
export const PAUSED_LOOK_MS = 4_000;

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
