import { kindOf } from '../../../core/buckets/kinds.ts';
import type { ConcurrencyDemand, Demand } from '../../../core/decide/demands.ts';
import type { Charge } from '../../../core/decide/verdict.ts';
import type { Adaptive } from '../../../core/limits/adaptive.ts';
import type { Limit } from '../../../core/limits/limit.ts';
import { fastestRate } from '../../../core/limits/rate-units.ts';
import { KIND, LIMIT_FIELDS, LIMIT_PARTS, MODE, PART_FIELDS } from './protocol.ts';
import type { Numbers } from './reply.ts';

/** What a call has to know of each kind of limit; lua/includes/buckets has the other side. */

type Field<Name> = Name extends `${infer Asked}?` ? Asked : Name;
type Values<Names extends readonly string[]> = Record<Field<Names[number]> & string, number | boolean>;
type Parts = { readonly [P in keyof typeof PART_FIELDS]: Values<(typeof PART_FIELDS)[P]> | null };
type Fields = typeof LIMIT_FIELDS;
type PartOf<K extends keyof Fields> = (typeof LIMIT_PARTS)[K][number];
type Written<K extends keyof Fields> = Values<Fields[K]> & Pick<Parts, PartOf<K>>;

/** The values of a limit, by the names in `LIMIT_FIELDS` and `PART_FIELDS`. */
export const VALUES: { readonly [K in keyof Fields]: (limit: Extract<Limit, { kind: K }>) => Written<K> } = {
  rate: (limit) => ({
    ...limit,
    maxKeys: limit.maxKeys ?? 0,
    fastest: fastestRate(limit),
    kept: limit.kept && { any: true, normal: limit.kept[1], low: limit.kept[2] },
    penalty: limit.penalty && { ...limit.penalty },
    adaptive: adaptiveValues(limit.adaptive, limit.options.periodMs * 1_000),
  }),
  window: (limit) => ({ ...limit, mode: MODE[limit.mode], maxKeys: limit.maxKeys ?? 0 }),
  concurrency: (limit) => ({ ...limit, adaptive: adaptiveValues(limit.adaptive, 0) }),
};

const thousandths = (value: number): number => Math.round(value * 1_000);

const adaptiveValues = (adaptive: Adaptive | null, periodUs: number): Parts['adaptive'] =>
  adaptive && {
    ...adaptive,
    ...{ min: thousandths(adaptive.min), max: thousandths(adaptive.max) },
    gradient: adaptive.mode === 'gradient',
    periodUs,
  };

const numbers = (names: readonly string[], values: object | null): number[] =>
  names.map((name) => Number((values as Record<string, unknown> | null)?.[name.replace('?', '')] ?? 0));

/** A limit as lua/decide.lua takes it: its kind, then the numbers of one. */
export function limitNumbers(limit: Limit): number[] {
  const { kind } = limit;
  const values = (VALUES[kind] as (limit: Limit) => Partial<Parts>)(limit);
  const parts = LIMIT_PARTS[kind].flatMap((part) => numbers(PART_FIELDS[part], values[part] ?? null));
  return [KIND[kind], ...numbers(LIMIT_FIELDS[kind], values), ...parts];
}

/** Whether the demand is for slots, which have holders and a queue. */
export const isForSlots = (demand: Demand): demand is ConcurrencyDemand => demand.kind === 'concurrency';

/** Whether the cost of a grant can be corrected: slots are given back as they are, and a share by its limit. */
export const isCorrectable = (demand: Demand): boolean => kindOf(demand).settle !== undefined;

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
