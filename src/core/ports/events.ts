import type { Keys } from '../decide/demands.ts';
import type { Limits } from '../limits/limit.ts';

/** What a governor tells those who listen, by the event's name. */
export interface GovernorEvents {
  /** The configuration in force is another one, whoever changed it: this process, another one, or code that started. */
  configured: ConfiguredEvent;
  /** Requests with these keys (all, if there are none) are refused until then, by this machine's wall clock. */
  paused: { readonly keys: Keys | undefined; readonly untilMs: number };
  /** They are no longer. */
  resumed: { readonly keys: Keys | undefined };
}

export interface ConfiguredEvent {
  readonly version: number;
  readonly who: string;
  readonly limits: Limits;
}

/**
 * Listeners by event. What one of them throws is not the caller's to handle, and must not vanish either: it is thrown again
 * in a microtask, where the runtime reports it as it does any error that nobody caught.
 */
export class Emitter<Events> {
  readonly #listeners = new Map<keyof Events, Set<(value: never) => void>>();

  /** Calls `listener` at each event of that name. @returns a function that removes it; harmless when called again. */
  on<Name extends keyof Events>(name: Name, listener: (value: Events[Name]) => void): () => void {
    // Of its own, so that a function that was added twice is called twice, and removed once at a time.
    const added = (value: Events[Name]) => listener(value);
    const listeners = this.#listeners.get(name) ?? new Set();
    this.#listeners.set(name, listeners.add(added));
    return () => {
      listeners.delete(added);
      if (listeners.size === 0 && this.#listeners.get(name) === listeners) this.#listeners.delete(name);
    };
  }

  /** Calls those who listen at this moment, in the order in which they came. */
  emit<Name extends keyof Events>(name: Name, value: Events[Name]): void {
    for (const listener of [...(this.#listeners.get(name) ?? [])]) {
      try {
        (listener as (value: Events[Name]) => void)(value);
      } catch (error) {
        queueMicrotask(() => {
          throw error;
        });
      }
    }
  }

  /** How many listen to it. */
  count(name: keyof Events): number {
    return this.#listeners.get(name)?.size ?? 0;
  }

  /** Removes all listeners. */
  clear(): void {
    this.#listeners.clear();
  }
}
