import { expect, it } from 'vitest';
import { Governor } from '../../../src/core/governor.ts';
import { parseGovernorOptions } from '../../../src/core/limits/governor-options.ts';
import { perSecond } from '../../../src/core/limits/rate.ts';
import { MemoryStore } from '../../../src/store/memory/memory-store.ts';
import { FakeClock } from '../../../src/testing/fake-clock.ts';
import { AT_ONCE, ask } from '../../store/support/terms.ts';

/** A store that decides at once, and whose replies can be kept in the socket. */
class SlowReplies extends MemoryStore {
  replies: Promise<void> = Promise.resolve();

  override async acquire(...args: Parameters<MemoryStore['acquire']>) {
    const verdict = await super.acquire(...args);
    await this.replies;
    return verdict;
  }
}

// A process asks for its whole burst and is then blocked. By the time it reads its grants, others have had the tokens that
// came meanwhile.
it.each([
  { when: 'as its first call', idleMs: undefined },
  { when: 'after a long idle time', idleMs: 11_000 },
  { when: 'while it is busy', idleMs: 3_000 },
])(
  'a process that reads its grants late does not add its burst to that of others: $when',
  async ({ idleMs }) => {
    const clock = new FakeClock();
    const config = parseGovernorOptions({ name: 'late', limits: { calls: perSecond(10, { burst: 20 }) } });
    const { name, maxWaiters, graceMs } = config;
    const store = new SlowReplies(config, clock);
    const governor = new Governor({
      name,
      store,
      clock,
      maxWaiters,
      graceMs,
      instance: 'late',
      random: Math.random,
      warn: () => {},
    });
    if (idleMs !== undefined) {
      await governor.wait();
      await clock.advance(idleMs);
    }

    let read = () => {};
    store.replies = new Promise<void>((resolve) => {
      read = resolve;
    });
    const starts: number[] = [];
    const waits = Array.from({ length: 20 }, () => governor.wait().then(() => starts.push(clock.monoMs())));
    await clock.advance(0);
    clock.block(2_500);
    read();
    await clock.advance(0);
    for (let n = 0; n < 25; n++) {
      const other = await store.acquire(ask(), AT_ONCE);
      if (other.granted) starts.push(clock.monoMs());
    }
    await clock.advance(20_000);
    await Promise.all(waits);

    expect(starts.length).toBeGreaterThanOrEqual(20);
    starts.sort((a, b) => a - b);
    for (const [from, fromMs] of starts.entries()) {
      for (let to = from; to < starts.length; to++) {
        expect(to - from + 1).toBeLessThanOrEqual(20 + (starts[to]! - fromMs) / 100 + 1e-3);
      }
    }
  },
);
