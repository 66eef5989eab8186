import { type ChildProcess, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { afterAll, onTestFinished, TestRunner } from 'vitest';
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
  /** Resolves with the first line of stdout, past or future, that matches. Default time: 20 seconds. */
  line(matches: RegExp | ((line: string) => boolean), timeoutMs?: number): Promise<string>;
  /** The same for lines that are JSON objects. */
  json<T = Record<string, unknown>>(matches?: (value: T) => boolean, timeoutMs?: number): Promise<T>;
  /** Sends a signal, SIGTERM by default, and resolves when the process has ended. */
  kill(signal?: NodeJS.Signals): Promise<Exit>;
  /** Sends a signal and does not wait, for SIGSTOP and SIGCONT. */
  signal(signal: NodeJS.Signals): void;
}

/**
 * Starts a TypeScript file as a process of its own, under tsx.
 *
 * Called inside a test it is killed when that test ends, called elsewhere when the file ends; if this process
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
  const spawned = describe(child, file, exited);
  const end = async () => {
    await spawned.kill('SIGKILL');
  };
  if (TestRunner.getCurrentTest() === undefined) afterAllEnds.add(end);
  else onTestFinished(end);
  return spawned;
}

const afterAllEnds = new Set<() => Promise<void>>();
afterAll(async () => {
  await Promise.all([...afterAllEnds].map((end) => end()));
});

function describe(child: ChildProcess, file: string, exited: Promise<Exit>): SpawnedProcess {
  const stdout: string[] = [];
  const stderr: string[] = [];
  const listeners = new Set<(line: string) => void>();
  createInterface({ input: child.stdout! }).on('line', (line) => {
    stdout.push(line);
    for (const listener of listeners) listener(line);
  });
  createInterface({ input: child.stderr! }).on('line', (line) => stderr.push(line));

  function first<T>(pick: (line: string) => T | undefined, what: string, timeoutMs: number): Promise<T> {
    return new Promise((resolve, reject) => {
      const fail = (why: string) => {
        done();
        const said = [...stdout.slice(-10), ...stderr.slice(-20)].join('\n');
        reject(new Error(`${file}: expected ${what} on stdout, but ${why}; it said:\n${said}`));
      };
      const look = (line: string) => {
        const picked = pick(line);
        if (picked === undefined) return;
        done();
        resolve(picked);
      };
      const timer = setTimeout(() => fail(`nothing came within ${timeoutMs} ms`), timeoutMs);
      const done = () => {
        clearTimeout(timer);
        listeners.delete(look);
      };
      listeners.add(look);
      for (const line of [...stdout]) look(line);
      void exited.then(({ code, signal }) => fail(`the process ended with ${code ?? signal}`));
    });
  }

  return {
    pid: child.pid!,
    stdout,
    stderr,
    exited,
    line(matches, timeoutMs = 20_000) {
      const test = matches instanceof RegExp ? (line: string) => matches.test(line) : matches;
      return first((line) => (test(line) ? line : undefined), `a line that matches ${matches}`, timeoutMs);
    },
    json<T>(matches: (value: T) => boolean = () => true, timeoutMs = 20_000) {
      return first((line) => parsed(line, matches), `a JSON line that matches ${matches}`, timeoutMs);
    },
    async kill(signal = 'SIGTERM') {
      child.kill(signal);
      return exited;
    },
    signal(signal) {
      child.kill(signal);
    },
  };
}

function parsed<T>(line: string, matches: (value: T) => boolean): T | undefined {
  if (!line.startsWith('{')) return undefined;
  try {
    const value = JSON.parse(line) as T;
    return matches(value) ? value : undefined;
  } catch {
    // Looks like JSON and is not: some other output.
    return undefined;
  }
}
