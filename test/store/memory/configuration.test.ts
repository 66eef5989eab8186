import { describe } from 'vitest';
import { parseGovernorOptions } from '../../../src/core/limits/governor-options.ts';
import { MemoryStore } from '../../../src/store/memory/memory-store.ts';
import { FakeClock } from '../../../src/testing/fake-clock.ts';
import { configurationContract } from '../contract/configuration.ts';

describe('the memory store', () => {
  configurationContract((options) => {
    const clock = new FakeClock();
    const store = new MemoryStore(parseGovernorOptions({ name: 'memory', ...options }), clock);
    return { store, advanceUs: (us) => clock.block(us / 1_000) };
  });
});
