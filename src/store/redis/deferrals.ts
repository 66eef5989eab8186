import { GovernorClosedError } from '../../core/errors.ts';
import type { Deferral, Deferrals, DeferredJob, Move, NewDeferral } from '../../core/ports/deferrals.ts';
import type { RedisClient } from './client/redis-client.ts';
import { type Argument, malformed, runScript, wholeOf } from './client/run-script.ts';
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
    const args = [job, delayMs, attempt, fresh, before?.count ?? 0, before?.firstUs ?? 0, excused ?? false];
    const reply = await this.#run(noteDeferralsScript, queue, args);
    return readDeferral(reply) ?? refuse(reply);
  }

  async find(queue: string, job: string, attempt: number): Promise<Deferral | undefined> {
    return readDeferral(await this.#run(findDeferralsScript, queue, [job, attempt]));
  }

  async forget(queue: string, job: string): Promise<Deferral | undefined> {
    return readDeferral(await this.#run(forgetDeferralsScript, queue, [job]));
  }

  async oldest(queue: string) {
    const reply = await this.#run(oldestDeferralsScript, queue, []);
    const [count, ageUs, job] = reply;
    if (count === '0') return { count: 0 };
    if (job === undefined) refuse(reply);
    return { count: numberOf(count, reply), oldest: { job, ageUs: numberOf(ageUs, reply) } };
  }

  async list(queue: string, afterUs: number, count: number): Promise<DeferredJob[]> {
    const reply = await this.#run(listDeferralsScript, queue, [afterUs, count]);
    const found: DeferredJob[] = [];
    for (let at = 0; at < reply.length; at += 4) {
      const [turnUs, delayMs, attempt] = [1, 2, 3].map((of) => numberOf(reply[at + of], reply));
      found.push({ job: reply[at]!, turnUs: turnUs!, delayMs: delayMs!, attempt: attempt! });
    }
    return found;
  }

  async move(queue: string, moves: readonly Move[]): Promise<void> {
    const args = moves.flatMap(({ job, delayMs }) => [job, delayMs]);
    await this.#run(moveDeferralsScript, queue, [moves.length, ...args]);
  }

  async claim(queue: string, version: number, forMs: number, again: boolean): Promise<boolean> {
    const keys = [retimedKey(this.governor, queue)];
    const [claimed] = await this.#run(claimDeferralsScript, queue, [version, forMs, again], keys);
    return claimed === '1';
  }

  /** Waits for the answers to what was asked before; after it nothing is asked. */
  async close(): Promise<void> {
    this.#closed = true;
    await Promise.allSettled(this.#underWay);
  }

  async #run(
    script: Script,
    queue: string,
    args: readonly Argument[],
    keys = deferredKeys(this.governor, queue),
  ): Promise<string[]> {
    if (this.#closed) throw new GovernorClosedError(this.governor);
    const running = runScript(this.client, script, keys, args);
    this.#underWay.add(running);
    try {
      const reply = await running;
      const texts = Array.isArray(reply) ? reply : [reply];
      return texts.every((text) => typeof text === 'string') ? texts : refuse(reply);
    } finally {
      this.#underWay.delete(running);
    }
  }
}

function readDeferral(reply: readonly string[]): Deferral | undefined {
  if (reply.length === 0) return undefined;
  const [count, firstUs, ageUs] = reply;
  return { count: numberOf(count, reply), firstUs: numberOf(firstUs, reply), ageUs: numberOf(ageUs, reply) };
}

function numberOf(text: string | undefined, reply: unknown): number {
  const value = wholeOf(text);
  return Number.isNaN(value) ? refuse(reply) : value;
}

function refuse(reply: unknown): never {
  throw malformed('deferred jobs', reply);
}
