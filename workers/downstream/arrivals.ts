/**
 * One call as the service saw it: a compact array, so that a trace of 100,000 calls is some megabytes.
 *
 * `[atUs, cost, job, key, attempt, ageMs, refused]`: when it arrived, in microseconds of the service's
 * monotonic clock since it started; the tokens it cost; then what the caller said about the job (name, key, how
 * often it was started, its age); and 1 if it was answered 429.
 */
export type Arrival = [
  atUs: number,
  cost: number,
  job: string,
  key: string,
  attempt: number,
  ageMs: number,
  refused: 0 | 1,
];

/** The answer of GET /trace. `epochMs + atUs / 1000` is an arrival's wall-clock time. */
export interface Trace {
  readonly epochMs: number;
  readonly arrivals: readonly Arrival[];
}

/** The answer of GET /stats. */
export interface Stats {
  readonly calls: number;
  readonly cost: number;
  readonly answered429: number;
  /** Calls answered with success, of each key. */
  readonly answeredOfKey: Readonly<Record<string, number>>;
  readonly lastSecond: { readonly calls: number; readonly cost: number; readonly answered429: number };
}

const startedNs = process.hrtime.bigint();
/** The wall clock when {@link nowUs} was 0. */
export const epochMs = Date.now();

/** Microseconds since the service started, on a clock that nobody sets back. */
export function nowUs(): number {
  return Number(process.hrtime.bigint() - startedNs) / 1000;
}

/** The record of every call, in order of arrival. */
export class Arrivals {
  #list: Arrival[] = [];
  #cost = 0;
  #answered429 = 0;
  #answeredOfKey = new Map<string, number>();

  add(arrival: Arrival): void {
    const [, cost, , key, , , refused] = arrival;
    this.#list.push(arrival);
    this.#cost += cost;
    this.#answered429 += refused;
    if (!refused) this.#answeredOfKey.set(key, (this.#answeredOfKey.get(key) ?? 0) + 1);
  }

  clear(): void {
    this.#list = [];
    this.#cost = 0;
    this.#answered429 = 0;
    this.#answeredOfKey.clear();
  }

  trace(): Trace {
    return { epochMs, arrivals: this.#list };
  }

  /** Totals, and the same for the second before `atUs`: counted backwards, so asking often stays cheap. */
  stats(atUs: number): Stats {
    let calls = 0;
    let cost = 0;
    let answered429 = 0;
    for (let i = this.#list.length - 1; i >= 0; i--) {
      const arrival = this.#list[i]!;
      if (arrival[0] <= atUs - 1e6) break;
      calls++;
      cost += arrival[1];
      answered429 += arrival[6];
    }
    return {
      calls: this.#list.length,
      cost: this.#cost,
      answered429: this.#answered429,
      answeredOfKey: Object.fromEntries(this.#answeredOfKey),
      lastSecond: { calls, cost, answered429 },
    };
  }
}
