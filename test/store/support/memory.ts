import { parseGovernorOptions } from '../../../src/core/limits/governor-options.ts';
import { MemoryStore } from '../../../src/store/memory/memory-store.ts';
import { FakeClock } from '../../../src/testing/fake-clock.ts';
import type { StoreOptions } from './made.ts';

/** A memory store on a clock that stands still unless it is moved. */
export function memoryStore(options: StoreOptions) {
  const clock = new FakeClock();
  const store = new MemoryStore(parseGovernorOptions({ name: 'memory', ...options }), clock);
  return { store, advanceUs: (us: number) => clock.block(us / 1_000) };
}
