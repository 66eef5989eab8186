import { onTestFinished } from 'vitest';
import { Governor } from '../../../src/core/governor.ts';
import { type GovernorOptions, parseGovernorOptions } from '../../../src/core/limits/governor-options.ts';
import type { Store } from '../../../src/core/ports/store.ts';
import { MemoryStore } from '../../../src/store/memory/memory-store.ts';
import { FakeClock } from '../../../src/testing/index.ts';

type Limits = GovernorOptions['limits'];

/** One store and one clock, with a governor for each process that shares them. Closed when the test ends. */
export function processes(limits: Limits, random: () => number = () => 0.5) {
  const clock = new FakeClock();
  const config = parseGovernorOptions({ name: 'shared', limits });
  const store = new MemoryStore(config, clock);
  const { name, maxWaiters, graceMs } = config;
  let count = 0;
  /** @param seen - The store as this process sees it. */
  const start = (seen: MemoryStore = store): Governor => {
    count += 1;
    const governor = new Governor({
      name,
      store: seen,
      clock,
      maxWaiters,
      graceMs,
      instance: `process-${count}`,
      random,
      warn: () => {},
    });
    onTestFinished(() => governor.close());
    return governor;
  };
  return { clock, store, start };
}

/** The same store, but some of its answers. */
export function seenAs(store: MemoryStore, others: Partial<Store>): MemoryStore {
  return new Proxy(store, {
    get(target, name) {
      if (name in others) return others[name as keyof Store];
      const value = Reflect.get(target, name, target) as unknown;
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
}
