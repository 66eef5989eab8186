import { InvalidOptionError } from '../core/errors.ts';
import { Governor } from '../core/governor.ts';
import { type GovernorOptions, parseGovernorOptions } from '../core/limits/governor-options.ts';
import { MemoryStore } from '../store/memory/memory-store.ts';
import { FakeClock } from './fake-clock.ts';

/**
 * A governor in memory on a clock of your own, for tests without Redis and without sleeping. The same limits, the same
 * decisions.
 *
 * @param options - As for `createGovernor`, without `connection`.
 * @param options.clock - Default: a new {@link FakeClock}.
 * @throws {@link InvalidOptionError} `FLYBALL_INVALID_OPTION`.
 *
 * @example
 * const { governor, clock } = memoryGovernor({ name: 'test', limits: { calls: perSecond(10, { burst: 1 }) } });
 * const second = governor.wait().then(() => governor.wait());
 * await clock.advance(100);
 * await second;
 */
export function memoryGovernor(options: GovernorOptions & { clock?: FakeClock }): {
  governor: Governor;
  clock: FakeClock;
  store: MemoryStore;
} {
  const config = parseGovernorOptions(options, ['clock']);
  const { clock = new FakeClock() } = options;
  if (!(clock instanceof FakeClock)) throw new InvalidOptionError('clock', 'a FakeClock', clock);
  const store = new MemoryStore(config, clock);
  const { name, maxWaiters, graceMs } = config;
  return {
    governor: new Governor({
      name,
      store,
      clock,
      maxWaiters,
      graceMs,
      instance: 'memory',
      random: Math.random,
      warn: (message) => process.emitWarning(message, 'FlyballWarning'),
    }),
    clock,
    store,
  };
}
