import type { Terms } from '../../../src/core/decide/ask.ts';
import type { Cost, Keys } from '../../../src/core/decide/demands.ts';
import type { HeldSlot } from '../../../src/core/decide/give-back.ts';
import type { BucketReport } from '../../../src/core/decide/peek.ts';
import type { Receipt, Verdict } from '../../../src/core/decide/verdict.ts';
import type { Made, StoreOptions } from './made.ts';
import { AT_ONCE, NORMAL } from './terms.ts';

/** @property heard - Once messages reach those who listen; left out: they always do. */
export type Make = (options: StoreOptions) => Made & { heard?: () => Promise<void> };
export type Priority = Terms['priority'];

export { MS, SECOND } from './made.ts';

export interface Asking {
  readonly cost?: Cost;
  readonly keys?: Keys;
  readonly holder?: string;
  readonly terms?: Partial<Terms>;
}

/** A store, made and met once, with short ways to ask it. */
export async function started(make: Make, options: StoreOptions) {
  const { store, advanceUs, heard } = make(options);
  await store.limits();
  const request = ({ cost = 1, keys, holder = '' }: Asking) => ({ cost, keys, holder });
  const ask = (asking: Asking = {}) => store.acquire(request(asking), { ...AT_ONCE, ...asking.terms });
  return {
    store,
    advanceUs,
    heard,
    ask,
    request,
    granted: async (asking?: Asking): Promise<Receipt> => receiptOf(await ask(asking)),
    refused: async (asking?: Asking) => refusalOf(await ask(asking)),
    sights: async (asking: Asking = {}, priority: Priority = NORMAL): Promise<BucketReport[]> =>
      (await store.peek(request(asking), priority)).map(({ sight }) => sight),
    remaining: async (asking: Asking = {}): Promise<number[]> =>
      (await store.peek(request(asking), NORMAL)).map(({ sight }) => sight.remaining),
  };
}

function receiptOf(verdict: Verdict): Receipt {
  if (!verdict.granted)
    throw new Error(`refused: ${verdict.reason} of ${verdict.limit.name}, ${verdict.waitUs} µs`);
  return verdict.receipt;
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
