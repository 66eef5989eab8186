import { spawn } from 'node:child_process';
import { constants } from 'node:os';
import { provideRedis } from './redis.ts';

const usage = `Runs a command with REDIS_URL pointing at a Redis, and stops that Redis when the command has ended.

Usage: tsx scripts/with-redis.ts -- command [args…]

A Redis that REDIS_URL already names is used as it is, and left running.
Exit code: the command's; 128 + the signal's number if a signal ended it; 2 for wrong usage.
`;

const [separator, command, ...args] = process.argv.slice(2);

if (separator === '--help' || separator === '-h') {
  process.stdout.write(usage);
} else if (separator !== '--' || command === undefined) {
  process.stderr.write(
    `with-redis: expected -- and a command, got "${process.argv.slice(2).join(' ')}"\n\n${usage}`,
  );
  process.exitCode = 2;
} else {
  try {
    process.exitCode = await runWithRedis(command, args);
  } catch (error) {
    process.stderr.write(`with-redis: ${(error as Error).message}\n`);
    process.exitCode = 1;
  }
}

async function runWithRedis(command: string, args: readonly string[]): Promise<number> {
  // On stderr, so that the command's own output stays clean for who reads it.
  const redis = await provideRedis({ log: (line) => process.stderr.write(`with-redis: ${line}\n`) });
  try {
    return await runToEnd(command, args, { ...process.env, REDIS_URL: redis.url });
  } finally {
    await redis.stop();
  }
}

function runToEnd(command: string, args: readonly string[], env: NodeJS.ProcessEnv): Promise<number> {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { env, stdio: 'inherit' });
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
      process.on(signal, () => {
        // A terminal sends Ctrl-C to the command as well; a second one often means "at once".
        if (signal !== 'SIGINT' || !process.stdin.isTTY) child.kill(signal);
      });
    }
    child.once('error', (error) => reject(new Error(`cannot run ${command}: ${error.message}`)));
    child.once('exit', (code, signal) => resolve(signal === null ? code! : 128 + constants.signals[signal]));
  });
}
