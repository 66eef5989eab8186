import { createGovernor } from 'flyball';
import { expect, onTestFinished, test } from 'vitest';
import { redisUrl, uniqueName } from '../../support/redis.ts';
import { wallClock } from '../../support/wall-clock.ts';

const limits = { work: { kind: 'concurrency' as const, max: 1, leaseMs: 30_000 } };

function started(name: string) {
  const governor = createGovernor({ name, connection: redisUrl(), limits });
  onTestFinished(() => governor.close());
  return governor;
}

// It begins to listen with its first refusal; what comes before it does is told to nobody.
test.for([0, 1, 2, 5, 10])(
  'the first waiter of a process hears of a slot that comes free %i ms later',
  wallClock,
  async (ms) => {
    const name = uniqueName('governor');
    const holder = started(name);
    const grant = await holder.wait();
    const waiter = started(name);
    await waiter.peek();
    const waits = waiter.wait();
    await new Promise((resolve) => setTimeout(resolve, ms));
    const releasedMs = performance.now();
    await grant.release();
    const next = await waits;
    // It looks again after a second by itself.
    expect(performance.now() - releasedMs).toBeLessThan(500);
    await next.release();
  },
);

test('a pause before a process listens is kept by it, and its end heard', wallClock, async () => {
  const name = uniqueName('governor');
  const [first, second] = [started(name), started(name)];
  await second.peek();
  await first.pause();
  const waits = second.wait();
  await first.resume();
  const resumedMs = performance.now();
  await (await waits).release();
  expect(performance.now() - resumedMs).toBeLessThan(2_500);
});
