import { describe, expect, test, vi } from 'vitest';
import { descendantsOf, isAlive } from '../support/descendants.ts';
import { spawnTs } from '../support/processes.ts';

const NAMES = ['concurrency', 'reconfigure', 'pause', 'adaptive', 'llm', 'fair'];
const FILE = 'workers/prove/prove.ts';

describe.concurrent('prove', () => {
  test('without a case lists them, one line each', async () => {
    const run = spawnTs(FILE);
    expect(await run.exited).toMatchObject({ code: 0 });
    const listed = run.stdout
      .filter((line) => line.startsWith('  '))
      .map((line) => line.trim().split(/\s+/)[0]);
    expect(listed).toEqual(NAMES);
  });

  test('refuses an unknown case with a message and exit code 2', async () => {
    const run = spawnTs(FILE, ['nope']);
    expect(await run.exited).toMatchObject({ code: 2 });
    expect(run.stderr.join('\n')).toContain(`no case 'nope'. Expected ${NAMES.join(', ')}.`);
  });

  test('leaves no process behind after SIGINT', async () => {
    const run = spawnTs(FILE, ['adaptive', '--json'], { REDIS_URL: '' });
    await vi.waitFor(() => expect(run.stderr.join('\n')).toContain('s  the service takes'), {
      timeout: 40_000,
      interval: 100,
    });
    const started = descendantsOf(run.pid);
    // Redis, the service and four callers at the least.
    expect(started.length, run.stderr.join('\n')).toBeGreaterThanOrEqual(6);
    expect(await run.kill('SIGINT')).toMatchObject({ code: 130 });
    await vi.waitFor(() => expect(started.filter(isAlive)).toEqual([]), { timeout: 5_000, interval: 50 });
    expect(run.stdout).toEqual([]);
  });
});
