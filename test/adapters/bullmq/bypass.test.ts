import type { Job } from 'bullmq';
import { perHour, perSecond } from 'flyball';
import { expect } from 'vitest';
import { wallClock } from '../../support/wall-clock.ts';
import { addJobs, countsOf, test, until, untilCompleted } from './fixture.ts';

// https://github.com/taskforcesh/bullmq/issues/1083: an operator promoted a limited job by hand, and it went back to delayed.
test('a bypassed job runs at once, and its cost is charged as debt', wallClock, async ({ bench, queue }) => {
  const governor = bench.governor({ shop: perHour(60, { burst: 5, by: 'shop' }) });
  const keys = { shop: 'acme' };
  for (let n = 0; n < 5; n++) await governor.allow({ keys });
  const told: [string, string][] = [];
  const worker = bench.worker(queue, {
    governor,
    keys,
    cost: (job: Job) => job.data.cost ?? 1,
    bypass: (job: Job) => job.name === 'urgent' && `asked for by ${job.data.by}`,
    onBypass: (job: Job, reason: string) => told.push([job.name, reason]),
  });
  await queue.add('usual', {});
  await until(async () => (await queue.getDelayedCount()) === 1, 'the usual job deferred');
  const [before] = await governor.peek({ keys });
  const addedMs = performance.now();
  await queue.add('urgent', { by: 'ops', cost: 3 });
  await untilCompleted(queue, 1);

  expect(bench.starts.map(({ name }) => name)).toEqual(['urgent']);
  expect(bench.starts[0]!.atMs - addedMs).toBeLessThan(500);
  expect(told).toEqual([['urgent', 'asked for by ops']]);
  expect(worker.governing.bypassed).toBe(1);
  const [after] = await governor.peek({ keys });
  expect(after!.granted).toBe(before!.granted + 3);
  // Three tokens at one a minute, less what drained meanwhile.
  expect(after!.waitMs - before!.waitMs).toBeGreaterThan(3 * 60_000 - 5_000);
  expect(await countsOf(queue)).toEqual({ completed: 1, delayed: 1 });
});

test('a refused job that is promoted by hand passes once bypass() says so', async ({ bench, queue }) => {
  const governor = bench.governor({ shop: perHour(1, { burst: 1, by: 'shop' }) });
  const keys = { shop: 'acme' };
  await governor.allow({ keys });
  const forced = new Set<string>();
  bench.worker(queue, {
    governor,
    keys,
    bypass: (job: Job) => forced.has(job.id!) && 'promoted',
    onBypass: () => {},
  });
  const job = await queue.add('job', {});
  await until(async () => (await job.getState()) === 'delayed', 'the job deferred');
  await job.promote();
  await until(async () => ((await queue.getJob(job.id!))!.attemptsStarted ?? 0) >= 2, 'a second refusal');
  await until(async () => (await job.getState()) === 'delayed', 'the job deferred again');

  forced.add(job.id!);
  await job.promote();
  await untilCompleted(queue, 1);
  expect(bench.starts.length).toBe(1);
  expect((await queue.getJob(job.id!))!.attemptsMade).toBe(1);
});

test('without onBypass each bypass is a process warning', async ({ bench, queue, onTestFinished }) => {
  const governor = bench.governor({ calls: perSecond(1) });
  const warnings: Error[] = [];
  const listen = (warning: Error) => {
    if (warning.message.includes(governor.name)) warnings.push(warning);
  };
  process.on('warning', listen);
  onTestFinished(() => void process.off('warning', listen));
  bench.worker(queue, { governor, bypass: () => 'by hand' });
  await addJobs(queue, 2);
  await untilCompleted(queue, 2);
  await until(() => warnings.length === 2, 'two warnings');
  expect(warnings[0]!.name).toBe('FlyballWarning');
  expect(warnings[0]!.message).toMatch(/^job \S+ bypassed governor "\S+": by hand$/);
});
