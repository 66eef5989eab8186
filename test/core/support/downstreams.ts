import type { Downstream } from './adaptive-sim.ts';

/** From when on it can take how much: calls a second, or calls at once. */
export type Capacity = readonly { readonly fromMs: number; readonly capacity: number }[];

export function capacityAt(capacity: Capacity, atUs: number): number {
  return capacity.findLast(({ fromMs }) => fromMs * 1_000 <= atUs)!.capacity;
}

/** Answers 429 to what comes over its capacity: a bucket of `burstMs` worth of calls. Others take 10 to 60 ms. */
export function throttling(capacity: Capacity, burstMs = 200): Downstream {
  let tokens = Number.POSITIVE_INFINITY;
  let lastUs = 0;
  return (atUs, random) => {
    const perSecond = capacityAt(capacity, atUs);
    const burst = Math.max(1, (perSecond * burstMs) / 1_000);
    tokens = Math.min(burst, tokens + ((atUs - lastUs) * perSecond) / 1_000_000);
    lastUs = atUs;
    if (tokens < 1) return { latencyUs: 3_000, outcome: 'throttled' };
    tokens -= 1;
    return { latencyUs: 10_000 + 50_000 * random(), outcome: 'ok' };
  };
}

/** The same by whole seconds: what is over the capacity of a second is turned away until the next begins. */
export function throttlingByTheSecond(capacity: Capacity): Downstream {
  let [second, calls] = [-1, 0];
  return (atUs, random) => {
    const current = Math.floor(atUs / 1_000_000);
    if (current !== second) [second, calls] = [current, 0];
    calls += 1;
    if (calls > capacityAt(capacity, atUs)) return { latencyUs: 3_000, outcome: 'throttled' };
    return { latencyUs: 10_000 + 50_000 * random(), outcome: 'ok' };
  };
}

/**
 * Works on `servers` calls at once, for `serviceMs` each in the mean, the rest queue: the knee of its latency is there. Calls
 * that would queue for longer than `patienceMs` fail.
 */
export function queueing(
  servers: Capacity,
  serviceMs: (atMs: number) => number,
  patienceMs = Number.POSITIVE_INFINITY,
): Downstream {
  // When the calls under way will end, in order.
  const freeUs: number[] = [];
  return (atUs, random) => {
    const count = capacityAt(servers, atUs);
    while (freeUs.length > 0 && freeUs[0]! <= atUs) freeUs.shift();
    // A server is free, or the first of the `count` last to end is awaited.
    const startUs = freeUs.length < count ? atUs : freeUs[freeUs.length - count]!;
    if (startUs - atUs > patienceMs * 1_000) return { latencyUs: patienceMs * 1_000, outcome: 'failed' };
    // Half fixed, half exponential: as calls to a database are.
    const serviceUs = serviceMs(atUs / 1_000) * 500 * (1 - Math.log(1 - random()));
    const endUs = startUs + serviceUs;
    freeUs.splice(freeUs.findLastIndex((us) => us <= endUs) + 1, 0, endUs);
    return { latencyUs: endUs - atUs, outcome: 'ok' };
  };
}
