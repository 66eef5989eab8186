import { expect } from 'vitest';
import { spawnTs } from '../../support/processes.ts';
import { redisUrl, uniqueName } from '../../support/redis.ts';
import { wallClock } from '../../support/wall-clock.ts';
import { addJobs, countsOf, expectBound, test, untilCompleted } from './fixture.ts';

const RATE = 40;
const JOBS = 110;

// https://github.com/SGrondin/bottleneck/issues/94: what waited for the limiter inside a process was lost with it.
test('others do the jobs of a killed worker, within the limit', wallClock, async ({ queue }) => {
  const governor = uniqueName('governor');
  const start = () =>
    spawnTs('test/adapters/bullmq/crashing-consumer.ts', [redisUrl(), queue.name, governor, String(RATE)]);
  const [killed, other] = [start(), start()];
  await Promise.all([killed.json(), other.json()]);
  await addJobs(queue, JOBS);
  await killed.json<{ held: number; running: number }>(({ held, running }) => held >= 2 && running >= 1);
  await killed.kill('SIGKILL');
  await untilCompleted(queue, JOBS);

  const told = [...killed.stdout, ...other.stdout].map((line) => JSON.parse(line) as Record<string, unknown>);
  const starts = told.flatMap(({ start, atMs }) =>
    start === undefined ? [] : [{ id: start as string, atMs: atMs as number }],
  );
  expect(await countsOf(queue)).toEqual({ completed: JOBS });
  expect(new Set(starts.map(({ id }) => id)).size).toBe(JOBS);
  // Started twice are at most those that ran when the process was killed.
  expect(starts.length - JOBS).toBeLessThanOrEqual(10);
  expectBound(starts, RATE, 5);
  expect(told.filter((line) => 'failed' in line || 'error' in line)).toEqual([]);
  const jobs = await queue.getCompleted(0, -1);
  expect(jobs.every((job) => job.attemptsMade === 1)).toBe(true);
});
