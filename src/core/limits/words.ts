import { kindOfLimit, type Limit } from './limit.ts';

/**
 * A limit in words, for people: "100 per second, burst 20, for each shop". What is not in the first words follows by its
 * option's name, so that no option is left out: two limits with the same words are the same.
 */
export function limitInWords(limit: Pick<Limit, 'kind' | 'options'>): string {
  const [first, { by, ...rest }] = kindOfLimit(limit).words(limit.options);
  const others = Object.entries(rest).filter(([, value]) => value !== undefined && value !== false);
  const words = others.map(([name, value]) => (value === true ? name : `${name} ${valueInWords(value)}`));
  return [first, ...words, ...(by === undefined ? [] : [`for each ${by}`])].join(', ');
}

function valueInWords(value: unknown): string {
  if (typeof value !== 'object' || value === null) return String(value);
  return `(${Object.entries(value)
    .map(([name, part]) => `${name} ${valueInWords(part)}`)
    .join(', ')})`;
}
