import { perSecond } from 'flyball';
import { describe, expect, type TestContext } from 'vitest';
import { addJobs, sleep, test, until, untilCompleted } from './fixture.ts';

/** The warnings of this process that speak of a queue. */
function warningsOf(queue: { name: string }, onTestFinished: TestContext['onTestFinished']): string[] {
  const warnings: string[] = [];
  const listen = (warning: Error) => {
    if (warning.name === 'FlyballWarning' && warning.message.includes(queue.name))
      warnings.push(warning.message);
  };
  process.on('warning', listen);
  onTestFinished(() => void process.off('warning', listen));
  return warnings;
}

// BullMQ's own limits beside a governor get mixed, lose slots and shorten pauses (measured on 5.81 and 6.7).
describe.concurrent('a worker warns at its start of', () => {
  test('BullMQ’s own limiter, once', async ({ bench, queue, onTestFinished }) => {
    const warnings = warningsOf(queue, onTestFinished);
    const governor = bench.governor({ calls: perSecond(100) });
    bench.worker(queue, { governor }, { limiter: { max: 10, duration: 1_000 } });
    await addJobs(queue, 2);
    await untilCompleted(queue, 2);
    await sleep(50);
    expect(warnings).toEqual([expect.stringMatching(/BullMQ’s own limiter is on as well.*remove `limiter`/)]);
  });

  // https://github.com/taskforcesh/bullmq/pull/3331: with maxStartedAttempts a job fails after so many starts, though
  // refusals are among them.
  test('maxStartedAttempts', async ({ bench, queue, onTestFinished }) => {
    const warnings = warningsOf(queue, onTestFinished);
    const governor = bench.governor({ calls: perSecond(100) });
    bench.worker(queue, { governor }, { maxStartedAttempts: 5 });
    await until(() => warnings.length > 0, 'a warning');
    expect(warnings).toEqual([expect.stringMatching(/maxStartedAttempts is 5/)]);
  });

  test('a global rate limit of the queue', async ({ bench, queue, onTestFinished }) => {
    const warnings = warningsOf(queue, onTestFinished);
    await queue.setGlobalRateLimit(7, 1_000);
    const governor = bench.governor({ calls: perSecond(100) });
    bench.worker(queue, { governor });
    await until(() => warnings.length > 0, 'a warning');
    expect(warnings).toEqual([
      expect.stringMatching(/global rate limit \(7 per 1000 ms\).*removeGlobalRateLimit/),
    ]);
  });

  test('nothing else, and does not change the queue’s settings', async ({ bench, queue, onTestFinished }) => {
    const warnings = warningsOf(queue, onTestFinished);
    await queue.setGlobalConcurrency(3);
    const meta = () => bench.connection.hgetall(`bull:${queue.name}:meta`);
    const before = await meta();
    const governor = bench.governor({ calls: perSecond(100) });
    bench.worker(queue, { governor, onRefused: 'requeue' });
    await addJobs(queue, 2);
    await untilCompleted(queue, 2);
    await sleep(50);
    expect(warnings).toEqual([]);
    expect(await meta()).toEqual(before);
  });
});

// https://github.com/taskforcesh/bullmq/issues/2193: without a limiter option BullMQ’s own rateLimit() did nothing.
test('a governor uses no limiter key of BullMQ’s', async ({ bench, queue }) => {
  const governor = bench.governor({
    calls: perSecond(20, { burst: 1 }),
    shop: perSecond(5, { burst: 1, by: 'shop' }),
  });
  bench.worker(queue, { governor, maxHoldMs: 100, keys: { shop: 'acme' } }, { concurrency: 10 });
  await addJobs(queue, 10);
  await untilCompleted(queue, 10);
  expect(await bench.connection.exists(`bull:${queue.name}:limiter`)).toBe(0);
  expect(bench.starts.length).toBe(10);
});
