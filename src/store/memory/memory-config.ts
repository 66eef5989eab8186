import { RAMP_US } from '../../core/buckets/constants.ts';
import type { Moment } from '../../core/buckets/moment.ts';
import { longer } from '../../core/buckets/pause.ts';
import { opening, type StoreTimes } from '../../core/decide/opening.ts';
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
  #times: StoreTimes;
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
    this.#times = {
      coldAtUs: coldStart === 'empty' ? nowUs() : 0,
      changedUs: 0,
      pause: null,
      pausedAtUs: 0,
    };
  }

  /** The limits in force. */
  get limits(): Limits {
    return this.#current.limits;
  }

  /** What a decision that is made now knows. */
  moment(): Moment {
    const { moment, times } = opening(this.#times, this.#current.version, this.nowUs());
    this.#times = times;
    return moment;
  }

  pauseUntil(untilUs: number): void {
    const pausedAtUs = this.nowUs();
    const { fromUs } = longer(this.#times.pause, pausedAtUs, untilUs);
    this.#times = { ...this.#times, pause: { fromUs, untilUs }, pausedAtUs };
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
    this.#times = { ...this.#times, changedUs: this.nowUs() };
  }

  #operate(operator: Limits, who: string): Configuration {
    const before = this.#current;
    const what = changesInWords('operator', before.operator, operator);
    if (what.length === 0) return before;
    this.#times = { ...this.#timesForSlower(), changedUs: this.nowUs() };
    const version = before.version + 1;
    const limits = overlaid(before.code, operator);
    this.#current = Object.freeze({ ...before, version, limits, operator, who });
    this.#history = [{ version, atUs: this.wallUs(), who, what }, ...this.#history].slice(0, MAX_HISTORY);
    this.messages.emit('message', { kind: 'configured', version, who, limits });
    return this.#current;
  }

  // Slower limits must not find buckets empty again that have filled under these.
  #timesForSlower(): StoreTimes {
    const filledSinceUs = this.nowUs() - fillingUs(this.limits);
    const { coldAtUs, pause } = this.#times;
    return {
      ...this.#times,
      coldAtUs: coldAtUs <= filledSinceUs ? 0 : coldAtUs,
      pause: pause !== null && pause.untilUs + RAMP_US <= filledSinceUs ? null : pause,
    };
  }
}
