import { GovernorClosedError, StoreUnavailableError } from '../../core/errors.ts';
import type { Deferral, Deferrals, DeferredJob, Move, NewDeferral } from '../../core/ports/deferrals.ts';
import type { RedisClient } from './client/redis-client.ts';
import { runScript } from './client/run-script.ts';
import { deferredKeys, retimedKey } from './keys.ts';
import {
  claimDeferralsScript,
  findDeferralsScript,
  forgetDeferralsScript,
  listDeferralsScript,
  moveDeferralsScript,
  noteDeferralsScript,
  oldestDeferralsScript,
  type Script,
} from './scripts.generated.ts';

/** The deferred jobs of a governor in Redis: a script for each thing that can be asked. */
export class RedisDeferrals implements Deferrals {
  readonly #underWay = new Set<Promise<unknown>>();
  #closed = false;

  constructor(
    private readonly governor: string,
    private readonly client: RedisClient,
  ) {}

  async note(queue: string, deferral: NewDeferral): Promise<Deferral> {
    const { job, delayMs, attempt, fresh, before, excused } = deferral;
    const reply = await this.#run(noteDeferralsScript, this.#keys(queue), [
      job,
      String(delayMs),
      String(attempt),
      fresh ? '1' : '0',
      String(before?.count ?? 0),
      String(before?.firstUs ?? 0),
      excused ? '1' : '0',
    ]);
    return readDeferral(reply) ?? malformed(reply);
  }

  async find(queue: string, job: string, attempt: number): Promise<Deferral | undefined> {
    return readDeferral(await this.#run(findDeferralsScript, this.#keys(queue), [job, String(attempt)]));
  }

  async forget(queue: string, job: string): Promise<Deferral | undefined> {
    return readDeferral(await this.#run(forgetDeferralsScript, this.#keys(queue), [job]));
  }

  async oldest(queue: string) {
    const reply = await this.#run(oldestDeferralsScript, this.#keys(queue), []);
    const [count, ageUs, job] = reply;
    if (count === '0') return { count: 0 };
    if (job === undefined) malformed(reply);
    return { count: wholeOf(count, reply), oldest: { job, ageUs: wholeOf(ageUs, reply) } };
  }

  async list(queue: string, afterUs: number, count: number): Promise<DeferredJob[]> {
    const reply = await this.#run(listDeferralsScript, this.#keys(queue), [String(afterUs), String(count)]);
    const found: DeferredJob[] = [];
    for (let at = 0; at < reply.length; at += 4) {
      found.push({
        job: reply[at]!,
        turnUs: wholeOf(reply[at + 1], reply),
        delayMs: wholeOf(reply[at + 2], reply),
        attempt: wholeOf(reply[at + 3], reply),
      });
    }
    return found;
  }

  async move(queue: string, moves: readonly Move[]): Promise<void> {
    const args = moves.flatMap(({ job, delayMs }) => [job, String(delayMs)]);
    await this.#run(moveDeferralsScript, this.#keys(queue), [String(moves.length), ...args]);
  }

  async claim(queue: string, version: number, forMs: number, again: boolean): Promise<boolean> {
    const key = retimedKey(this.governor, queue);
    const [claimed] = await this.#run(
      claimDeferralsScript,
      [key],
      [String(version), String(forMs), again ? '1' : '0'],
    );
    return claimed === '1';
  }

  /** Waits for the answers to what was asked before; after it nothing is asked. */
  async close(): Promise<void> {
    this.#closed = true;
    await Promise.allSettled(this.#underWay);
  }

  #keys(queue: string): string[] {
    const { entries, since, slots } = deferredKeys(this.governor, queue);
    return [entries, since, slots];
  }

  async #run(script: Script, keys: readonly string[], args: readonly string[]): Promise<string[]> {
    if (this.#closed) throw new GovernorClosedError(this.governor);
    const running = runScript(this.client, script, keys, args);
    this.#underWay.add(running);
    try {
      const reply = await running;
      const texts = Array.isArray(reply) ? reply : [reply];
      return texts.every((text) => typeof text === 'string') ? texts : malformed(reply);
    } finally {
      this.#underWay.delete(running);
    }
  }
}

function readDeferral(reply: readonly string[]): Deferral | undefined {
  if (reply.length === 0) return undefined;
  const [count, firstUs, ageUs] = reply;
  return { count: wholeOf(count, reply), firstUs: wholeOf(firstUs, reply), ageUs: wholeOf(ageUs, reply) };
}

function wholeOf(text: string | undefined, reply: unknown): number {
  const value = text !== undefined && /^\d+$/.test(text) ? Number(text) : Number.NaN;
  return Number.isSafeInteger(value) ? value : malformed(reply);
}

function malformed(reply: unknown): never {
  throw new StoreUnavailableError(`expected deferred jobs from the store, received ${JSON.stringify(reply)}`);
}
