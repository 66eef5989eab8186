import {
  type Deferral,
  type Deferrals,
  type DeferredJob,
  KEPT_US,
  type Move,
  type NewDeferral,
} from '../../core/ports/deferrals.ts';

interface Entry {
  count: number;
  firstUs: number;
  attempt: number;
  turnUs: number;
  delayMs: number;
}

const DROPPED_PER_NOTE = 10;

/** The deferred jobs of a governor in this process's memory. */
export class MemoryDeferrals implements Deferrals {
  readonly #queues = new Map<string, Map<string, Entry>>();
  readonly #claims = new Map<string, { version: number; untilUs: number }>();

  /** @param nowUs - The store's clock; throws once the store is closed. */
  constructor(private readonly nowUs: () => number) {}

  async note(queue: string, deferral: NewDeferral): Promise<Deferral> {
    const nowUs = this.nowUs();
    const entries = this.#queues.get(queue) ?? new Map<string, Entry>();
    this.#queues.set(queue, entries);
    this.#dropLost(entries, nowUs);
    const { job, attempt, fresh, delayMs, excused = false } = deferral;
    const stored = entries.get(job);
    const known = !fresh && stored?.attempt === attempt ? stored : undefined;
    const before = deferral.before ?? known ?? { count: 0, firstUs: nowUs };
    const count = before.count + (excused ? 0 : 1);
    const firstUs = before.firstUs + (excused ? delayMs * 1_000 : 0);
    entries.set(job, { count, firstUs, attempt, turnUs: nowUs + delayMs * 1_000, delayMs });
    return { count, firstUs, ageUs: Math.max(0, nowUs - firstUs) };
  }

  async find(queue: string, job: string, attempt: number): Promise<Deferral | undefined> {
    const nowUs = this.nowUs();
    const entry = this.#queues.get(queue)?.get(job);
    return entry?.attempt === attempt ? seen(entry, nowUs) : undefined;
  }

  async forget(queue: string, job: string): Promise<Deferral | undefined> {
    const nowUs = this.nowUs();
    const entries = this.#queues.get(queue);
    const entry = entries?.get(job);
    entries?.delete(job);
    if (entries?.size === 0) this.#queues.delete(queue);
    return entry && seen(entry, nowUs);
  }

  async oldest(queue: string) {
    const nowUs = this.nowUs();
    const entries = [...(this.#queues.get(queue) ?? [])];
    const [first] = entries.sort(([a, { firstUs }], [b, other]) => firstUs - other.firstUs || byText(a, b));
    if (first === undefined) return { count: 0 };
    return { count: entries.length, oldest: { job: first[0], ageUs: seen(first[1], nowUs).ageUs } };
  }

  async list(queue: string, afterUs: number, count: number): Promise<DeferredJob[]> {
    this.nowUs();
    const found = [...(this.#queues.get(queue) ?? [])]
      .map(([job, { turnUs, delayMs, attempt }]) => ({ job, turnUs, delayMs, attempt }))
      .filter(({ turnUs }) => turnUs > afterUs)
      .sort((a, b) => a.turnUs - b.turnUs || byText(a.job, b.job));
    const lastUs = found[Math.min(count, found.length) - 1]?.turnUs ?? afterUs;
    return found.filter(({ turnUs }) => turnUs <= lastUs);
  }

  async move(queue: string, moves: readonly Move[]): Promise<void> {
    const nowUs = this.nowUs();
    for (const { job, delayMs } of moves) {
      const entry = this.#queues.get(queue)?.get(job);
      if (entry !== undefined) Object.assign(entry, { turnUs: nowUs + delayMs * 1_000, delayMs });
    }
  }

  async claim(queue: string, version: number, forMs: number, again: boolean): Promise<boolean> {
    const nowUs = this.nowUs();
    const held = this.#claims.get(queue);
    if (held !== undefined && held.untilUs > nowUs) {
      if (held.version > version || (held.version === version && !again)) return false;
    }
    this.#claims.set(queue, { version, untilUs: nowUs + forMs * 1_000 });
    return true;
  }

  clear(): void {
    this.#queues.clear();
    this.#claims.clear();
  }

  // A map keeps the order of the first entries, so what is lost is found near its beginning.
  #dropLost(entries: Map<string, Entry>, nowUs: number): void {
    let looked = 0;
    for (const [job, { turnUs }] of entries) {
      if (turnUs <= nowUs - KEPT_US) entries.delete(job);
      if (++looked >= DROPPED_PER_NOTE) return;
    }
  }
}

const seen = ({ count, firstUs }: Entry, nowUs: number): Deferral => ({
  count,
  firstUs,
  ageUs: Math.max(0, nowUs - firstUs),
});

// By code point, as the server orders members of one score.
const byText = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);
