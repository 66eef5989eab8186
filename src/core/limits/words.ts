import type { Limit } from './limit.ts';

const PERIODS = new Map([
  [1_000, 'second'],
  [60_000, 'minute'],
  [3_600_000, 'hour'],
  [86_400_000, 'day'],
]);

const perPeriod = (ms: number): string => `per ${PERIODS.get(ms) ?? `${ms} ms`}`;

/**
 * A limit in words, for people: "100 per second, burst 20, for each shop". What is not in the first words follows by its
 * option's name, so that no option is left out: two limits with the same words are the same.
 */
export function limitInWords({ options }: Pick<Limit, 'options'>): string {
  const [first, { by, ...rest }] = firstWords(options);
  const others = Object.entries(rest).filter(([, value]) => value !== undefined && value !== false);
  const words = others.map(([name, value]) => (value === true ? name : `${name} ${valueInWords(value)}`));
  return [first, ...words, ...(by === undefined ? [] : [`for each ${by}`])].join(', ');
}

function firstWords(options: Limit['options']): [string, { by?: string }] {
  if (options.kind === 'window') {
    const { kind, max, windowMs, mode, ...rest } = options;
    return [`${max} ${perPeriod(windowMs)}, ${mode} window`, rest];
  }
  if (options.kind === 'concurrency') {
    const { kind, max, ...rest } = options;
    return [`${max} at once`, rest];
  }
  const { kind, rate, periodMs, ...rest } = options;
  return [`${rate} ${perPeriod(periodMs)}`, rest];
}

function valueInWords(value: unknown): string {
  if (typeof value !== 'object' || value === null) return String(value);
  return `(${Object.entries(value)
    .map(([name, part]) => `${name} ${valueInWords(part)}`)
    .join(', ')})`;
}
