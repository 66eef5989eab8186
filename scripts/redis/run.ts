import { execFile } from 'node:child_process';

export interface RunOptions {
  cwd?: string;
  env?: Record<string, string>;
  /** Milliseconds after which the command is killed. Default 60,000. */
  timeoutMs?: number;
}

/**
 * Runs a command to its end and gives its standard output back.
 *
 * @throws Error that names the command, why it failed, and the last thing it said.
 */
export function run(command: string, args: readonly string[], options: RunOptions = {}): Promise<string> {
  const timeoutMs = options.timeoutMs ?? 60_000;
  return new Promise((resolve, reject) => {
    execFile(
      command,
      args,
      {
        cwd: options.cwd,
        // Output is read by this code, so it must not depend on the user's language.
        env: { ...process.env, ...options.env, LC_ALL: 'C' },
        timeout: timeoutMs,
        killSignal: 'SIGKILL',
        maxBuffer: 16 * 1024 * 1024,
      },
      (error, stdout, stderr) => {
        if (error === null) return resolve(stdout);
        const why =
          error.killed === true
            ? `no end after ${timeoutMs} ms`
            : error.code === 'ENOENT'
              ? 'no such command'
              : `exit code ${error.code ?? error.signal}`;
        const said = stderr.trim().split('\n').at(-1);
        reject(
          new Error(`${command} ${args.join(' ')}: ${why}${said ? ` (${said})` : ''}`, { cause: error }),
        );
      },
    );
  });
}
