import type { Queue } from 'bullmq';
import { perSecond } from 'flyball';
import { describe, expect } from 'vitest';
import { wallClock } from '../../support/wall-clock.ts';
import { addJobs, type Bench, expectBound, expectNoError, sleep, test, until } from './fixture.ts';

const RATE = 60;
const BURST = 6;
const WEIGHTS = { a: 3, b: 2, c: 1 };
const TENANTS = ['a', 'b', 'c'] as const;
const limits = { calls: perSecond(RATE, { by: 'tenant', fair: true, weights: WEIGHTS, burst: BURST }) };

/** Two workers of one queue of all tenants; the name of a job is its tenant. */
function tenantsOf(bench: Bench, queue: Queue) {
  const governor = bench.governor(limits);
  const begin = () => {
    for (let n = 0; n < 2; n++)
      bench.worker(queue, { governor, keys: (job) => ({ tenant: job.name }) }, { concurrency: 50 });
  };
  /** What each tenant was granted while `ms` passed, as the store has it; and for how long that was. */
  const grantedIn = async (ms: number) => {
    const granted = () =>
      Promise.all(TENANTS.map(async (tenant) => (await governor.peek({ keys: { tenant } })).at(-1)!.granted));
    const fromMs = performance.now();
    const before = await granted();
    await sleep(ms);
    const after = await granted();
    return { seconds: (performance.now() - fromMs) / 1_000, tokens: after.map((n, i) => n - before[i]!) };
  };
  /** Each has its share by weight, over some seconds from now on, and together they have the limit. */
  const expectShares = async () => {
    const { seconds, tokens } = await grantedIn(4_000);
    const all = tokens.reduce((sum, n) => sum + n);
    expect(all).toBeGreaterThanOrEqual(0.9 * RATE * seconds);
    for (const [index, tenant] of TENANTS.entries()) {
      const ofShare = tokens[index]! / ((all * WEIGHTS[tenant]) / 6);
      expect(Math.abs(ofShare - 1), `tenant ${tenant}: ${ofShare}`).toBeLessThanOrEqual(0.15);
    }
  };
  return { begin, grantedIn, expectShares };
}

describe('tenants that share a fair limit and one queue', wallClock, () => {
  test.for(TENANTS.filter((tenant) => tenant !== 'b'))(
    'have their shares behind a flood of 1,000 jobs of %s',
    async (flooding, { bench, queue }) => {
      const { begin, expectShares } = tenantsOf(bench, queue);
      await addJobs(queue, 1_000, { name: flooding });
      for (const tenant of TENANTS) if (tenant !== flooding) await addJobs(queue, 200, { name: tenant });
      begin();
      await until(() => TENANTS.every((tenant) => bench.startsOf(tenant).length > 0), 'all tenants');
      await sleep(1_500);
      await expectShares();
      // Each is deferred when it is met, and once more at the most when it is back before its share has room for it.
      expect(Math.max(...bench.starts.map(({ attemptsStarted }) => attemptsStarted))).toBeLessThanOrEqual(4);
      expectBound(bench.starts, RATE, BURST);
      expectNoError(bench);
    },
  );

  test('have all of it while alone, and wait for no flood', async ({ bench, queue }) => {
    const { begin, grantedIn, expectShares } = tenantsOf(bench, queue);
    await addJobs(queue, 1_500, { name: 'c' });
    begin();
    await until(() => bench.starts.length > 0, 'the first start');
    await sleep(2_000);
    const alone = await grantedIn(2_000);
    expect(alone.tokens[2]).toBeGreaterThanOrEqual(0.95 * alone.seconds * RATE);

    const cameMs = performance.now();
    await Promise.all([addJobs(queue, 300, { name: 'a' }), addJobs(queue, 300, { name: 'b' })]);
    await until(() => bench.startsOf('a').length > 0 && bench.startsOf('b').length > 0, 'the others');
    expect(bench.startsOf('a')[0]!.atMs - cameMs).toBeLessThan(1_000);
    expect(bench.startsOf('b')[0]!.atMs - cameMs).toBeLessThan(1_000);
    await sleep(1_500);
    await expectShares();
    expectBound(bench.starts, RATE, BURST);
  });
});
