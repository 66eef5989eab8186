import { durationMs, knownNames, optional, wholeNumber } from '../checks.ts';
import { type Adaptive, type AdaptiveOptions, parseAdaptive } from './adaptive.ts';
import type { LimitKind } from './kind.ts';

/** A concurrency limit as a user writes it: at most so many at once. */
export interface ConcurrencyLimitOptions {
  kind: 'concurrency';
  /** Slots: the most that may be held at one moment. A whole number from 1 to 10,000: each call looks
   * at all slots that are held, which takes the store about a millisecond for a few hundred. */
  max: number;
  /**
   * For how long a slot is held without being renewed, in milliseconds: 100 to 86,400,000, default 30,000. Its holder
   * renews it three times as often; the slot of a holder that died is free again after this.
   */
  leaseMs?: number;
  /** Name of the attribute that has slots of its own for each of its values. */
  by?: string;
  /** The number of slots follows what the downstream can take, between two bounds; `max` is where it starts. */
  adaptive?: AdaptiveOptions;
}

/** A concurrency limit in exact numbers. */
export interface ConcurrencyLimit {
  readonly name: string;
  readonly kind: 'concurrency';
  readonly by: string | null;
  readonly max: number;
  readonly leaseUs: number;
  readonly adaptive: Adaptive | null;
  readonly options: Readonly<ConcurrencyLimitOptions>;
}

const DAY_MS = 86_400_000;
// Each decision reads all that are held.
const MAX_SLOTS = 10_000;

export const CONCURRENCY_LIMIT: LimitKind<ConcurrencyLimit> = {
  parse(name, path, given, by) {
    knownNames(path, given, ['kind', 'max', 'leaseMs', 'by', 'adaptive']);
    const max = wholeNumber(`${path}.max`, given.max, 1, MAX_SLOTS);
    const { leaseMs: asked = 30_000 } = given;
    const leaseMs = durationMs(`${path}.leaseMs`, asked, 100, DAY_MS);
    const adaptive =
      optional(given.adaptive, (value) => parseAdaptive(`${path}.adaptive`, value, max, MAX_SLOTS)) ?? null;
    return Object.freeze({
      name,
      kind: 'concurrency',
      by,
      max,
      adaptive,
      leaseUs: Math.round(leaseMs * 1_000),
      options: Object.freeze({
        kind: 'concurrency',
        max,
        leaseMs,
        ...(by !== null && { by }),
        ...(adaptive && { adaptive: adaptive.options }),
      }),
    });
  },
  words: ({ kind, max, ...rest }) => [`${max} at once`, rest],
  attributeOf: ({ by }) => by,
  size: ({ max }) => max,
  mostCost: ({ max, adaptive }) => adaptive?.max ?? max,
  countsTokens: false,
  fillingUs: ({ leaseUs }) => leaseUs,
  intervalUs: () => undefined,
};
