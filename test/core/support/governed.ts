import { expect, onTestFinished } from 'vitest';
import type { LimitsOptions } from '../../../src/core/limits/limit.ts';
import { memoryGovernor } from '../../../src/testing/index.ts';

interface Options {
  maxWaiters?: number;
  graceMs?: number;
  coldStart?: 'full' | 'empty';
}

/** A governor in memory under a fake clock. At the end of the test no timer may be left, and nobody may be waiting. */
export function governed(limits: LimitsOptions, options: Options = {}) {
  const parts = memoryGovernor({ name: 'test', limits, ...options });
  onTestFinished(() => {
    expect(parts.clock.pending).toBe(0);
    expect(parts.governor.waiting).toBe(0);
  });
  return parts;
}

/** Makes a call for each item and records at what millisecond, from now on, each of them resolved. */
export function startsOf<T>(
  clock: { monoMs(): number },
  items: readonly T[],
  call: (item: T) => Promise<unknown>,
) {
  const beganMs = clock.monoMs();
  const starts: { item: T; atMs: number }[] = [];
  const done = Promise.all(
    items.map(async (item) => {
      await call(item);
      // The clock counts in fractions of a millisecond whose last bits mean nothing.
      starts.push({ item, atMs: Math.round((clock.monoMs() - beganMs) * 1_000) / 1_000 });
    }),
  );
  return { starts, done };
}

/** What became of a promise, without waiting for it. */
export function outcome(promise: Promise<unknown>): {
  state: 'pending' | 'resolved' | 'rejected';
  value?: unknown;
} {
  const seen: ReturnType<typeof outcome> = { state: 'pending' };
  promise.then(
    (value) => Object.assign(seen, { state: 'resolved', value }),
    (value) => Object.assign(seen, { state: 'rejected', value }),
  );
  return seen;
}
