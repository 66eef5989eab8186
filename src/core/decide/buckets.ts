import type { LeaseState } from '../buckets/concurrency/leases.ts';
import type { KeyRegistry } from '../buckets/key-overflow.ts';
import type { Bucket } from '../buckets/rate/debt.ts';
import type { ShareGroup, ShareState } from '../buckets/share/share.ts';
import type { WindowState } from '../buckets/window/window.ts';
import type { Demand } from './demands.ts';

/** What a store keeps under one name. */
export type State = Bucket | WindowState | LeaseState | ShareState | ShareGroup | KeyRegistry;

/** The buckets of a governor, as a decision sees them, by {@link stateName}. */
export interface Buckets {
  get(name: string): State | undefined;
  /** @param restUs - When the state says nothing more than none does. */
  set(name: string, state: State, restUs: number): void;
}

/** Kinds have names of their own, so that a limit that becomes one of another kind finds no state of the old. */
export function stateName(demand: Pick<Demand, 'kind' | 'bucket'>): string {
  return demand.kind === 'rate' ? demand.bucket : `${demand.kind}|${demand.bucket}`;
}

export const groupName = (limit: string): string => `group|${limit}`;
export const registryName = (limit: string): string => `keys|${limit}`;
