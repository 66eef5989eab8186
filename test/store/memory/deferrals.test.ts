import { describe } from 'vitest';
import { parseGovernorOptions } from '../../../src/core/limits/governor-options.ts';
import { MemoryStore } from '../../../src/store/memory/memory-store.ts';
import { FakeClock } from '../../../src/testing/fake-clock.ts';
import { deferralsContract } from '../contract/deferrals.ts';

describe('the memory store', () => {
  deferralsContract((options) => {
    const clock = new FakeClock();
    const store = new MemoryStore(parseGovernorOptions({ name: 'memory', ...options }), clock);
    return { store, advanceUs: (us: number) => clock.block(us / 1_000) };
  });
});
