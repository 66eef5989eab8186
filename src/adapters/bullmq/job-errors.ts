import { UnrecoverableError } from 'bullmq';

/** `cancelJob(id, 'why')` aborts with a text, and BullMQ reads a failure's message. */
export function asError(reason: unknown): Error {
  return reason instanceof Error ? reason : new Error(String(reason ?? 'cancelled'));
}

/** For what no retry can help, so that no attempt is spent on one. */
export function unrecoverable(cause: Error): Error {
  const error = new UnrecoverableError(cause.message);
  error.cause = cause;
  return error;
}
