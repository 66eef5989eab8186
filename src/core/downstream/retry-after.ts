/** No downstream means to be left alone for longer than this (a leap year): an answer that says so is damaged. */
export const MAX_PAUSE_MS = 366 * 86_400_000;

/** Milliseconds from now on, of either form of Retry-After; undefined if it is not valid. */
export function retryAfterOf(value: string | undefined, nowMs: number): number | undefined {
  if (typeof value !== 'string') return undefined;
  const text = value.trim();
  if (/^\d+(\.\d+)?$/.test(text)) return Math.ceil(Number(text) * 1_000);
  const ms = dateMs(text);
  return ms === undefined ? undefined : Math.max(0, ms - nowMs);
}

const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'];

/** Milliseconds since the epoch of an HTTP date (RFC 9110, IMF-fixdate); undefined if it is not valid. */
export function dateMs(text: string | undefined): number | undefined {
  const found = /^\w{3}, (\d{2}) (\w{3}) (\d{4}) (\d{2}):(\d{2}):(\d{2}) GMT$/.exec(text?.trim() ?? '');
  const month = MONTHS.indexOf(found?.[2] ?? '');
  if (found === null || month < 0) return undefined;
  const [day = 0, , year = 0, hour = 0, minute = 0, second = 0] = found.slice(1).map(Number);
  return daysSinceEpoch(year, month + 1, day) * 86_400_000 + ((hour * 60 + minute) * 60 + second) * 1_000;
}

// The civil calendar in whole numbers, counted from March so that a leap day comes last. (core has no Date.)
function daysSinceEpoch(year: number, month: number, day: number): number {
  const years = month <= 2 ? year - 1 : year;
  const era = Math.floor(years / 400);
  const ofEra = years - era * 400;
  const ofYear = Math.floor((153 * ((month + 9) % 12) + 2) / 5) + day - 1;
  return era * 146_097 + ofEra * 365 + Math.floor(ofEra / 4) - Math.floor(ofEra / 100) + ofYear - 719_468;
}
