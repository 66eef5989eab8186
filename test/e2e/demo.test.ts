import { describe, expect, test, vi } from 'vitest';
import type { Figures } from '../../workers/demo/figures.ts';
import { descendantsOf, isAlive } from '../support/descendants.ts';
import { spawnTs } from '../support/processes.ts';
import { wallClock } from '../support/wall-clock.ts';

/** Starts the demo as a process of its own, with a Redis of its own. */
const demo = (...args: string[]) => spawnTs('workers/demo/demo.ts', args, { REDIS_URL: '' });

test('the demo keeps its promise and says so in numbers', wallClock, async () => {
  const run = demo(
    ...['--jobs', '200', '--rate', '400', '--burst', '40', '--processes', '2', '--governed-only', '--json'],
  );
  expect((await run.exited).code, run.stderr.join('\n')).toBe(0);
  expect(run.stdout).toHaveLength(1);
  const figures = JSON.parse(run.stdout[0]!) as Figures;
  expect(Object.keys(figures)).toEqual(
    (
      'rate burst processes concurrency jobs completed lost duplicated seconds utilisation worstExcess downstream429 ' +
      'ungoverned429 startsPerJobMean startsPerJobMax deferrals failedEvents redisCommandsPerJob'
    ).split(' '),
  );
  expect(figures).toMatchObject({
    ...{ rate: 400, burst: 40, processes: 2, concurrency: 50, jobs: 200 },
    ...{ completed: 200, lost: 0, duplicated: 0, downstream429: 0, ungoverned429: null },
    ...{ deferrals: 0, failedEvents: 0 },
  });
  expect(figures.worstExcess).toBeLessThanOrEqual(20);
  expect(figures.startsPerJobMean).toBeGreaterThanOrEqual(1);
  expect(figures.startsPerJobMax).toBeLessThanOrEqual(3);
  expect(figures.redisCommandsPerJob).toBeGreaterThan(10);
  // Some 600 tokens at 400 a second: too short to demand all of the limit, long enough to see it used.
  expect(figures.utilisation).toBeGreaterThan(0.8);
});

describe.concurrent('the demo', () => {
  test.each([
    [['--rate', 'fast'], "'--rate <tokens>'", "Expected a whole number of at least 1, got 'fast'"],
    [
      ['--burst', '3'],
      "'--cost <tokens>'",
      'Expected at most --burst (3): a job of a higher cost could never pass, got 1-5',
    ],
    [['--key-rate', '5'], "'--key-rate <tokens>'", 'Expected --keys along with it, got --key-rate 5 alone'],
  ])('refuses %j with a message and exit code 2', async (args, option, message) => {
    const run = demo(...args);
    expect((await run.exited).code).toBe(2);
    expect(run.stderr.join('\n')).toContain(option);
    expect(run.stderr.join('\n')).toContain(message);
  });

  test.each([
    ['SIGINT', 130],
    ['SIGKILL', null],
  ] as const)('leaves no process behind after %s', async (signal, code) => {
    const run = demo('--jobs', '2000', '--processes', '2', '--governed-only');
    await vi.waitFor(() => expect(run.stderr.join('\n')).toMatch(/ jobs [1-9]\d*\//), {
      timeout: 40_000,
      interval: 50,
    });
    const started = descendantsOf(run.pid);
    // Redis, the service and two consumers at the least.
    expect(started.length, run.stderr.join('\n')).toBeGreaterThanOrEqual(4);
    expect((await run.kill(signal)).code).toBe(code);
    await vi.waitFor(() => expect(started.filter(isAlive)).toEqual([]), { timeout: 5_000, interval: 50 });
  });
});
