import type { Terms } from '../../../src/core/decide.ts';

/** Now or not at all. */
export const AT_ONCE: Terms = {
  maxWaitUs: 0,
  maxSlotUs: 0,
  slots: 'keyed',
  returning: false,
  patienceUs: 0,
};

/** Now or later, however long it takes. */
export const WHENEVER: Terms = { ...AT_ONCE, maxWaitUs: Number.POSITIVE_INFINITY };

/** Now, or a place in the line of a limit with keys. */
export const OR_SLOT: Terms = { ...AT_ONCE, maxSlotUs: Number.POSITIVE_INFINITY };

/** As one that comes back from its slot; it keeps its place if it has to wait for up to a second. */
export const RETURNING: Terms = { ...OR_SLOT, returning: true, patienceUs: 1_000_000 };
