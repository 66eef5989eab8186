import type { Logger } from 'pino';
import type { Go, Message } from './messages.ts';

/** Whether a parent process started this one and talks to it. */
const hasParent = process.send !== undefined;

/**
 * Runs `stop` once on SIGTERM or SIGINT and exits with 0 if it did not exit by itself, or with 1 if it fails.
 *
 * With a parent, SIGINT is ignored: a terminal sends Ctrl-C to every process in the foreground, and the
 * parent must end them in its own order. When the parent is gone, even by SIGKILL, the channel closes and
 * this process ends at once, because nobody is left to stop it.
 */
export function onStop(log: Logger, stop: () => Promise<void>): void {
  let stopping = false;
  const run = (signal: string) => {
    if (stopping) return;
    stopping = true;
    log.info({ signal }, 'stopping');
    stop().then(
      () => process.exit(0),
      (error: unknown) => {
        log.error({ err: error }, 'stopping failed');
        process.exit(1);
      },
    );
  };
  process.on('SIGTERM', run);
  process.on('SIGINT', hasParent ? () => {} : run);
  if (hasParent) process.on('disconnect', () => process.exit(1));
}

/** Sends a message to the parent, or without one to stdout. One JSON object a message. */
export function report(message: Message): void {
  if (process.send) process.send(message);
  else process.stdout.write(`${JSON.stringify(message)}\n`);
}

/** The last {@link report} of a process: ends it once the message is out. */
export function reportAndExit(message: Message): void {
  const exit = () => process.exit(0);
  if (process.send) process.send(message, exit);
  else process.stdout.write(`${JSON.stringify(message)}\n`, exit);
}

/**
 * Runs `start` once: when the parent says so, or at once without a parent. Processes take unequal time to start, so their
 * parent lets them begin together.
 */
export function startWhenTold(start: () => void): void {
  if (!hasParent) {
    start();
    return;
  }
  let started = false;
  process.on('message', (message: Go) => {
    if (message.type !== 'go' || started) return;
    started = true;
    start();
  });
  report({ type: 'ready' });
}
