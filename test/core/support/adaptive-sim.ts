import {
  type AdaptiveReport,
  type AdaptiveState,
  begun,
  held,
  observed,
  risen,
  used,
} from '../../../src/core/buckets/adaptive.ts';
import type { Adaptive } from '../../../src/core/limits/adaptive.ts';

/** What the other side makes of a call that reaches it. */
interface Answer {
  readonly latencyUs: number;
  readonly outcome: 'ok' | 'throttled' | 'failed';
}

/** Called with each call's arrival, in order of time. */
export type Downstream = (atUs: number, random: () => number) => Answer;

export interface World {
  readonly seed: number;
  readonly rule: Adaptive;
  readonly initial: number;
  /** The period of the rate; 0: the limit is of slots. */
  readonly periodUs: number;
  readonly processes: number;
  readonly reportMs: number;
  readonly downstream: Downstream;
  readonly lastsMs: number;
  /** The share of the limit that there is work for. Default: more than enough. */
  readonly demand?: (atMs: number) => number;
}

/** A second of the run, by when calls reached the other side. */
export interface Second {
  accepted: number;
  throttled: number;
  failed: number;
  latencySumUs: number;
  /** The limit at its end. */
  limit: number;
}

export interface Run {
  readonly seconds: readonly Second[];
  readonly cutsUs: readonly number[];
  readonly state: AdaptiveState;
}

const EPOCH_US = 1_700_000_000_000_000;
const IDLE_US = 20_000;

/**
 * Plays processes that take from one adaptive limit as fast as it lets them, call a downstream over a network, and report
 * what came of it: throttled calls at once, the rest every `reportMs`. Each seed is one run, the same each time.
 */
export function simulate(world: World): Run {
  return new Simulation(world).run();
}

class Simulation {
  #nowUs = EPOCH_US;
  #state: AdaptiveState;
  #held = 0;
  readonly #queue = new Queue();
  readonly #random: () => number;
  readonly #seconds: Second[] = [];
  readonly #cutsUs: number[] = [];
  readonly #batches: Batch[];

  constructor(private readonly world: World) {
    this.#random = randomFrom(world.seed);
    this.#state = begun(world.rule, world.initial, EPOCH_US);
    this.#batches = Array.from({ length: world.processes }, () => emptyBatch());
  }

  run(): Run {
    const { lastsMs, processes, reportMs } = this.world;
    for (let process = 0; process < processes; process++) {
      this.#after(this.#random() * reportMs * 1_000, () => this.#reportEvery(process));
    }
    this.#after(0, () => this.#work());
    for (let second = 1; second <= lastsMs / 1_000; second++) {
      this.#after(second * 1_000_000 - 1, () => {
        this.#second().limit = this.#state.value / 1_000;
      });
    }
    for (let next = this.#queue.next(); next !== undefined; next = this.#queue.next()) {
      if (next.atUs >= EPOCH_US + lastsMs * 1_000) break;
      this.#nowUs = next.atUs;
      next.act();
    }
    return { seconds: this.#seconds, cutsUs: this.#cutsUs, state: this.#state };
  }

  #after(us: number, act: () => void): void {
    this.#queue.add(this.#nowUs + Math.round(us), act);
  }

  /** One call at a time: the next when the limit has room for it again. */
  #work(): void {
    this.#touch();
    const { periodUs, demand } = this.world;
    const share = Math.min(1, demand?.((this.#nowUs - EPOCH_US) / 1_000) ?? 1);
    if (share <= 0) {
      this.#after(IDLE_US, () => this.#work());
    } else if (periodUs > 0) {
      this.#state = used(this.#state, 1);
      this.#call();
      this.#after((periodUs * 1_000) / this.#state.value / share, () => this.#work());
    } else {
      while (this.#held < Math.max(1, Math.floor((this.#state.value * share) / 1_000))) {
        this.#held += 1;
        this.#state = held(this.#state, this.#held);
        this.#call();
      }
      this.#after(IDLE_US, () => this.#work());
    }
  }

  #call(): void {
    const process = Math.floor(this.#random() * this.world.processes);
    const grantedUs = this.#nowUs;
    this.#after(this.#network(), () => {
      const { latencyUs, outcome } = this.world.downstream(this.#nowUs - EPOCH_US, this.#random);
      const second = this.#second();
      if (outcome === 'ok') second.accepted += 1;
      else second[outcome] += 1;
      second.latencySumUs += latencyUs;
      this.#after(latencyUs + this.#network(), () =>
        this.#ended(process, grantedUs, outcome, this.#nowUs - grantedUs),
      );
    });
  }

  #ended(process: number, grantedUs: number, outcome: Answer['outcome'], latencyUs: number): void {
    const batch = this.#batches[process]!;
    batch.calls += 1;
    batch.latencySumUs += Math.round(latencyUs);
    batch.earliestUs = Math.min(batch.earliestUs, grantedUs);
    if (outcome === 'failed') batch.failed += 1;
    if (outcome === 'throttled') {
      batch.throttled += 1;
      batch.throttledUs = Math.max(batch.throttledUs, grantedUs);
      this.#report(process);
    }
    if (this.world.periodUs === 0) {
      this.#held -= 1;
      const { value } = this.#state;
      if (this.#held < Math.floor(value / 1_000) && (this.world.demand?.(0) ?? 1) >= 1) {
        this.#touch();
        this.#held += 1;
        this.#state = held(this.#state, this.#held);
        this.#call();
      }
    }
  }

  #reportEvery(process: number): void {
    this.#report(process);
    this.#after(this.world.reportMs * 1_000, () => this.#reportEvery(process));
  }

  #report(process: number): void {
    const { calls, throttled, failed, latencySumUs, earliestUs, throttledUs } = this.#batches[process]!;
    if (calls === 0) return;
    this.#batches[process] = emptyBatch();
    const report = {
      startedUs: throttled > 0 ? throttledUs : earliestUs,
      calls,
      throttled,
      failed,
      latencySumUs,
    };
    this.#after(this.#network(), () => this.#take(report));
  }

  #take(report: AdaptiveReport): void {
    this.#touch();
    const before = this.#state;
    this.#state = observed(before, this.world.rule, report, this.#nowUs);
    if (this.#state.cutUs !== before.cutUs && this.#state.lookFrom === 0) {
      this.#cutsUs.push(this.#nowUs - EPOCH_US);
    }
  }

  #touch(): void {
    if (this.world.periodUs === 0) this.#state = held(this.#state, this.#held);
    this.#state = risen(this.#state, this.world.rule, this.world.periodUs, this.#nowUs);
  }

  /** From half a millisecond to eight, most of them short. */
  #network(): number {
    return 500 + 7_500 * this.#random() ** 3;
  }

  #second(): Second {
    const index = Math.floor((this.#nowUs - EPOCH_US) / 1_000_000);
    while (this.#seconds.length <= index) {
      this.#seconds.push({ accepted: 0, throttled: 0, failed: 0, latencySumUs: 0, limit: 0 });
    }
    return this.#seconds[index]!;
  }
}

interface Batch {
  calls: number;
  throttled: number;
  failed: number;
  latencySumUs: number;
  earliestUs: number;
  throttledUs: number;
}

const emptyBatch = (): Batch => ({
  calls: 0,
  throttled: 0,
  failed: 0,
  latencySumUs: 0,
  earliestUs: Number.POSITIVE_INFINITY,
  throttledUs: 0,
});

interface Event {
  readonly atUs: number;
  readonly order: number;
  readonly act: () => void;
}

/** Events by time, and those of one time in the order in which they were added: a binary heap. */
class Queue {
  readonly #heap: Event[] = [];
  #added = 0;

  add(atUs: number, act: () => void): void {
    const heap = this.#heap;
    const event = { atUs, order: this.#added++, act };
    let index = heap.length;
    while (index > 0 && isBefore(event, heap[(index - 1) >> 1]!)) {
      heap[index] = heap[(index - 1) >> 1]!;
      index = (index - 1) >> 1;
    }
    heap[index] = event;
  }

  next(): Event | undefined {
    const heap = this.#heap;
    const first = heap[0];
    const last = heap.pop();
    if (first === undefined || last === undefined || heap.length === 0) return first;
    let index = 0;
    for (;;) {
      let child = 2 * index + 1;
      if (child >= heap.length) break;
      if (child + 1 < heap.length && isBefore(heap[child + 1]!, heap[child]!)) child += 1;
      if (!isBefore(heap[child]!, last)) break;
      heap[index] = heap[child]!;
      index = child;
    }
    heap[index] = last;
    return first;
  }
}

const isBefore = (a: Event, b: Event): boolean => a.atUs < b.atUs || (a.atUs === b.atUs && a.order < b.order);

/** Numbers from 0 up to 1, the same for the same seed (mulberry32). */
function randomFrom(seed: number): () => number {
  let state = seed | 0;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}
