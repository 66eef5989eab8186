import { describe, expect, test } from 'vitest';
import { perSecond } from '../../../src/core/limits/rate.ts';
import type { StoreMessage } from '../../../src/core/ports/messages.ts';
import { startsOf } from '../support/governed.ts';
import { processes, seenAs } from '../support/processes.ts';

const range = (count: number) => Array.from({ length: count }, (_, index) => index);
const at = (perSec: number, burst = 1) => ({ calls: perSecond(perSec, { burst }) });
const CHANGED_MS = 1_050;

/** Fifty calls wait at 10/s, and after a second of that the limit becomes another. */
async function changed(
  limits: ReturnType<typeof at>,
  seen?: (listener: (message: StoreMessage) => void) => () => void,
) {
  const { clock, store, start } = processes(at(10));
  const governor = start(
    seen === undefined
      ? store
      : seenAs(store, { subscribe: seen, confirm: async () => (await store.configuration()).version }),
  );
  const { starts, done } = startsOf(clock, range(50), () => governor.wait());
  await clock.advance(CHANGED_MS);
  await start().configure({ limits });
  return { clock, starts, done, before: starts.length };
}

describe('limits that are changed while reservations are held', () => {
  test('that become faster let those who wait start at the new rate, within a second', async () => {
    const { clock, starts, done, before } = await changed(at(100));
    expect(before).toBe(11);
    await clock.advance(1_000 + ((50 - before) * 1_000) / 100 + 50);
    await done;
    expect(starts.map(({ item }) => item).sort((a, b) => a - b)).toEqual(range(50));
  });

  test('that become slower hold them to the new rate, but for those that start within a second', async () => {
    const { clock, starts, done } = await changed(at(2));
    await clock.advance(1_000);
    const within = starts.length;
    await clock.advance(30_000);
    await done;
    expect(starts.length - within).toBeGreaterThan(20);
    const gaps = starts.slice(within + 1).map(({ atMs }, index) => atMs - starts[within + index]!.atMs);
    expect(Math.min(...gaps)).toBeGreaterThanOrEqual(499);
    expect(starts.map(({ item }) => item).sort((a, b) => a - b)).toEqual(range(50));
  });

  test('and of which no message tells are seen all the same, before the next start that counts no longer', async () => {
    const { clock, starts, done } = await changed(at(2), () => () => {});
    await clock.advance(1_000);
    const within = starts.length;
    await clock.advance(40_000);
    await done;
    const gaps = starts.slice(within + 1).map(({ atMs }, index) => atMs - starts[within + index]!.atMs);
    expect(Math.min(...gaps)).toBeGreaterThanOrEqual(499);
  });

  test('keep the order of those that wait', async () => {
    const { clock, starts, done } = await changed(at(20));
    await clock.advance(5_000);
    await done;
    expect(starts.map(({ item }) => item)).toEqual(range(50));
  });
});
