import type { ConcurrencyDemand, Demand } from '../../../core/decide/demands.ts';
import type { Charge } from '../../../core/decide/verdict.ts';
import type { Adaptive } from '../../../core/limits/adaptive.ts';
import type { Limit } from '../../../core/limits/limit.ts';
import { fastestRate } from '../../../core/limits/rate.ts';
import { KIND, LIMIT_FIELDS, MODE } from './protocol.ts';
import type { Numbers } from './reply.ts';

/** What a call has to know of each kind of limit; lua/includes/buckets has the other side. */

type Kinds = keyof typeof LIMIT_FIELDS;
type Field<Name> = Name extends `${infer Asked}?` ? Asked : Name;
type ValuesOf<K extends Kinds> = Record<Field<(typeof LIMIT_FIELDS)[K][number]> & string, number | boolean>;

const VALUES: { readonly [K in Kinds]: (limit: Extract<Limit, { kind: K }>) => ValuesOf<K> } = {
  rate: (limit) => {
    const { rate, periodUs, burst, oversize, kept, penalty, maxKeys, adaptive, options } = limit;
    return {
      ...adaptiveValues(adaptive, options.periodMs * 1_000),
      ...{ rate, periodUs, burst, oversize, fastest: fastestRate(limit), maxKeys: maxKeys ?? 0 },
      ...{ ranked: kept !== null, keptNormal: kept?.[1] ?? 0, keptLow: kept?.[2] ?? 0 },
      penaltyAfterUs: penalty?.afterUs ?? 0,
      penaltyPermille: penalty?.permille ?? 0,
      penaltyForUs: penalty?.forUs ?? 0,
    };
  },
  window: ({ mode, max, windowUs, cells, aligned, maxKeys }) => ({
    ...{ mode: MODE[mode], max, windowUs, cells, aligned, maxKeys: maxKeys ?? 0 },
  }),
  concurrency: ({ max, leaseUs, adaptive }) => ({ max, leaseUs, ...adaptiveValues(adaptive, 0) }),
};

function adaptiveValues(adaptive: Adaptive | null, periodUs: number) {
  const thousandths = (value: number | undefined) => Math.round((value ?? 0) * 1_000);
  return {
    adaptiveMin: thousandths(adaptive?.min),
    adaptiveMax: thousandths(adaptive?.max),
    adaptiveGradient: adaptive?.mode === 'gradient',
    adaptiveLatencyUs: adaptive?.latencyUs ?? 0,
    adaptiveErrorPermille: adaptive?.errorPermille ?? 0,
    adaptivePeriodUs: adaptive === null ? 0 : periodUs,
  };
}

/** A limit as lua/decide.lua takes it: its kind, then the numbers of one. */
export function limitNumbers(limit: Limit): number[] {
  const values = (VALUES[limit.kind] as (limit: Limit) => Record<string, number | boolean>)(limit);
  return [
    KIND[limit.kind],
    ...LIMIT_FIELDS[limit.kind].map((field) => Number(values[field.replace('?', '')])),
  ];
}

/** Whether the demand is for slots, which have holders and a queue. */
export const isForSlots = (demand: Demand): demand is ConcurrencyDemand => demand.kind === 'concurrency';

/** Whether the cost of a grant can be corrected: slots are given back as they are, and a share by its limit. */
export const isCorrectable = ({ kind }: Demand): boolean => kind === 'rate' || kind === 'window';

/** What the reply tells of a grant from the demand's bucket. @param ahead - It starts later. */
export function readCharge(reply: Numbers, demand: Demand, ahead: boolean): Charge {
  const tellsState = ahead && demand.kind === 'rate';
  return {
    demand,
    grantedAfter: tellsState ? reply.next() : 0,
    pushedUnits: tellsState ? reply.next() : 0,
    fence: isForSlots(demand) ? reply.next() : 0,
  };
}
