import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { RateState } from '../../src/core/buckets/rate/index.ts';
import type { Receipt } from '../../src/core/decide/verdict.ts';
import { parseLimits } from '../../src/core/limits/limit.ts';
import { RedisStore } from '../../src/store/redis/redis-store.ts';
import { NORMAL } from '../store/support/terms.ts';
import { connect, uniqueName } from '../support/redis.ts';
import { type Batch, equalLines, type History, histories, type Step } from './support/histories.ts';
import { clientWithTime } from './support/injected-time.ts';
import { Model } from './support/model.ts';

const RUNS = Number(process.env.FLYBALL_PARITY_RUNS ?? 400);
const START_US = 1_700_000_000_000_000;
const redis = connect();

/** A receipt of either side, or neither, for the same grant. */
interface Granted {
  readonly lua: Receipt;
  readonly core: Receipt;
}

/** What an operation came to, with nothing in it that only one side has. */
const outcome = (settle: () => unknown): unknown => {
  try {
    return plain(settle());
  } catch (error) {
    return { error: (error as Error).message };
  }
};

function plain(result: unknown): unknown {
  if (typeof result !== 'object' || result === null) return result;
  if ('limit' in result) return { ...result, limit: (result as { limit: { name: string } }).limit.name };
  if ('receipt' in result) return { ...result, receipt: plain(result.receipt) };
  if (!('charges' in result)) return result;
  const { startUs, ahead, version, holder, charges } = result as Receipt;
  const flat = charges.map(({ demand, ...rest }) => ({ bucket: demand.bucket, cost: demand.cost, ...rest }));
  return { startUs, ahead, version, holder, charges: flat };
}

class Both {
  readonly #name = uniqueName('parity');
  readonly #model: Model;
  readonly #store: RedisStore;
  readonly #receipts: Granted[] = [];
  #nowUs = START_US;
  operations = 0;

  constructor({ limits, coldStart }: History) {
    const parsed = parseLimits(limits);
    this.#store = this.#starts(parsed, coldStart);
    this.#model = new Model(parsed, coldStart === 'empty' ? this.#nowUs : 0);
  }

  async play({ afterUs, limits, steps }: Batch): Promise<void> {
    this.#nowUs += afterUs;
    if (limits !== null) {
      const parsed = parseLimits(limits);
      await this.#starts(parsed, 'full').limits();
      this.#model.change(parsed, this.#nowUs);
    }
    // Together, so that they travel in one call and are decided in this order at one time.
    const receipts = this.#receipts.slice();
    const calls = steps.some((step) => step.do !== 'cancel' || receipts.at(-1 - step.back) !== undefined);
    if (calls) this.#model.begin(this.#nowUs);
    const asked = steps.map((step) => this.#ask(step, receipts));
    const results = await Promise.allSettled(asked);
    for (const [index, step] of steps.entries()) {
      const result = results[index]!;
      let core: unknown;
      const expected = outcome(() => {
        core = this.#decide(step, receipts);
        return core;
      });
      const lua = outcome(() => {
        if (result.status === 'rejected') throw result.reason;
        return step.do === 'peek'
          ? (result.value as { sight: unknown }[]).map(({ sight }) => sight)
          : result.value;
      });
      expect({ step, result: lua }).toEqual({ step, result: expected });
      if (step.do === 'acquire' && result.status === 'fulfilled') this.#keep(result.value, core);
      this.operations++;
    }
    await this.#compareState();
  }

  /** Called once the store is used, so that it registers at this history's first time and not before. */
  async begin(): Promise<this> {
    await this.#store.limits();
    return this;
  }

  #starts(limits: ReturnType<typeof parseLimits>, coldStart: 'full' | 'empty'): RedisStore {
    return new RedisStore(
      { name: this.#name, limits, coldStart },
      clientWithTime(redis, () => this.#nowUs),
    );
  }

  #ask(step: Step, receipts: readonly Granted[]): Promise<unknown> {
    if (step.do === 'acquire') return this.#store.acquire(step.request, step.terms);
    if (step.do === 'force') return this.#store.force(step.request);
    if (step.do === 'peek') return this.#store.peek(step.request, NORMAL);
    const granted = receipts.at(-1 - step.back);
    return granted === undefined ? Promise.resolve(null) : this.#store.cancel(granted.lua);
  }

  #decide(step: Step, receipts: readonly Granted[]): unknown {
    if (step.do === 'acquire') return this.#model.acquire(step.request, step.terms, this.#nowUs);
    if (step.do === 'force') return this.#model.force(step.request, this.#nowUs);
    if (step.do === 'peek') return this.#model.peek(step.request, NORMAL, this.#nowUs);
    const granted = receipts.at(-1 - step.back);
    return granted === undefined ? null : this.#model.cancel(granted.core, this.#nowUs);
  }

  #keep(lua: unknown, core: unknown): void {
    if ((lua as { granted: boolean }).granted) {
      this.#receipts.push({
        lua: (lua as { receipt: Receipt }).receipt,
        core: (core as { receipt: Receipt }).receipt,
      });
    }
  }

  async #compareState(): Promise<void> {
    const buckets = [...this.#model.buckets];
    const pipeline = redis.pipeline();
    for (const [bucket] of buckets) pipeline.hgetall(`flyball:{${this.#name}}:limit:${bucket}`);
    const stored = (await pipeline.exec())!.map(([, hash]) => bucketOf(hash as Record<string, string>));
    expect(stored).toEqual(buckets.map(([, bucket]) => bucket));
  }
}

const bucketOf = (hash: Record<string, string>): RateState => ({
  debt: Number(hash.debt),
  atUs: Number(hash.at),
  lineUs: Number(hash.line ?? 0),
  granted: Number(hash.granted),
  refused: Number(hash.refused ?? 0),
  lastUs: Number(hash.last ?? 0),
  promised: Number(hash.promised ?? 0),
  pausedUntilUs: Number(hash.closed ?? 0),
  rampUs: Number(hash.ramp ?? 0),
  terms: {
    rate: Number(hash.rate),
    periodUs: Number(hash.unit),
    burst: Number(hash.burst),
    version: Number(hash.version),
  },
});

test('Lua and TypeScript agree, verdict for verdict and state for state', { timeout: 120_000 }, async () => {
  let operations = 0;
  await fc.assert(
    fc.asyncProperty(histories, async (history) => {
      const both = await new Both(history).begin();
      for (const batch of history.batches) await both.play(batch);
      operations += both.operations;
    }),
    { numRuns: RUNS, endOnFailure: false, examples: [[equalLines]] },
  );
  expect(operations).toBeGreaterThan(20_000);
});
