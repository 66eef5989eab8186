import type { Terms } from '../../../src/core/decide/ask.ts';
import type { Cost, Keys } from '../../../src/core/decide/demands.ts';
import type { Verdict } from '../../../src/core/decide/verdict.ts';
import type { ColdStart } from '../../../src/core/limits/governor-options.ts';
import type { LimitsOptions } from '../../../src/core/limits/limit.ts';
import { perSecond } from '../../../src/core/limits/rate.ts';
import type { Store } from '../../../src/core/ports/store.ts';
import { AT_ONCE, ask, NORMAL, WHENEVER } from './terms.ts';

export interface Made {
  readonly store: Store;
  /** Moves the store's own clock on by whole microseconds, or back. */
  advanceUs(us: number): void;
}

export interface StoreOptions {
  readonly limits: LimitsOptions;
  readonly coldStart?: ColdStart;
}

export type Make = (options: StoreOptions) => Made;

export const MS = 1_000;
export const SECOND = 1_000_000;

export const calls = { limits: { calls: perSecond(10, { burst: 5 }) } };
export const shops = { limits: { shop: perSecond(1, { burst: 1, by: 'shop' }) } };

/** A store of rate limits, made and met once (one that starts with its first call has started), with short ways to ask it. */
export async function started(make: Make, options: StoreOptions) {
  const { store, advanceUs } = make(options);
  await store.limits();
  const acquire = (cost: Cost, terms: Terms = AT_ONCE, keys?: Keys) => store.acquire(ask(cost, keys), terms);
  const peek = (keys?: Keys, cost: Cost = 1) => store.peek(ask(cost, keys), NORMAL);
  return {
    store,
    advanceUs,
    acquire,
    peek,
    reserve: async (cost: Cost, keys?: Keys) => granted(await acquire(cost, WHENEVER, keys)),
    refusal: async (cost: Cost, terms?: Terms, keys?: Keys) => refused(await acquire(cost, terms, keys)),
    remaining: async (keys?: Keys) => (await peek(keys)).map(({ sight }) => sight.remaining),
  };
}

function granted(verdict: Verdict) {
  if (verdict.granted) return verdict;
  throw new Error(`expected a grant, was refused by "${verdict.limit.name}" for ${verdict.waitUs} µs`);
}

function refused(verdict: Verdict) {
  if (verdict.granted) throw new Error(`expected a refusal, was granted with a wait of ${verdict.waitUs} µs`);
  const { limit, reason, waitUs, hasTurn } = verdict;
  return { limit: limit.name, reason, waitUs, hasTurn };
}
