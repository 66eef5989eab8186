import type { Logger } from 'pino';
import type { Go, Message } from './messages.ts';

/** Whether another process of ours started this one and talks to it. */
const hasParent = process.send !== undefined;

/**
 * Runs `stop` once on SIGTERM or SIGINT and exits with 0 if it did not exit by itself, or with 1 if it fails.
 *
 * With a parent, SIGINT is left to it: a terminal sends Ctrl-C to every process in the foreground, and the
 * parent has to end them in its own order. A parent that is gone, even by SIGKILL, closes the channel: then
 * nobody is left to stop this process, so it ends at once.
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

/** Tells the parent, or whoever reads stdout when there is none. One JSON object a message. */
export function report(message: Message): void {
  if (process.send) process.send(message);
  else process.stdout.write(`${JSON.stringify(message)}\n`);
}

/** The last {@link report} of a process whose work is done: ends it once the message is out. */
export function reportAndExit(message: Message): void {
  const exit = () => process.exit(0);
  if (process.send) process.send(message, exit);
  else process.stdout.write(`${JSON.stringify(message)}\n`, exit);
}

/**
 * Runs `start` once: when the parent says so, or at once without one. Processes take unequal time to start; their
 * parent lets them go together, when all are there.
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
