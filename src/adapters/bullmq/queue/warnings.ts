import { createRequire } from 'node:module';
import type { Worker } from 'bullmq';
import { queueOf } from './queue-of.ts';

/** The oldest BullMQ whose `close()` does not first start every waiting job while they are deferred. */
const OLDEST_BULLMQ = [5, 76, 11] as const;

/** The oldest BullMQ whose loop a resume wakes while jobs run. */
const WAKING_BULLMQ = [6, 4, 0] as const;

/**
 * Warns of what works against a governor: once, when a worker is attached, through `process.emitWarning`
 * (`FlyballWarning`). Nothing here is fatal, and nothing here may fail.
 */
export function warnOfConflicts(worker: Worker): void {
  const warn = (what: string) => process.emitWarning(`queue "${worker.name}": ${what}`, 'FlyballWarning');
  for (const conflict of [...versionConflicts(bullmqVersion()), ...optionConflicts(worker.opts)])
    warn(conflict);
  const queue = queueOf(worker);
  queue
    .getGlobalRateLimit()
    .then((limit) => {
      if (limit !== null) warn(globalLimitConflict(limit));
    })
    .catch(() => {}) // it told the worker's 'error' event
    .finally(() => queue.close().catch(() => {}));
}

/** Conflicts in a worker's options. */
export function optionConflicts(options: Pick<Worker['opts'], 'limiter' | 'maxStartedAttempts'>): string[] {
  const found: string[] = [];
  if (options.limiter !== undefined) {
    found.push(
      'BullMQ’s own limiter is on as well, and jobs that the governor defers use up its starts: remove `limiter`',
    );
  }
  if (options.maxStartedAttempts !== undefined) {
    found.push(
      `maxStartedAttempts is ${options.maxStartedAttempts}: a deferred job starts again, and fails after so many starts ` +
        'though it never ran: remove it, or set it well above',
    );
  }
  return found;
}

/** Conflicts of the BullMQ in use; none if its version is not known (bundled, say). */
export function versionConflicts(version: string | undefined): string[] {
  if (version === undefined) return [];
  if (isOlder(version, OLDEST_BULLMQ)) {
    return [
      `BullMQ ${version} is older than ${OLDEST_BULLMQ.join('.')}: close() may not end while jobs are deferred`,
    ];
  }
  if (isOlder(version, WAKING_BULLMQ)) {
    return [
      `BullMQ ${version} is older than ${WAKING_BULLMQ.join('.')}: a worker all of whose jobs run fetches more only at the ` +
        'end of one, so that jobs of seconds are slow to reach the limit',
    ];
  }
  return [];
}

function isOlder(version: string, than: readonly number[]): boolean {
  const parts = version.split('.').map((part) => Number.parseInt(part, 10));
  for (const [index, oldest] of than.entries()) {
    const part = parts[index] ?? 0;
    if (part !== oldest) return part < oldest;
  }
  return false;
}

function globalLimitConflict({ max, duration }: { max: number; duration: number }): string {
  return `the queue has a global rate limit (${max} per ${duration} ms), and limits get mixed: remove it with removeGlobalRateLimit()`;
}

function bullmqVersion(): string | undefined {
  try {
    return (createRequire(import.meta.url)('bullmq/package.json') as { version: string }).version;
  } catch {
    return undefined;
  }
}
