import { describe } from 'vitest';
import { parseGovernorOptions } from '../../../src/core/limits/governor-options.ts';
import { MemoryStore } from '../../../src/store/memory/memory-store.ts';
import { FakeClock } from '../../../src/testing/fake-clock.ts';
import { slotsContract } from '../contract/concurrency.ts';
import { mixturesContract } from '../contract/mixtures.ts';
import { pausesContract } from '../contract/pauses.ts';
import { ratesContract } from '../contract/rates.ts';
import { windowsContract } from '../contract/windows.ts';
import type { StoreOptions } from '../support/made.ts';

function make(options: StoreOptions) {
  const clock = new FakeClock();
  const store = new MemoryStore(parseGovernorOptions({ name: 'memory', ...options }), clock);
  return { store, advanceUs: (us: number) => clock.block(us / 1_000) };
}

describe('the memory store, limits of all kinds', () => {
  windowsContract(make);
  slotsContract(make);
  ratesContract(make);
  pausesContract(make);
  mixturesContract(make);
});
