import { wholeNumber } from '../checks.ts';
import { InvalidOptionError } from '../errors.ts';

/** Of how many values of an attribute a limit keeps buckets; null: of all. @throws {@link InvalidOptionError} */
export function parseMaxKeys(path: string, value: unknown, by: string | null, fair = false): number | null {
  if (value === undefined) return null;
  if (by === null || fair)
    throw new InvalidOptionError(`${path}.maxKeys`, 'maxKeys only together with by, and without fair', value);
  return wholeNumber(`${path}.maxKeys`, value, 1, 10_000_000);
}
