import {
  type Configuration,
  type ConfigurationChange,
  changesInWords,
  fillingUs,
  MAX_HISTORY,
  overlaid,
} from '../../core/limits/configuration.ts';
import type { Limits } from '../../core/limits/limit.ts';
import { Emitter } from '../../core/ports/events.ts';
import type { StoreMessage } from '../../core/ports/messages.ts';
import type { StoreConfig } from '../../core/ports/store.ts';

/** The configuration of a memory store: what code proposes, and what an operator of this process set over it. */
export class MemoryConfig {
  #current: Configuration;
  #history: readonly ConfigurationChange[] = [];
  #coldAtUs: number;
  #changedUs = 0;
  readonly messages = new Emitter<{ message: StoreMessage }>();

  constructor(
    { limits, coldStart, revision = 0, instance = 'unnamed' }: StoreConfig,
    /** The store's clock, by which buckets go. */
    private readonly nowUs: () => number,
    /** The wall clock, by which people read the history. */
    private readonly wallUs: () => number,
  ) {
    this.#current = Object.freeze({
      version: 1,
      revision,
      limits,
      code: limits,
      operator: [],
      who: instance,
    });
    this.#coldAtUs = coldStart === 'empty' ? nowUs() : 0;
  }

  /** The limits in force. */
  get limits(): Limits {
    return this.#current.limits;
  }

  /** When all buckets without state were empty; 0: they are full. */
  get coldAtUs(): number {
    return this.#coldAtUs;
  }

  /** When the limits came to their version. */
  get changedUs(): number {
    return this.#changedUs;
  }

  get configuration() {
    return { ...this.#current, history: this.#history };
  }

  configure(limits: Limits, who: string): Configuration {
    return this.#operate(overlaid(this.#current.operator, limits), who);
  }

  reset(who: string): Configuration {
    return this.#operate([], who);
  }

  /** A new version under which all is as before: grants that were promised ahead are recalled. */
  recall(): void {
    this.#current = Object.freeze({ ...this.#current, version: this.#current.version + 1 });
    this.#changedUs = this.nowUs();
  }

  #operate(operator: Limits, who: string): Configuration {
    const before = this.#current;
    const what = changesInWords('operator', before.operator, operator);
    if (what.length === 0) return before;
    // Slower limits must not find buckets empty again that have filled under these.
    if (this.#coldAtUs + fillingUs(before.limits) <= this.nowUs()) this.#coldAtUs = 0;
    const version = before.version + 1;
    const limits = overlaid(before.code, operator);
    this.#current = Object.freeze({ ...before, version, limits, operator, who });
    this.#changedUs = this.nowUs();
    this.#history = [{ version, atUs: this.wallUs(), who, what }, ...this.#history].slice(0, MAX_HISTORY);
    this.messages.emit('message', { kind: 'configured', version, who, limits });
    return this.#current;
  }
}
