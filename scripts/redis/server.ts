import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ServerBinary } from './binary.ts';
import { checkRedis } from './check.ts';
import { watch } from './watchdog.ts';

export interface RunningServer {
  url: string;
  port: number;
  pid: number;
  /** Ends the server and removes its directory. May be called twice. */
  stop(): Promise<void>;
}

export interface StartOptions {
  /** More arguments for the server, for example `['--maxmemory', '20mb']`. They win over the defaults. */
  args?: readonly string[];
  /** The port to listen on. Default: one the operating system says is free. */
  port?: number;
}

const startMs = 10_000;
const graceMs = 1_000;

/**
 * Starts a private Redis: on 127.0.0.1, nothing written to disk, its own temporary directory.
 *
 * Once this resolves the server answers PING. It ends with `stop()`, or with this process at the latest.
 *
 * @throws Error with the server's last words if it does not come up within 10 seconds.
 */
export async function startServer(binary: ServerBinary, options: StartOptions = {}): Promise<RunningServer> {
  const args = options.args ?? [];
  if (options.port !== undefined) return startOn(options.port, binary, args);
  for (let attempt = 1; ; attempt++) {
    try {
      return await startOn(await freePort(), binary, args);
    } catch (error) {
      // Another process may take the port between our look and the server's bind.
      if (attempt === 5 || !/address already in use/i.test((error as Error).message)) throw error;
    }
  }
}

async function startOn(port: number, binary: ServerBinary, args: readonly string[]): Promise<RunningServer> {
  const directory = mkdtempSync(join(tmpdir(), 'flyball-redis-'));
  const logFile = join(directory, 'redis.log');
  const log = openSync(logFile, 'a');
  const fixed = ['--port', String(port), '--bind', '127.0.0.1', '--dir', directory];
  const volatile = ['--save', '', '--appendonly', 'no', '--daemonize', 'no'];
  const child = spawn(binary.path, [...fixed, ...volatile, ...args], {
    cwd: directory,
    env: { ...process.env, ...binary.env },
    // A file, not a pipe: nobody has to read it, and it holds the reason if the server does not start.
    stdio: ['ignore', log, log],
    detached: true,
  });
  closeSync(log);
  const exited = new Promise<void>((resolve) => {
    child.once('exit', () => resolve());
    child.once('error', () => resolve());
  });
  if (child.pid === undefined) {
    await exited;
    rmSync(directory, { recursive: true, force: true });
    throw new Error(`cannot run ${binary.path}: expected an executable Redis server`);
  }
  const pid = child.pid;
  child.unref();
  const callOff = watch(pid, directory);
  // At once, not in stop(): once the server has ended, its pid may belong to someone else.
  child.once('exit', callOff);
  const killNow = () => child.kill('SIGKILL');
  process.once('exit', killNow);

  const stop = async () => {
    await end(child, exited);
    process.off('exit', killNow);
    rmSync(directory, { recursive: true, force: true });
  };

  const url = `redis://127.0.0.1:${port}`;
  try {
    await untilReady(url, child);
  } catch (error) {
    const lastWords = readFileSync(logFile, 'utf8').trim().split('\n').slice(-5).join(' | ');
    await stop();
    throw new Error(`${binary.how} did not start: ${(error as Error).message}: ${lastWords}`);
  }
  return { url, port, pid, stop };
}

async function untilReady(url: string, child: ChildProcess): Promise<void> {
  const deadline = Date.now() + startMs;
  for (;;) {
    if (hasExited(child)) throw new Error(`it exited with ${child.exitCode ?? child.signalCode}`);
    try {
      // Another server on this port would answer too; ours is the one with our child's pid.
      if ((await checkRedis(url)).pid === child.pid) return;
    } catch (error) {
      if (Date.now() > deadline) throw error;
    }
    if (Date.now() > deadline) throw new Error(`no answer from it within ${startMs} ms`);
    await sleep(20);
  }
}

async function end(child: ChildProcess, exited: Promise<void>): Promise<void> {
  if (hasExited(child)) return;
  child.ref();
  child.kill('SIGTERM');
  // A server inside a long script, or one a test has stopped with SIGSTOP, does not hear SIGTERM.
  const timer = setTimeout(() => child.kill('SIGKILL'), graceMs);
  await exited;
  clearTimeout(timer);
}

function hasExited(child: ChildProcess): boolean {
  return child.exitCode !== null || child.signalCode !== null;
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const probe = createServer();
    probe.once('error', reject);
    probe.listen(0, '127.0.0.1', () => {
      const { port } = probe.address() as { port: number };
      probe.close(() => resolve(port));
    });
  });
}
