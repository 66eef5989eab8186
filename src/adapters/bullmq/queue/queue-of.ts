import { Queue, type Worker } from 'bullmq';

/** A handle on a worker's queue that is opened when it is first asked for, and closed with the worker. */
export function lazyQueueOf(worker: Worker): () => Queue {
  let queue: Queue | undefined;
  worker.on('closing', () => void queue?.close().catch(() => {}));
  return () => {
    queue ??= queueOf(worker);
    return queue;
  };
}

/**
 * A handle on a worker's queue, over the worker's own connection options. It writes nothing: BullMQ would otherwise set
 * the queue's stored options back to defaults when it is opened.
 */
export function queueOf(worker: Worker): Queue {
  const { connection, prefix } = worker.opts;
  const queue = new Queue(worker.name, {
    connection,
    skipMetasUpdate: true,
    ...(prefix === undefined ? {} : { prefix }),
  });
  queue.on('error', (error) => worker.emit('error', error));
  return queue;
}

/** By what is used of it: another copy of BullMQ has another class. */
export function isWorker(value: unknown): value is Worker {
  if (typeof value !== 'object' || value === null) return false;
  const { concurrency, pause, resume, on, name } = value as Partial<Worker>;
  return (
    typeof concurrency === 'number' &&
    typeof name === 'string' &&
    [pause, resume, on].every((method) => typeof method === 'function')
  );
}
