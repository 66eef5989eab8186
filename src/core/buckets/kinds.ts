import { CONCURRENCY, type ConcurrencyDemand, type ConcurrencyState } from './concurrency/index.ts';
import type { Kind, KindName } from './kind.ts';
import { RATE, type RateDemand, type RateState } from './rate/index.ts';
import { SHARE, type ShareDemand, type ShareGroup, type ShareState } from './share/index.ts';
import { WINDOW, type WindowDemand, type WindowState } from './window/index.ts';

export type { ConcurrencyDemand };
export type Demand = RateDemand | WindowDemand | ConcurrencyDemand | ShareDemand;

/** The list of kinds: each has a line. */
export const KINDS: Readonly<Record<KindName, Kind>> = {
  rate: RATE,
  window: WINDOW,
  concurrency: CONCURRENCY,
  share: SHARE,
};

export const kindOf = ({ kind }: { readonly kind: KindName }): Kind => KINDS[kind];

/** The buckets that have state, and until when: of a limit with `maxKeys`. */
export interface KeyRegistry {
  readonly until: Map<string, number>;
}

/** What a store keeps under one name. */
export type State = RateState | WindowState | ConcurrencyState | ShareState | ShareGroup | KeyRegistry;

/** The buckets of a governor, as a decision sees them, by name. */
export interface Buckets {
  get(name: string): State | undefined;
  /** @param expiresUs - From when the state says nothing more than none does. */
  set(name: string, state: State, expiresUs: number): void;
}

export const stateName = (demand: { readonly kind: KindName; readonly bucket: string }): string =>
  kindOf(demand).prefix + demand.bucket;
/** Of the state that all buckets of a fair limit share. */
export const groupName = (limit: string): string => `group|${limit}`;
/** Of the registry of a limit with `maxKeys`. */
export const registryName = (limit: string): string => `keys|${limit}`;
