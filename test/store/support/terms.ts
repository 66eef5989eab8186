import type { Terms } from '../../../src/core/decide/ask.ts';
import type { Cost, Keys } from '../../../src/core/decide/demands.ts';
import type { Request } from '../../../src/core/ports/store.ts';

/** A request of nobody in particular, as none of its limits has slots to hold. */
export const ask = (cost: Cost = 1, keys?: Keys): Request => ({ cost, keys, holder: '' });

export const NORMAL: Terms['priority'] = 1;

/** Now or not at all. */
export const AT_ONCE: Terms = {
  maxWaitUs: 0,
  maxTurnUs: 0,
  turns: 'keyed',
  returning: false,
  patienceUs: 0,
  priority: NORMAL,
  queue: false,
};

/** Now or later, however long it takes. */
export const WHENEVER: Terms = { ...AT_ONCE, maxWaitUs: Number.POSITIVE_INFINITY };

/** Now, or a place in the line of a limit with keys. */
export const OR_TURN: Terms = { ...AT_ONCE, maxTurnUs: Number.POSITIVE_INFINITY };

/** As one that comes back from its slot; it keeps its place if it has to wait for up to a second. */
export const RETURNING: Terms = { ...OR_TURN, returning: true, patienceUs: 1_000_000 };
