import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { afterAll } from 'vitest';
import { watch } from '../../scripts/redis/watchdog.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));

interface Exit {
  code: number | null;
  signal: NodeJS.Signals | null;
}

/** A real operating-system process that runs a TypeScript file. */
export interface SpawnedProcess {
  readonly pid: number;
  /** Everything written so far, line by line. */
  readonly stdout: readonly string[];
  readonly stderr: readonly string[];
  readonly exited: Promise<Exit>;
  /** Resolves with the first line of stdout, past or future, that is a JSON object and matches. Rejects after 20 s. */
  json<T = Record<string, unknown>>(matches?: (value: T) => boolean): Promise<T>;
  /** Sends a signal, SIGTERM by default, and resolves when the process has ended. */
  kill(signal?: NodeJS.Signals): Promise<Exit>;
}

const ends = new Set<() => Promise<Exit>>();
afterAll(async () => {
  await Promise.all([...ends].map((end) => end()));
});

/**
 * Starts a TypeScript file as a process of its own, under tsx. It is killed when the test file ends, and if this process
 * is killed it goes as well.
 *
 * @param file - Relative to the project's root.
 * @param env - Added to this process's environment.
 */
export function spawnTs(
  file: string,
  args: readonly string[] = [],
  env: Record<string, string> = {},
): SpawnedProcess {
  const child = spawn(process.execPath, ['--import', 'tsx', file, ...args], {
    cwd: root,
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  if (child.pid === undefined) throw new Error(`cannot start ${process.execPath} for ${file}`);
  const callOff = watch(child.pid);
  child.once('exit', callOff);
  // 'close' and not 'exit': by then all output has been read too.
  const exited = new Promise<Exit>((resolve) => {
    child.once('close', (code, signal) => resolve({ code, signal }));
  });
  const kill = (signal: NodeJS.Signals = 'SIGTERM') => {
    child.kill(signal);
    return exited;
  };
  ends.add(() => kill('SIGKILL'));

  const stdout: string[] = [];
  const stderr: string[] = [];
  const listeners = new Set<(line: string) => void>();
  createInterface({ input: child.stdout }).on('line', (line) => {
    stdout.push(line);
    for (const listener of listeners) listener(line);
  });
  createInterface({ input: child.stderr }).on('line', (line) => stderr.push(line));

  function json<T>(matches: (value: T) => boolean = () => true): Promise<T> {
    return new Promise((resolve, reject) => {
      const done = () => {
        clearTimeout(timer);
        listeners.delete(look);
      };
      const fail = (why: string) => {
        done();
        const said = [...stdout.slice(-10), ...stderr.slice(-20)].join('\n');
        reject(
          new Error(`${file}: expected a JSON line that matches ${matches}, but ${why}; it said:\n${said}`),
        );
      };
      const look = (line: string) => {
        const value = parsed<T>(line);
        if (value === undefined || !matches(value)) return;
        done();
        resolve(value);
      };
      const timer = setTimeout(() => fail('none came within 20 s'), 20_000);
      listeners.add(look);
      for (const line of [...stdout]) look(line);
      void exited.then(({ code, signal }) => fail(`the process ended with ${code ?? signal}`));
    });
  }

  return { pid: child.pid, stdout, stderr, exited, json, kill };
}

function parsed<T>(line: string): T | undefined {
  try {
    return line.startsWith('{') ? (JSON.parse(line) as T) : undefined;
  } catch {
    return undefined; // looks like JSON and is not: some other output
  }
}
