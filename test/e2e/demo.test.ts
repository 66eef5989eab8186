import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import type { Figures } from '../../workers/demo/figures.ts';
import { descendantsOf, isAlive } from '../support/descendants.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));

interface Demo {
  readonly process: ChildProcess;
  readonly output: { stdout: string; stderr: string };
  readonly ended: Promise<number | null>;
}

/** Starts the demo as a process of its own, with a Redis of its own. */
function demo(...args: string[]): Demo {
  const { REDIS_URL: _, ...env } = process.env;
  const child = spawn(process.execPath, ['--import', 'tsx', 'workers/demo/demo.ts', ...args], {
    cwd: root,
    env,
  });
  const output = { stdout: '', stderr: '' };
  child.stdout.on('data', (data) => {
    output.stdout += data;
  });
  child.stderr.on('data', (data) => {
    output.stderr += data;
  });
  return { process: child, output, ended: once(child, 'close').then(([code]) => code as number | null) };
}

async function until(condition: () => boolean, ms: number): Promise<void> {
  const giveUpAt = Date.now() + ms;
  while (!condition()) {
    if (Date.now() > giveUpAt) return;
    await sleep(50);
  }
}

test('the demo keeps its promise and says so in numbers', async () => {
  const run = demo(
    ...['--jobs', '200', '--rate', '400', '--burst', '40', '--processes', '2', '--governed-only', '--json'],
  );
  expect(await run.ended, run.output.stderr).toBe(0);
  const lines = run.output.stdout.trimEnd().split('\n');
  expect(lines).toHaveLength(1);
  const figures = JSON.parse(lines[0]!) as Figures;
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

test.each([
  [['--rate', 'fast'], "'--rate <tokens>'", "Expected a whole number of at least 1, got 'fast'"],
  [
    ['--burst', '3'],
    "'--cost <tokens>'",
    'Expected at most --burst (3): a job of a higher cost could never pass, got 1-5',
  ],
  [['--key-rate', '5'], "'--key-rate <tokens>'", 'Expected --keys along with it, got --key-rate 5 alone'],
])('%j makes no sense: a message and exit code 2', async (args, option, message) => {
  const run = demo(...args);
  expect(await run.ended).toBe(2);
  expect(run.output.stderr).toContain(option);
  expect(run.output.stderr).toContain(message);
});

test.each([
  ['SIGINT', 130],
  ['SIGKILL', null],
] as const)('after %s no process of the demo is left', async (signal, code) => {
  const run = demo('--jobs', '5000', '--processes', '2', '--governed-only');
  const pid = run.process.pid!;
  await until(() => / jobs [1-9]\d*\//.test(run.output.stderr), 40_000);
  const started = descendantsOf(pid);
  // Redis, the service and two consumers at the least.
  expect(started.length, run.output.stderr).toBeGreaterThanOrEqual(4);

  run.process.kill(signal);
  expect(await run.ended).toBe(code);
  await until(() => !started.some(isAlive), 5_000);
  expect(started.filter(isAlive)).toEqual([]);
});
