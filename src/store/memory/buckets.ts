import type { Buckets as CoreBuckets, State } from '../../core/buckets/kinds.ts';

/** The states of a governor by name, each until it says nothing more. */
export class Buckets implements CoreBuckets {
  readonly #states = new Map<string, { state: State; expiresUs: number }>();
  #sweep = this.#states.entries();

  get(name: string): State | undefined {
    return this.#states.get(name)?.state;
  }

  set(name: string, state: State, expiresUs: number): void {
    this.#states.set(name, { state, expiresUs });
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
      const [name, { expiresUs }] = value;
      if (nowUs > expiresUs) this.#states.delete(name);
    }
  }
}
