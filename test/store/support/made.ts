import type { Terms } from '../../../src/core/decide/ask.ts';
import type { Cost, Keys } from '../../../src/core/decide/demands.ts';
import type { HeldSlot } from '../../../src/core/decide/give-back.ts';
import type { BucketReport } from '../../../src/core/decide/peek.ts';
import type { Receipt, Verdict } from '../../../src/core/decide/verdict.ts';
import type { ColdStart } from '../../../src/core/limits/governor-options.ts';
import type { LimitsOptions } from '../../../src/core/limits/limit.ts';
import { perSecond } from '../../../src/core/limits/rate.ts';
import type { Store } from '../../../src/core/ports/store.ts';
import { AT_ONCE, NORMAL, WHENEVER } from './terms.ts';

export interface Made {
  readonly store: Store;
  /** Moves the store's own clock on by whole microseconds, or back. */
  advanceUs(us: number): void;
  /** Once messages reach those who listen; left out: they always do. */
  heard?(): Promise<void>;
}

export interface StoreOptions {
  readonly limits: LimitsOptions;
  readonly coldStart?: ColdStart;
}

export type Make = (options: StoreOptions) => Made;
export type Priority = Terms['priority'];

export const MS = 1_000;
export const SECOND = 1_000_000;

export const calls = { limits: { calls: perSecond(10, { burst: 5 }) } };
export const shops = { limits: { shop: perSecond(1, { burst: 1, by: 'shop' }) } };

export interface Asking {
  readonly cost?: Cost;
  readonly keys?: Keys | undefined;
  readonly holder?: string;
  readonly terms?: Partial<Terms>;
}

/** A store, made and met once (one that starts with its first call has started), with short ways to ask it. */
export async function started(make: Make, options: StoreOptions) {
  const made = make(options);
  const { store } = made;
  await store.limits();
  const request = ({ cost = 1, keys, holder = '' }: Asking) => ({ cost, keys, holder });
  const ask = (asking: Asking = {}) => store.acquire(request(asking), { ...AT_ONCE, ...asking.terms });
  const acquire = (cost: Cost, terms: Partial<Terms> = {}, keys?: Keys) => ask({ cost, keys, terms });
  const peek = (asking: Asking = {}, priority: Priority = NORMAL) => store.peek(request(asking), priority);
  const sights = async (asking?: Asking, priority?: Priority): Promise<BucketReport[]> =>
    (await peek(asking, priority)).map(({ sight }) => sight);
  return {
    ...made,
    ask,
    request,
    acquire,
    peek,
    sights,
    /** The receipt of what must be granted. */
    granted: async (asking?: Asking): Promise<Receipt> => grantOf(await ask(asking)).receipt,
    /** What refused, and how. */
    refused: async (asking?: Asking) => refusalOf(await ask(asking)),
    reserve: async (cost: Cost, keys?: Keys) => grantOf(await acquire(cost, WHENEVER, keys)),
    refusal: async (cost: Cost, terms?: Terms, keys?: Keys) => {
      const { by: _, granted: __, ...refusal } = refusalOf(await acquire(cost, terms, keys));
      return refusal;
    },
    remaining: async (asking?: Asking) => (await sights(asking)).map(({ remaining }) => remaining),
  };
}

function grantOf(verdict: Verdict) {
  if (verdict.granted) return verdict;
  throw new Error(`refused: ${verdict.reason} of ${verdict.limit.name}, ${verdict.waitUs} µs`);
}

function refusalOf(verdict: Verdict) {
  if (verdict.granted) throw new Error(`granted after ${verdict.waitUs} µs`);
  const { limit, ...rest } = verdict;
  return { ...rest, limit: limit.name };
}

/** The slot of a grant, as its holder knows it. */
export function slotOf(receipt: Receipt): HeldSlot {
  for (const { demand, fence } of receipt.charges) {
    if (demand.kind === 'concurrency') return { demand, holder: receipt.holder, fence };
  }
  throw new Error('the grant has no slot');
}
