import { perSecond } from 'flyball';
import { describe, expect, test } from 'vitest';
import { addJobs, Bench, expectBound, sleep, until } from './bench.ts';

const RATE = 60;
const BURST = 6;
const WEIGHTS = { a: 3, b: 2, c: 1 };
const limits = { calls: perSecond(RATE, { by: 'tenant', fair: true, weights: WEIGHTS, burst: BURST }) };

/** Two workers of one queue of all tenants; the name of a job is its tenant. */
function tenantsOf(context: ConstructorParameters<typeof Bench>[0]) {
  const bench = new Bench(context);
  const queue = bench.queue();
  const governor = bench.governor(limits);
  const begin = () => {
    for (let n = 0; n < 2; n++)
      bench.worker(queue, { governor, keys: (job) => ({ tenant: job.name }) }, { concurrency: 50 });
  };
  const tokensOf = (tenant: string, fromMs: number, toMs: number) =>
    bench.startsOf(tenant).filter(({ atMs }) => atMs >= fromMs && atMs < toMs).length;
  /** Each has its share by weight, over some seconds from now on. */
  const expectShares = async (seconds: number) => {
    const fromMs = performance.now();
    const toMs = fromMs + seconds * 1_000;
    await sleep(seconds * 1_000 + 100);
    for (const [tenant, weight] of Object.entries(WEIGHTS)) {
      const ofShare = tokensOf(tenant, fromMs, toMs) / ((RATE * seconds * weight) / 6);
      expect(Math.abs(ofShare - 1), `tenant ${tenant}: ${ofShare}`).toBeLessThanOrEqual(0.15);
    }
  };
  return { bench, queue, begin, tokensOf, expectShares };
}

describe('tenants that share a fair limit and one queue', () => {
  test.for(['a', 'c'])('have their shares behind a flood of 2,000 jobs of %s', async (flooding, context) => {
    const { bench, queue, begin, expectShares } = tenantsOf(context);
    await addJobs(queue, 2_000, { name: flooding });
    for (const tenant of Object.keys(WEIGHTS))
      if (tenant !== flooding) await addJobs(queue, 400, { name: tenant });
    begin();
    await until(() => ['a', 'b', 'c'].every((tenant) => bench.startsOf(tenant).length > 0), 'all tenants');
    await sleep(1_500);
    await expectShares(4);
    // Each is deferred when it is met, and once more at the most when it is back before its share has room for it.
    expect(Math.max(...bench.starts.map(({ attemptsStarted }) => attemptsStarted))).toBeLessThanOrEqual(4);
    expectBound(bench.starts, RATE, BURST);
    expect([bench.failed, bench.errors]).toEqual([[], []]);
  });

  test('have all of it while they are alone, and wait for no flood when they come', async (context) => {
    const { bench, queue, begin, tokensOf, expectShares } = tenantsOf(context);
    await addJobs(queue, 3_000, { name: 'c' });
    begin();
    await until(() => bench.starts.length > 0, 'the first start');
    await sleep(3_000);
    const aloneMs = performance.now();
    await sleep(3_000);
    expect(tokensOf('c', aloneMs, aloneMs + 3_000)).toBeGreaterThanOrEqual(0.95 * 3 * RATE);

    const cameMs = performance.now();
    await Promise.all([addJobs(queue, 300, { name: 'a' }), addJobs(queue, 300, { name: 'b' })]);
    await until(() => bench.startsOf('a').length > 0 && bench.startsOf('b').length > 0, 'the others');
    expect(bench.startsOf('a')[0]!.atMs - cameMs).toBeLessThan(1_000);
    expect(bench.startsOf('b')[0]!.atMs - cameMs).toBeLessThan(1_000);
    await sleep(1_500);
    await expectShares(4);
    expectBound(bench.starts, RATE, BURST);
  });
});
