import { UnrecoverableError } from 'bullmq';

/** A user may throw anything, `cancelJob(id, 'why')` aborts with a text, and BullMQ reads a failure's message. */
export function asError(reason: unknown): Error {
  return reason instanceof Error ? reason : new Error(String(reason ?? 'no reason was given'));
}

/** For what no retry can help, so that no attempt is spent on one. */
export function unrecoverable(cause: Error): Error {
  const error = new UnrecoverableError(cause.message);
  error.cause = cause;
  return error;
}
