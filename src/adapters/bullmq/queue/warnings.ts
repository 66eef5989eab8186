import { createRequire } from 'node:module';
import type { Worker } from 'bullmq';
import { queueOf } from './queue-of.ts';

/** What works less well before a version of BullMQ, the worst first. */
const BEFORE: readonly (readonly [oldest: readonly number[], what: string])[] = [
  // Its close() first starts every waiting job.
  [[5, 76, 11], 'close() may not end while jobs are deferred'],
  // A resume wakes no loop that has jobs.
  [
    [6, 4, 0],
    'a busy worker notices a higher concurrency only when a job ends, so long jobs reach the limit slowly',
  ],
];

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
      if (limit === null) return;
      const global = `a global rate limit (${limit.max} per ${limit.duration} ms)`;
      warn(`the queue has ${global}, and limits get mixed: remove it with removeGlobalRateLimit()`);
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

/** Conflicts of the BullMQ in use; no conflict if its version is not known (a bundle has none). */
export function versionConflicts(version: string | undefined): string[] {
  const conflict = version && BEFORE.find(([oldest]) => isOlder(version, oldest));
  return conflict ? [`BullMQ ${version} is older than ${conflict[0].join('.')}: ${conflict[1]}`] : [];
}

function isOlder(version: string, than: readonly number[]): boolean {
  const parts = version.split('.').map((part) => Number.parseInt(part, 10));
  const index = than.findIndex((oldest, at) => (parts[at] ?? 0) !== oldest);
  return index >= 0 && (parts[index] ?? 0) < than[index]!;
}

function bullmqVersion(): string | undefined {
  try {
    return (createRequire(import.meta.url)('bullmq/package.json') as { version: string }).version;
  } catch {
    return undefined;
  }
}
