import pino from 'pino';

/** Logs of a worker process: JSON lines on stderr, because other programs read stdout. */
export function createLog(name: string): pino.Logger {
  return pino({ name, level: process.env.LOG_LEVEL ?? 'info' }, pino.destination({ fd: 2, sync: true }));
}
