import { spawn } from 'node:child_process';

/**
 * Sees to it that another process does not outlive this one, however this one ends.
 *
 * A shell waits on a pipe whose other end only this process holds. When this process is gone, by exit,
 * signal or SIGKILL, the kernel closes the pipe, the shell's read ends, and it kills the other. Handlers for
 * 'exit' and signals could not cover SIGKILL, and would have to argue with whatever handlers the program has
 * of its own.
 *
 * @param pid - The process to kill. The caller calls the watchdog off as soon as it has ended: by then its
 *   pid may belong to someone else.
 * @param directory - Removed after it.
 * @returns A function that calls the watchdog off.
 */
export function watch(pid: number, directory?: string): () => void {
  const script = 'read -r _; kill -9 "$1" 2>/dev/null; shift; rm -rf "$@"';
  const rest = directory === undefined ? [] : [directory];
  const shell = spawn('/bin/sh', ['-c', script, 'watchdog', String(pid), ...rest], {
    stdio: ['pipe', 'ignore', 'ignore'],
    // Its own process group: Ctrl-C in a terminal must reach this process first.
    detached: true,
  });
  // Neither may keep this process alive.
  shell.unref();
  (shell.stdin as typeof shell.stdin & { unref(): void }).unref();
  shell.stdin.on('error', () => {});
  return () => shell.kill('SIGKILL');
}
