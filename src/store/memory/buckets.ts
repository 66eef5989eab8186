import type { State, Buckets as View } from '../../core/decide/buckets.ts';

/** The states of a governor by name, each until it says nothing more. */
export class Buckets implements View {
  readonly #states = new Map<string, { state: State; restUs: number }>();
  #sweep = this.#states.entries();

  get(name: string): State | undefined {
    return this.#states.get(name)?.state;
  }

  set(name: string, state: State, restUs: number): void {
    this.#states.set(name, { state, restUs });
  }

  /** How many have state. */
  get size(): number {
    return this.#states.size;
  }

  clear(): void {
    this.#states.clear();
  }

  /** Looks at `count` of them, and forgets those that say nothing more. */
  sweep(nowUs: number, count: number): void {
    for (let swept = 0; swept < count; swept++) {
      const { value, done } = this.#sweep.next();
      if (done) {
        this.#sweep = this.#states.entries();
        return;
      }
      const [name, { restUs }] = value;
      if (nowUs > restUs) this.#states.delete(name);
    }
  }
}
